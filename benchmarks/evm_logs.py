"""Cost of ``eth_getLogs`` on short and long chains: ``python -m benchmarks.evm_logs``.

Builds chains of 1,000 and of 10,000 blocks with ten logs each (``--blocks 100000`` is the
full size), and compares what ten rare logs cost, found by address and topic over the whole
chain. Prints times, their ratio, and what the index takes of the file. The chains are built
once and kept.
"""

from __future__ import annotations

import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

import click
from flask.testing import FlaskClient

from flask_noderpc import CommittedBlock, SQLiteBackend
from flask_noderpc.ethereum.ethermint_double import (
    EmittedLog,
    EthermintDouble,
    log_calldata,
    log_contract,
)
from flask_noderpc.protocol.secp256k1eth import to_checksum
from flask_noderpc.testing.chains import ChainMaker
from flask_noderpc.testing.node import app_for
from tests.ethereum.protocol.signing import transfer

FOLDER = Path(tempfile.gettempdir()) / "noderpc-evm-logs"
LOGS_PER_BLOCK = 10
_CONTRACTS = 100
_HITS = 10
_GROUP = 250
_ROUNDS = 15

TRANSFER, RARE = b"\xdd" * 32, b"\x77" * 32
TOKEN = log_contract(7)


def _account(number: int) -> bytes:
    """Return a topic that few logs have."""
    return (number * 0x9E3779B97F4A7C15 % 2**64).to_bytes(8).rjust(32, b"\0")


def made(maker: ChainMaker, blocks: int) -> Iterator[CommittedBlock]:
    """Yield blocks of transfers between accounts; ten transfers have a rare receiver."""
    apart = blocks // _HITS
    for height in range(blocks):
        logs = [
            EmittedLog((TRANSFER, _account(height), _account(height * 10 + number)), bytes(32))
            for number in range(LOGS_PER_BLOCK)
        ]
        to = log_contract(height % _CONTRACTS)
        if height % apart == apart // 2:
            to, logs[3] = TOKEN, EmittedLog((TRANSFER, _account(height), RARE), bytes(32))
        data = log_calldata(*logs)
        yield maker.block(
            transfer(height, to=to_checksum(to), value=0, data=data, gas=1_000_000)
        )


def build(path: Path, blocks: int) -> SQLiteBackend:
    """Return the chain, and build it if it is missing."""
    backend = SQLiteBackend(path)
    if backend.reads.latest_height() == blocks:
        return backend
    maker = ChainMaker(chain_id=f"logs-{blocks}", application=EthermintDouble)
    backend.init_chain(maker.genesis, maker.state)
    stream, storing = made(maker, blocks), 0.0
    with click.progressbar(length=blocks, label=f"{blocks} blocks") as bar:
        while group := tuple(islice(stream, _GROUP)):
            started = time.perf_counter()
            backend.append_block(*group)
            storing += time.perf_counter() - started
            bar.update(len(group))
    click.echo(f"stored in {storing:.0f} s")
    return backend


def show_size(path: Path, blocks: int) -> None:
    """Print the size of the index in the file."""
    with closing(sqlite3.connect(path)) as at:
        at.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        rows = at.execute("SELECT count(*) FROM evm_hits").fetchone()[0]
        page, count = (at.execute(f"PRAGMA page_{x}").fetchone()[0] for x in ("size", "count"))
        with tempfile.TemporaryDirectory() as folder:
            alone = _index_alone(at, Path(folder) / "index.db")
    logs = blocks * LOGS_PER_BLOCK
    click.echo(
        f"{logs} logs: {page * count / 1e6:.0f} MB, with the index ({rows} rows, packed)"
        f" {alone / 1e6:.0f} MB: {alone / logs:.0f} bytes a log"
    )


def _index_alone(at: sqlite3.Connection, path: Path) -> int:
    at.execute("ATTACH ? AS alone", (str(path),))
    at.execute(
        "CREATE TABLE alone.evm_hits (key INTEGER NOT NULL, place INTEGER NOT NULL,"
        " PRIMARY KEY (key, place)) STRICT, WITHOUT ROWID"
    )
    at.execute("INSERT INTO alone.evm_hits SELECT * FROM main.evm_hits ORDER BY key, place")
    at.commit()
    at.execute("DETACH alone")
    return path.stat().st_size


def ask(client: FlaskClient, latest: int) -> float:
    """Return the seconds of one call that finds ten logs in the whole chain."""
    wanted = {
        "fromBlock": "0x1",
        "toBlock": hex(latest),
        "address": "0x" + TOKEN.hex(),
        "topics": ["0x" + TRANSFER.hex(), None, "0x" + RARE.hex()],
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "eth_getLogs", "params": [wanted]}
    started = time.perf_counter()
    answer = client.post("/evm", json=body)
    taken = time.perf_counter() - started
    assert len(answer.get_json()["result"]) == _HITS, answer.text
    return taken


def cost(backend: SQLiteBackend) -> float:
    """Return the seconds of a call whose blocks are not cached."""
    client = app_for(backend, json_rpc_enable=True, evm_block_range_cap=10**9).test_client()
    return ask(client, backend.reads.latest_height())


@click.command()
@click.option("--blocks", default=10_000, show_default=True)
@click.option("--folder", type=click.Path(path_type=Path), default=FOLDER, show_default=True)
def main(blocks: int, folder: Path) -> None:
    """Build both chains and compare them."""
    folder.mkdir(parents=True, exist_ok=True)
    sizes = (1_000, blocks)
    chains = [build(folder / f"{size}.db", size) for size in sizes]
    show_size(folder / f"{blocks}.db", blocks)
    figures: list[list[float]] = [[], []]
    for _ in range(_ROUNDS):
        for column, chain in zip(figures, chains, strict=True):
            column.append(cost(chain))
    short, long = map(statistics.median, figures)
    click.echo(
        f"ten hits: {short * 1e3:.1f} ms in {sizes[0]} blocks, {long * 1e3:.1f} ms in"
        f" {sizes[1]}: {long / short:.2f} times"
    )
    for chain in chains:
        chain.close()


if __name__ == "__main__":
    main()
