"""Requests as a public node gets them in a day, compared with CometBFT.

Seventy of a hundred are for the head; the others are for heights, keys and hashes by Zipf's
law, searches and transactions. A block with 50 transactions more is made each second, and
200 subscribers get its events. ``mixed.json`` has the shares, and says where they come from.
"""

from __future__ import annotations

import itertools
import json
import random
import selectors
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from statistics import median
from tempfile import mkdtemp

import click

from flask_noderpc.chain.validator_keys import (
    mark_development,
    node_key_document,
    validator_key_document,
)
from flask_noderpc.protocol.comet.genesis import genesis_document
from flask_noderpc.protocol.comet.hashes import tx_hash
from tests.helpers.websocket import WebSocketClient

from .chains import THOUSAND, build, maker_of
from .compare import Bench
from .nodes import COMETBFT, of_cometbft
from .peers.cometbft import sending
from .peers.ours import COMMON, START_COMMAND, noderpc_start
from .process import PATIENCE_S, Server
from .table import Table, verdict
from .wrk import Ask, Run, load

SUBSCRIBERS, TXS = 200, 50
_SECONDS, _REQUESTS = 8, 200_000
_QUERIES = ("tm.event='NewBlock'", "tm.event='NewBlockHeader'", "tm.event='Tx'")
_PONG, _PONG_EVERY_S = 0xA, 10.0
_TIMES, _TAIL = 2.0, 1.0
_numbers = itertools.count()


def requests(seed: int) -> Ask:
    """Return a second's requests and many more, none of whose transactions was sent before."""
    dice = random.Random(seed)
    mix = json.loads(Path(__file__).with_suffix(".json").read_text())["mix"]
    shares, forms = zip(*mix, strict=True)
    heights = range(THOUSAND.blocks, 1, -1)
    zipf = list(itertools.accumulate(1 / rank for rank in range(1, len(heights) + 1)))

    def path(form: str) -> str:
        height = dice.choices(heights, cum_weights=zipf)[0]
        index = dice.randrange(THOUSAND.txs)
        found = tx_hash(THOUSAND.block(height)[index]) if "{hash}" in form else b""
        number = next(_numbers) if "{number}" in form else 0
        key = f"k{height}.{index}"
        return form.format(height=height, key=key, hash=found.hex(), number=number)

    return Ask(tuple(map(path, dice.choices(forms, shares, k=_REQUESTS))), only_once=True)


@contextmanager
def blocks(server: Server) -> Iterator[None]:
    """Send transactions each second, in a thread."""
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(1.0):
            txs = [b"b%d=%d" % (next(_numbers), number) for number in range(TXS)]
            server.ask(body=json.dumps([sending(tx) for tx in txs]))

    with _thread(run, ended):
        yield


@contextmanager
def subscribers(server: Server) -> Iterator[None]:
    """Connect subscribers, and read their messages."""
    with ExitStack() as stack:
        selector = stack.enter_context(closing(selectors.DefaultSelector()))
        clients = []
        for number in range(SUBSCRIBERS):
            client = WebSocketClient(server.url, timeout=PATIENCE_S)
            clients.append(stack.enter_context(closing(client)))
            query = _QUERIES[number % len(_QUERIES)]
            assert client.asked("subscribe", {"query": query})["result"] == {}
            selector.register(client.sock, selectors.EVENT_READ)
        ended = threading.Event()

        def run() -> None:
            ponged = time.monotonic()
            while not ended.is_set():
                for key, _ in selector.select(0.1):
                    assert key.fileobj.recv(1 << 20), "a subscriber was cut off"  # type: ignore[union-attr]
                # CometBFT closes a connection that is silent for 30 s.
                if time.monotonic() > ponged + _PONG_EVERY_S:
                    ponged = time.monotonic()
                    for client in clients:
                        client.frame(_PONG, b"")

        with _thread(run, ended):
            yield


@contextmanager
def _thread(run: object, ended: threading.Event) -> Iterator[None]:
    thread = threading.Thread(target=run)  # type: ignore[arg-type]
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _validator_home(folder: Path) -> dict[str, object]:
    """Write a home whose validator continues the chain; return the settings."""
    maker = maker_of(THOUSAND)
    config = folder / "config"
    config.mkdir()
    (config / "genesis.json").write_bytes(genesis_document(maker.genesis))
    (config / "priv_validator_key.json").write_bytes(validator_key_document(maker.keys[0]))
    (config / "node_key.json").write_bytes(node_key_document(maker.keys[0]))
    mark_development(config, maker.keys[0])
    return {**COMMON, "database": str(build(THOUSAND, folder)), "block_interval": 1.0}


def compare(bench: Bench) -> Table:
    """Return the table of throughput and tail latency."""
    home = Path(mkdtemp(dir=bench.scratch))
    settings = _validator_home(home)
    found: dict[str, list[Run]] = {}
    with ExitStack() as stack:
        servers = {START_COMMAND: stack.enter_context(noderpc_start(home, settings))}
        with bench.may_miss(COMETBFT):
            servers[COMETBFT] = stack.enter_context(of_cometbft(bench, THOUSAND))
        for seed in range(bench.rounds):
            for peer, server in servers.items():
                run = _run(server, requests(seed))
                found.setdefault(peer, []).append(run)
                click.echo(f"{peer}: {run.per_second:,.0f} a second, p99 {run.p99_ms:.1f} ms")
    header = ("Server", "A second", "p50 ms", "p99 ms", "Ratio", "Target", "Met")
    return Table("mixed", header, tuple(_lines(found)))


def _run(server: Server, ask: Ask) -> Run:
    with server.awake(), subscribers(server), blocks(server):
        return load(server.url, ask, _SECONDS)


def _lines(found: dict[str, list[Run]]) -> Iterator[tuple[str, ...]]:
    speed = {peer: median(run.per_second for run in runs) for peer, runs in found.items()}
    tail = {peer: median(run.p99_ms for run in runs) for peer, runs in found.items()}
    for peer, runs in found.items():
        half = median(run.p50_ms for run in runs)
        line = peer, f"{speed[peer]:,.0f}", f"{half:.2f}", f"{tail[peer]:.2f}"
        if peer == COMETBFT or COMETBFT not in found:
            yield *line, "", "", ""
            continue
        times, tails = speed[peer] / speed[COMETBFT], tail[peer] / tail[COMETBFT]
        wanted = [f"{_TIMES:g} {COMETBFT}", f"p99 {_TAIL:g} {COMETBFT}"]
        missed = [f"{times:.2f} {COMETBFT}"] if times < _TIMES else []
        missed += [f"p99 {tails:.2f} {COMETBFT}"] if tails > _TAIL else []
        yield *line, f"{times:.2f}", *verdict(wanted, missed)
