"""Requests of the node RPC, compared with CometBFT, bare servers and Flask-JSONRPC."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

import click

from flask_noderpc.protocol.comet.hashes import tx_hash

from .chains import HUNDRED, LARGE, THOUSAND, Chain, build
from .compare import Bench, Row, by_turns, rows, sample
from .peers import bare, cometbft
from .peers.bare import JSONRPC, PYWSGI, VIEW
from .peers.ours import COMMON, WAYS, ours, reading
from .process import Server
from .table import Table, of_rows
from .wrk import Ask

COMETBFT = cometbft.NAME
PEERS = (PYWSGI, VIEW, JSONRPC, COMETBFT)

Targets = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Workload:
    """A request, and its minimum speed in each way."""

    name: str
    ask: Callable[[], Ask]
    targets: Targets
    is_immutable: bool = True
    """Whether the response is always the same, so that bare servers can send it."""
    has_twin: bool = True
    """Whether CometBFT's chain has the same content."""

    def bare(self) -> tuple[str, ...]:
        """Bare servers that can serve this workload."""
        if not self.is_immutable:
            return ()
        return (PYWSGI, VIEW, JSONRPC) if self.ask().bodies else (PYWSGI, VIEW)


def get(name: str, path: str, flask: float = 0.0, start: float = 0.0) -> Workload:
    """Return a GET with the minimum ratios to CometBFT through Flask and by ``noderpc
    start``."""
    targets = {
        "Flask": {VIEW: 0.65, **({COMETBFT: flask} if flask else {})},
        "noderpc start": {PYWSGI: 1.4, **({COMETBFT: start} if start else {})},
    }
    return Workload(name, lambda: Ask((path,)), targets)


def post(name: str, body: object, least: float = 0.0) -> Workload:
    """Return a POST with the minimum ratio to CometBFT."""
    targets = {way: {COMETBFT: least} for way in WAYS} if least else {}
    return Workload(name, lambda: Ask(bodies=(json.dumps(body),)), targets)


def _block(number: int = 0) -> dict[str, object]:
    return {**cometbft.call("block", height=str(500 + number)), "id": number}


_ON_A_THOUSAND = (
    get("health", "/health"),
    get("status", "/status", start=1.0),
    get("block, 10 txs", "/block?height=500", start=1.0),
    get("block_results", "/block_results?height=500", flask=3.0, start=6.0),
    get("commit, 1 validator", "/commit?height=500", start=1.0),
    get("blockchain", "/blockchain?minHeight=480&maxHeight=499", flask=3.0, start=6.0),
    get("tx", f"/tx?hash=0x{tx_hash(b'k500.3=v3').hex()}"),
    get("tx_search, 10 hits", "/tx_search?query=%22tx.height=500%22", flask=2.0, start=2.0),
    get("abci_query", "/abci_query?data=%22k500.3%22"),
    post("POST block", _block()),
    post("POST batch of 10", [_block(number) for number in range(10)]),
    post("POST batch of 100", [_block(number) for number in range(100)], least=8.0),
)
_ON_A_HUNDRED = (
    get("validators (100)", "/validators?height=9&per_page=100"),
    # On a real chain 100 validators have signed; the CometBFT of this benchmark has one that
    # signs.
    Workload("commit, 100 validators", lambda: Ask(("/commit?height=9",)), {}, has_twin=False),
)


@dataclass(frozen=True, slots=True)
class Stage:
    """Servers of one chain, and their workloads."""

    workloads: tuple[Workload, ...]
    chain: Chain | None
    """The chain; ``None`` is a new one, which grows."""
    keeps: bool = True
    """Whether our node may cache responses."""


STAGES = (
    Stage(_ON_A_THOUSAND, THOUSAND),
    Stage((get("block, 2,000 txs", "/block?height=3", flask=10.0, start=10.0),), LARGE),
    Stage(_ON_A_HUNDRED, HUNDRED),
)


def compare(bench: Bench) -> Table:
    """Return the table of all requests of the node."""
    found = [row for stage in STAGES for row in stage_rows(bench, stage)]
    return of_rows("nodes", PEERS, found)


def stage_rows(bench: Bench, stage: Stage) -> Iterator[Row]:
    """Measure a stage's workloads against its servers."""
    with ExitStack() as stack:
        servers = {
            way: stack.enter_context(ours(way, *_settings(bench, stage))) for way in WAYS
        }
        with bench.may_miss(COMETBFT):
            servers[COMETBFT] = stack.enter_context(of_cometbft(bench, stage.chain))
        for workload in stage.workloads:
            yield from _measure(bench, workload, servers)


def _settings(bench: Bench, stage: Stage) -> tuple[Path, dict[str, object]]:
    """Return the home and the settings of our node."""
    home = Path(mkdtemp(dir=bench.scratch))
    if stage.chain is None:
        return home, {**COMMON, "database": str(home / "noderpc.db"), "mempool_size": 1_000_000}
    kept = {} if stage.keeps else {"cache_bytes": 0}
    return home, reading(build(stage.chain, bench.scratch), **kept)


@contextmanager
def of_cometbft(bench: Bench, chain: Chain | None, interval: str = "1s") -> Iterator[Server]:
    """Run CometBFT with a chain of as many transactions, or with a new one."""
    program = cometbft.binary(bench.cache)
    home = bench.scratch / f"cometbft-{chain.name if chain else 'new'}-{interval}"
    if chain is None:
        cometbft.make_home(program, home)
    elif not home.exists():
        click.echo(f"filling {COMETBFT}: {chain.blocks} blocks of {chain.txs} transactions")
        cometbft.fill(program, home, chain)
    with cometbft.cometbft(program, home, interval) as server:
        yield server


def _measure(bench: Bench, workload: Workload, servers: Mapping[str, Server]) -> list[Row]:
    """Measure all servers that can serve a workload, alternately."""
    asked = {
        peer: server
        for peer, server in servers.items()
        if peer != COMETBFT or workload.has_twin
    }
    answers = {peer: sample(server, workload.ask) for peer, server in asked.items()}
    sizes = {peer: len(answer) for peer, answer in answers.items()}
    if max(sizes.values()) > 2 * min(sizes.values()) + 1000:
        raise click.ClickException(f"{workload.name}: answers differ in size: {sizes}")
    with ExitStack() as stack:
        for kind in workload.bare():
            file = bench.scratch / f"{len(answers)}.answer"
            with bench.may_miss(kind):
                asked[kind] = stack.enter_context(bare.bare(kind, file, answers["Flask"]))
        runs = by_turns(bench, workload.name, asked, lambda _: workload.ask())
    return rows(workload.name, runs, workload.targets)
