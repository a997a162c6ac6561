"""Speed of a chain of the Cosmos SDK's bank: ``python -m benchmarks.bank``.

Prints how long ``noderpc start --application bank --dev`` takes in an empty folder from its
start to the first signed transfer in a block; how long each of 100 transfers takes from
``broadcast_tx_sync`` to ``tx`` by its hash, and to its event on a websocket, with instant
blocks; and how many transfers a second are checked, executed and stored. The node is on the
first core, the load on the second.
"""

from __future__ import annotations

import base64
import json
import os
import tempfile
import time
from contextlib import closing
from pathlib import Path
from statistics import median

import click

from flask_noderpc.protocol.comet.hashes import tx_hash
from tests.cosmos.bank.bank_txs import ALICE, BOB, CAROL, KEYS, Draft, send
from tests.helpers.websocket import WebSocketClient

from .peers.cometbft import call
from .peers.ours import COMMON, noderpc_start
from .process import PATIENCE_S, Server, until

CHAIN = "bank-benchmark"
SENDS, BATCH = 100, 100
SETTINGS = {**COMMON, "application": "bank", "dev": True, "chain_id": CHAIN}


def _transfer(sequence: int, who: int = 0) -> bytes:
    message = send(ALICE, BOB) if who == 0 else send(BOB, CAROL)
    return Draft((message,), sequence, who, KEYS[who], CHAIN).signed()


def _ask(server: Server, method: str, **params: object) -> dict[str, object]:
    found: dict[str, object] = json.loads(server.ask(body=json.dumps(call(method, **params))))
    return found


def _send(server: Server, raw: bytes) -> None:
    answer = _ask(server, "broadcast_tx_sync", tx=base64.b64encode(raw).decode())
    result = answer["result"]
    assert isinstance(result, dict)
    if result["code"] != 0:
        raise click.ClickException(str(answer))


def _await(server: Server, raw: bytes) -> None:
    number = base64.b64encode(tx_hash(raw)).decode()
    until(lambda: "result" in _ask(server, "tx", hash=number), "a transaction", every_s=0.001)


def _sent_and_found(server: Server, sequence: int) -> float:
    raw = _transfer(sequence)
    began = time.perf_counter()
    _send(server, raw)
    _await(server, raw)
    return time.perf_counter() - began


def _sent_and_heard(server: Server, client: WebSocketClient, sequence: int) -> float:
    raw = _transfer(sequence)
    began = time.perf_counter()
    _send(server, raw)
    client.read()
    return time.perf_counter() - began


def _per_second(server: Server, count: int) -> float:
    """Send transfers of one account in batches, and wait for their blocks."""
    raws = [_transfer(sequence, 1) for sequence in range(count)]
    began = time.perf_counter()
    for start in range(0, count, BATCH):
        part = raws[start : start + BATCH]
        calls = [call("broadcast_tx_sync", tx=base64.b64encode(raw).decode()) for raw in part]
        answers = json.loads(server.ask(body=json.dumps(calls)))
        if any(answer["result"]["code"] != 0 for answer in answers):
            raise click.ClickException(str(answers)[:300])
    _await(server, raws[-1])
    return count / (time.perf_counter() - began)


@click.command()
@click.option("--transfers", default=3_000, show_default=True, help="Of the last part.")
def main(transfers: int) -> None:
    """Print the figures."""
    os.sched_setaffinity(0, {1})
    with tempfile.TemporaryDirectory() as folder:
        raw, began = _transfer(0), time.perf_counter()
        with noderpc_start(Path(folder), SETTINGS) as server, server.awake():
            _send(server, raw)
            _await(server, raw)
            click.echo(f"start to first transfer: {time.perf_counter() - began:.2f} s")
            found = [_sent_and_found(server, number) for number in range(1, SENDS)]
            with closing(WebSocketClient(server.url, timeout=PATIENCE_S)) as client:
                assert client.asked("subscribe", {"query": "tm.event='Tx'"})["result"] == {}
                heard = [
                    _sent_and_heard(server, client, number)
                    for number in range(SENDS, 2 * SENDS)
                ]
            for name, taken in (("tx", found), ("event", heard)):
                half, most = median(taken) * 1000, max(taken) * 1000
                click.echo(f"send to {name}: half {half:.1f} ms, at most {most:.1f} ms")
            click.echo(f"{_per_second(server, transfers):,.0f} transfers a second")


if __name__ == "__main__":
    main()
