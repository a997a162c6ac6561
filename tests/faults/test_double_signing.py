"""Kill a node with SIGKILL at random times, and check that a validator never signs two
different blocks for one height, round and step, in anything that leaves the processes."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import defaultdict
from contextlib import closing, suppress
from http.client import HTTPException
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from flask_noderpc.chain import home
from flask_noderpc.chain.validator_keys import read_record
from flask_noderpc.protocol.protobuf import Message
from tests.helpers.until import PATIENCE, until

from ..helpers.http import get
from ..helpers.websocket import WebSocketClient
from .processes import Process, is_long, opened, processes

KILLS = 50 if is_long() else 3
STATE = "data/priv_validator_state.json"
_GONE = (OSError, HTTPException, ValueError)


class Witness:
    """The signed blocks for each height and round that have become visible anywhere."""

    def __init__(self, home: Path) -> None:
        self.seen: defaultdict[tuple[int, int], set[str]] = defaultdict(set)
        self.recovered = self.told = 0
        self._state = home / STATE
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._read_state)]
        self._threads[0].start()

    def watch(self, url: str) -> None:
        """Poll a node, and subscribe to it, until it is killed."""
        for work in (self._poll, self._listen):
            thread = threading.Thread(target=work, args=(url,))
            self._threads.append(thread)
            thread.start()

    def note_record(self) -> int:
        """Add the content of the record; return its height."""
        record = read_record(self._state)
        assert record is not None
        if record.sign_bytes:
            vote = Message(Message(b"\x0a" + record.sign_bytes).blob(1))
            block_hash = Message(vote.blob(4)).blob(1).hex().upper()
            self.seen[record.height, record.round].add(block_hash)
        return record.height

    def note_commit(self, commit: dict[str, Any]) -> None:
        """Add the signatures of a commit."""
        height, block_hash = int(commit["height"]), commit["block_id"]["hash"]
        if height:
            self.seen[height, int(commit["round"])].add(block_hash)

    def _read_state(self) -> None:
        while not self._ended.wait(0.001):
            self.note_record()

    def _poll(self, url: str) -> None:
        with suppress(*_GONE):
            for number in count():
                if self._ended.is_set():
                    return
                # A block made after the kill differs, as it has other transactions.
                get(url, f'/broadcast_tx_sync?tx="{url[-5:]}.{number}=value"')
                self.note_commit(get(url, "/commit").result["signed_header"]["commit"])

    def _listen(self, url: str) -> None:
        with suppress(*_GONE), closing(WebSocketClient(url)) as client:
            client.asked("subscribe", ["tm.event='NewBlock'"])
            while (text := client.read()) is not None and not self._ended.is_set():
                self.note_commit(
                    json.loads(text)["result"]["data"]["value"]["block"]["last_commit"]
                )
                self.told += 1

    def close(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()


def kill_one(
    nodes: list[Process], witness: Witness, database: Path, randomness: random.Random
) -> None:
    """Kill a process that has just made blocks, and count a signature without a block."""
    before = witness.note_record()
    until(lambda: witness.note_record() > before + 1, "two more blocks are signed")
    threading.Event().wait(randomness.random() * 0.03)
    nodes.pop(randomness.randrange(len(nodes))).kill()
    if not nodes:
        signed = witness.note_record()
        with opened(database) as backend:
            witness.recovered += signed > backend.reads.latest_height()


@pytest.mark.parametrize("at_once", [1, 2])
def test_no_height_and_round_is_signed_for_two_blocks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], at_once: int
) -> None:
    seed = random.randrange(1 << 32)
    randomness = random.Random(seed)
    database = tmp_path / "chain.db"
    nodes: list[Process] = []
    home.create(tmp_path, None, time.time_ns())

    with processes() as start, closing(Witness(tmp_path)) as witness:
        for _ in range(KILLS):
            while len(nodes) < at_once:
                nodes.append(start(database, 0.01, lease=0.2, empty=True))
                witness.watch(nodes[-1].wait_until_it_serves())
            kill_one(nodes, witness, database, randomness)
        last = start(database, 0.01, lease=0.2, empty=True)
        last.wait_until_it_serves()
        assert last.stop() == 0

    with opened(database) as backend:
        assert backend.verify() == backend.reads.latest_height()
        for height in range(1, backend.reads.latest_height() + 1):
            commit = backend.reads.commit(height)
            witness.seen[height, commit.round].add(commit.block_id.hash.hex().upper())
    conflicts = {key: blocks for key, blocks in witness.seen.items() if len(blocks) > 1}
    assert conflicts == {}
    assert witness.told
    assert len(witness.seen) > KILLS
    rounds = sum(round_number > 0 for _, round_number in witness.seen)
    with capsys.disabled():
        print(
            f" [{KILLS} kills, {len(witness.seen)} heights and rounds, {rounds} later rounds,"
            f" {witness.recovered} signatures without a block, seed {seed}]",
            end=" ",
        )
