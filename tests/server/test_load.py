"""Tests of a node under load: no error, no lost event; a killed worker loses only its own
calls."""

from __future__ import annotations

import base64
import json
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from ..faults.followers import Place, Subscriber, events_after, place
from ..faults.processes import is_long
from ..helpers.http import call
from ..helpers.until import until
from .load_client import Readers
from .node_process import Node, started

LONG = is_long()
READERS, SUBSCRIBERS, SECONDS = (800, 100, 60) if LONG else (80, 10, 6)
SETTLING_S, KILL_EVERY_S = (20, 10) if LONG else (2, 2)
# Kilobytes that a process may grow by under constant load, after it has settled.
FLAT_KB = 4_000
Record = Callable[[str], None]
FIRST: Place = (1, 0)
"""Place of a transaction that exists before all clients connect."""
PATHS = (
    "/health",
    "/status",
    "/block",
    "/block?height=1",
    "/block_results?height=1",
    "/commit?height=1",
    "/validators",
    "/blockchain",
    "/abci_info",
    "/abci_query?data=0x6b657931",
    f"/tx_search?query={quote(json.dumps('tx.height=1'))}",
    "/net_info",
    "/genesis",
    "/consensus_params",
)


class Faithful(Subscriber):
    """A subscriber that reconnects whenever its connection is lost, and asks for missed
    events."""

    lost = 0
    """Number of lost connections."""

    def run(self) -> None:
        self.read_on()
        while self.is_away:
            self.lost += 1
            self._client.close()
            # The connection may be lost again before it is usable.
            try:
                self._come_back()
            except OSError:
                self.is_away = True

    def _come_back(self) -> None:
        self._client = self._connected()
        self._subscribe()
        # Subscribe first: events that the response lacks arrive as notifications.
        self._held: list[Any] = []
        self.told += self._missed()
        for match in self._held:
            self.note("match", match)
        self.is_away = False
        self.read_on()

    def note(self, kind: str, result: Any) -> None:
        # Events in the response may arrive as notifications, too.
        if not self.lost or place(result["data"]) not in self.told:
            super().note(kind, result)

    def _missed(self) -> list[Place]:
        items = events_after(self._ask, "", filter={"query": self._query})
        last = self.told[-1] if self.told else FIRST
        return [found for item in items if (found := place(item["data"])) > last]

    def _ask(self, **params: Any) -> Any:
        self._client.call("events", params, "answer")
        while (text := self._client.read()) is not None:
            message = json.loads(text)
            if message["id"] == "answer":
                return message["result"]
            self._held.append(message["result"])
        raise ConnectionResetError


class Sender(threading.Thread):
    """A thread that sends one transaction each second."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self._over = threading.Event()
        self.sent = self.cut = 0

    def run(self) -> None:
        while not self._over.wait(1.0):
            tx = base64.b64encode(b"key%d=value" % (self.sent + self.cut)).decode()
            try:
                assert int(call(self._url, "broadcast_tx_sync", [tx]).result["code"]) == 0
                self.sent += 1
            except (OSError, HTTPException):
                self.cut += 1

    def stop(self) -> None:
        """Stop sending."""
        self._over.set()
        self.join()


@contextmanager
def crowd(node: Node) -> Iterator[tuple[Readers, list[Faithful], Sender]]:
    """Run readers, subscribers and a sender."""
    url = node.url()
    subscribers = [Faithful(url, "Tx") for _ in range(SUBSCRIBERS)]
    readers, sender = Readers(url, PATHS, READERS), Sender(url)
    readers.start()
    sender.start()
    until(lambda: readers.open == READERS, "all connections")
    yield readers, subscribers, sender
    sender.stop()
    readers.stop()


def committed(node: Node) -> list[Place]:
    """Return the places of all transactions of the chain."""
    found: list[Place] = []
    query = quote(json.dumps("tx.height>0"))
    while True:
        page = f"page={1 + len(found) // 100}&per_page=100&order_by={quote(json.dumps('asc'))}"
        result = node.get(f"/tx_search?query={query}&{page}")
        found += [(int(tx["height"]), tx["index"]) for tx in result["txs"]]
        if len(found) >= int(result["total_count"]):
            return found


def sockets(pid: int) -> int:
    """Return the number of a process's open sockets."""
    found = 0
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            found += entry.readlink().name.startswith("socket:")
    return found


def memory_kb(pid: int) -> int:
    """Return the resident memory of a process in kilobytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])


@pytest.fixture
def record(capsys: pytest.CaptureFixture[str]) -> Record:
    """Return a function that prints a line of figures."""

    def show(line: str) -> None:
        with capsys.disabled():
            print(f" [{line}]", end=" ")

    return show


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    # The first transaction is in the first block.
    flags = ("--workers", "2", "--block-interval", "0.5", "--empty-blocks", "false")
    with started(tmp_path, *flags) as found:
        found.until_up()
        found.get(f"/broadcast_tx_commit?tx={quote(json.dumps('first=tx'))}")
        yield found


def test_no_client_sees_an_error_or_misses_an_event(node: Node, record: Record) -> None:
    with crowd(node) as (readers, subscribers, sender):
        time.sleep(SETTLING_S)
        before = {pid: memory_kb(pid) for pid in node.children()}
        time.sleep(SECONDS - SETTLING_S)
        after = {pid: memory_kb(pid) for pid in node.children()}
    tally = readers.tally
    record(
        f"{len(tally.seconds)} reads, half within {tally.percentile(0.5) * 1000:.0f} ms,"
        f" 99 % within {tally.percentile(0.99) * 1000:.0f} ms, KB {before}, then {after}"
    )
    assert not tally.bad
    assert (tally.cut, tally.refused, sender.cut) == (0, 0, 0)
    assert not any(subscriber.lost for subscriber in subscribers)
    all_are_told(node, subscribers, sender)
    assert before.keys() == after.keys()
    # The time until memory settles depends on the machine.
    assert not LONG or all(after[pid] - before[pid] <= FLAT_KB for pid in before)


def test_a_killed_process_fails_only_its_calls(node: Node, record: Record) -> None:
    held = kills = 0
    dice = random.Random(7)
    with crowd(node) as (readers, subscribers, sender):
        for _ in range(SECONDS // KILL_EVERY_S):
            time.sleep(KILL_EVERY_S)
            # The process that makes blocks has no connections.
            victim = dice.choice(sorted(node.children(), key=sockets)[-2:])
            held += sockets(victim)
            os.kill(victim, signal.SIGKILL)
            kills += 1
        until(lambda: readers.open == READERS, "all connections")
    tally = readers.tally
    lost = sum(subscriber.lost for subscriber in subscribers)
    record(
        f"{kills} kills, {len(tally.seconds)} reads, {tally.cut} of them cut off, {lost}"
        f" websockets lost, of {held} sockets, 99 % in {tally.percentile(0.99) * 1000:.0f} ms"
    )
    assert not tally.bad
    assert not tally.refused
    assert tally.cut + lost + sender.cut <= held
    all_are_told(node, subscribers, sender)


def all_are_told(node: Node, subscribers: list[Faithful], sender: Sender) -> None:
    """Check that each subscriber has each later transaction once and in order."""
    assert sender.sent > 0
    # The last transactions may still wait for their block.
    until(lambda: len(committed(node)) > sender.sent, "the last block")
    first, *expected = committed(node)
    assert first == FIRST
    until(
        lambda: all(
            len(each.told) >= len(expected) and not each.is_away for each in subscribers
        ),
        "the last events, also of those that were cut off after them",
    )
    for subscriber in subscribers:
        subscriber.end()
        assert subscriber.told == expected
