"""Kill a node with SIGKILL at random times; everything that was reported as committed must be
complete."""

from __future__ import annotations

import random
import threading
from http.client import HTTPException
from pathlib import Path

import pytest

from flask_noderpc import SQLiteBackend
from flask_noderpc.protocol.comet.hashes import tx_hash
from tests.helpers.until import PATIENCE, until

from ..helpers.http import get
from .processes import (
    PAIR_APPLICATIONS,
    Process,
    is_long,
    opened,
    processes,
)

MOMENTS = 100 if is_long() else 4
CLIENTS = 4


class Clients:
    """Threads that send transactions one after another, and record the responses."""

    def __init__(self, url: str, name: str) -> None:
        self.committed: dict[bytes, int] = {}
        self._url = url
        self._threads = [
            threading.Thread(target=self._send, args=(f"{name}.{number}",))
            for number in range(CLIENTS)
        ]
        for thread in self._threads:
            thread.start()

    def _send(self, name: str) -> None:
        number = 0
        while True:
            tx = f"{name}.{number}=value".encode()
            try:
                height = self._ask(tx)
            except (OSError, HTTPException):
                # The node is gone, perhaps during its response.
                return
            self.committed[tx] = height
            number += 1

    def _ask(self, tx: bytes) -> int:
        result = get(self._url, f"/broadcast_tx_commit?tx=0x{tx.hex()}").result
        assert int(result["height"]) > 0
        return int(result["height"])

    def join(self) -> None:
        for thread in self._threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()


def check(database: Path, application: str, committed: dict[bytes, int]) -> None:
    with opened(database, application) as backend:
        assert backend.verify() == backend.reads.latest_height()
        for tx, height in committed.items():
            assert (backend.reads.tx(tx_hash(tx)).height, backend.reads.tx(tx_hash(tx)).tx) == (
                height,
                tx,
            )
        check_state(backend)


def check_state(backend: SQLiteBackend) -> None:
    """Check that the application's state equals the state after the last block, pair by
    pair."""
    latest = backend.reads.latest_height()
    txs = [tx for height in range(1, latest + 1) for tx in backend.reads.block(height)[1].txs]
    info = backend.application.info()
    assert info.last_block_height == latest
    # The process may have been killed before its first block.
    assert not latest or info.last_block_app_hash == backend.reads.results(latest).app_hash
    assert info.data == f'{{"size":{len(txs)}}}'
    for tx in txs[-20:]:
        assert backend.application.query("", tx.split(b"=")[0], 0, False).value == b"value"
    assert len(set(txs)) == len(txs)


def serve_until_killed(node: Process, name: str, randomness: random.Random) -> dict[bytes, int]:
    clients = Clients(node.wait_until_it_serves(), name)
    enough = randomness.randrange(30)
    until(lambda: len(clients.committed) >= enough, f"{enough} transactions are committed")
    threading.Event().wait(randomness.random() * 0.03)
    node.kill()
    clients.join()
    return clients.committed


@pytest.mark.parametrize("application", PAIR_APPLICATIONS)
def test_a_killed_node_loses_nothing_that_it_answered_as_committed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], application: str
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    randomness = random.Random(seed)
    database = tmp_path / "chain.db"
    committed: dict[bytes, int] = {}

    with processes() as start:
        for moment in range(MOMENTS):
            node = start(database, 0.01, lease=0.2, application=application)
            committed |= serve_until_killed(node, f"m{moment}", randomness)
            # In half of the runs, the next node is the first to open the store.
            if randomness.random() < 0.5:
                check(database, application, committed)
        node = start(database, 0.01, lease=0.2, application=application)
        node.wait_until_it_serves()
        assert node.stop() == 0

    check(database, application, committed)
    with capsys.disabled():
        print(f" [{MOMENTS} kills, {len(committed)} transactions, seed {seed}]", end=" ")


def test_a_node_killed_while_it_makes_its_home_and_store_starts_again(tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    randomness = random.Random(seed)
    for moment in range(MOMENTS // 3):
        database = tmp_path / str(moment) / "chain.db"
        database.parent.mkdir()
        with processes() as start:
            node = start(database, interval=0.01, lease=0.2, empty=True)
            expected = randomness.choice(["config", "config/genesis.json", "chain.db"])
            until((database.parent / expected).exists, f"{expected} is there")
            threading.Event().wait(randomness.random() * 0.01)
            node.kill()
            again = start(database, interval=0.01, lease=0.2, empty=True)
            again.wait_until_it_serves()
            with opened(database) as backend:
                assert backend.reads.wait_for_height(2, PATIENCE) > 2
            assert again.stop() == 0
        with opened(database) as backend:
            assert backend.verify() > 2
