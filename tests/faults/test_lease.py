"""Tests that one process produces at a time, with pauses, kills and races, so that the chain
never forks."""

from __future__ import annotations

import signal
import time
from pathlib import Path

from flask_noderpc import SQLiteBackend
from flask_noderpc.chain.block_scheduler import BlockSchedule
from flask_noderpc.chain.embedded import EmbeddedChain
from tests.helpers.until import PATIENCE, until

from .processes import (
    Process,
    check_duration,
    is_long,
    is_signing,
    is_write_locked,
    opened,
    processes,
    producer,
)

LEASE = 0.5
ROUNDS = 20 if is_long() else 2


def grow(backend: SQLiteBackend, blocks: int) -> None:
    expected = backend.reads.latest_height() + blocks
    until(lambda: backend.reads.latest_height() >= expected, f"height {expected}")


def pause(process: Process, database: Path) -> None:
    """Stop a process while it neither writes nor signs, as it would hold a lock otherwise."""
    while True:
        process.pause()
        if not (is_write_locked(database) or is_signing(database.parent)):
            return
        process.send(signal.SIGCONT)


def test_a_producer_paused_past_its_lease_does_not_fork_the_chain(tmp_path: Path) -> None:
    database = tmp_path / "chain.db"
    with processes() as start, opened(database) as backend:
        first = start(database, interval=0.01, lease=LEASE, empty=True)
        first.wait_until_it_serves()
        grow(backend, 3)
        second = start(database, interval=0.01, lease=LEASE, empty=True)
        second.wait_until_it_serves()
        for _ in range(ROUNDS):
            paused, other = (
                (first, second) if producer(database) == first.pid else (second, first)
            )
            pause(paused, database)
            until(lambda: producer(database) == other.pid, "the other takes over")  # noqa: B023
            grow(backend, 3)

            paused.send(signal.SIGCONT)
            grow(backend, 20)

            assert paused.is_running()
            assert producer(database) == other.pid
        assert second.stop() == first.stop() == 0

        assert backend.verify() == backend.reads.latest_height()


def test_a_paused_producer_takes_over_when_the_other_stops(tmp_path: Path) -> None:
    database = tmp_path / "chain.db"
    with processes() as start, opened(database) as backend:
        first = start(database, interval=0.01, lease=LEASE, empty=True)
        first.wait_until_it_serves()
        grow(backend, 1)
        pause(first, database)
        second = start(database, interval=0.01, lease=LEASE, empty=True)
        second.wait_until_it_serves()
        until(lambda: producer(database) == second.pid, "the second takes over")
        first.send(signal.SIGCONT)

        assert second.stop() == 0
        until(lambda: producer(database) == first.pid, "the first takes over again")
        grow(backend, 3)

        assert first.stop() == 0
        assert backend.verify() == backend.reads.latest_height()


def test_another_takes_over_from_a_killed_producer_when_its_lease_lapses(
    tmp_path: Path,
) -> None:
    database = tmp_path / "chain.db"
    with processes() as start, opened(database) as backend:
        first = start(database, interval=0.05, lease=LEASE, empty=True)
        first.wait_until_it_serves()
        grow(backend, 2)
        second = start(database, interval=0.05, lease=LEASE, empty=True)
        second.wait_until_it_serves()

        first.kill()
        killed = time.monotonic()
        until(lambda: producer(database) == second.pid, "the second takes over")
        took = time.monotonic() - killed
        grow(backend, 3)

        # The lease time, a third of it until the next check, and time for a busy machine.
        check_duration(took, LEASE * 4 / 3 + 3)
        assert second.stop() == 0
        assert backend.verify() == backend.reads.latest_height()


def test_a_clean_stop_lets_the_next_in_long_before_the_lease_lapses(tmp_path: Path) -> None:
    database = tmp_path / "chain.db"
    with processes() as start, opened(database) as backend:
        first = start(database, interval=0.05, lease=600, empty=True)
        first.wait_until_it_serves()
        grow(backend, 1)
        second = start(database, interval=0.05, lease=600, empty=True)
        second.wait_until_it_serves()

        assert first.stop() == 0
        until(lambda: producer(database) == second.pid, "the second takes over")
        grow(backend, 2)

        assert second.stop() == 0
        assert backend.verify() == backend.reads.latest_height()


def test_producers_that_race_in_one_process_never_fork(tmp_path: Path) -> None:
    # A lease so short that it expires during blocks.
    schedule = BlockSchedule(0.001, empty_blocks=True, lease_s=0.002)
    chains = [EmbeddedChain(tmp_path / "chain.db", schedule=schedule) for _ in range(3)]
    try:
        for chain in chains:
            chain.start()
        for number in range(20):
            chains[number % 3].mempool.submit(b"key%d=value" % number)
        assert chains[0].reads.wait_for_height(59, PATIENCE) >= 60
    finally:
        for chain in chains:
            chain.close()

    with opened(tmp_path / "chain.db") as backend:
        height = backend.reads.latest_height()
        txs = [tx for at in range(1, height + 1) for tx in backend.reads.block(at)[1].txs]
        assert backend.verify() == height
        assert sorted(txs) == sorted(b"key%d=value" % number for number in range(20))


def test_producers_that_race_in_processes_never_fork(tmp_path: Path) -> None:
    database = tmp_path / "chain.db"
    with processes() as start, opened(database) as backend:
        nodes = [start(database, interval=0.001, lease=0.01, empty=True) for _ in range(3)]
        for node in nodes:
            node.wait_until_it_serves()
        by_pid = {node.pid: node for node in nodes}
        for _ in range(3):
            grow(backend, 20)
            # A process may hold such a short lease for long; pausing it ends that.
            owner = producer(database)
            if owner in by_pid:
                pause(by_pid[owner], database)
                until(lambda: producer(database) != owner, "another takes over")  # noqa: B023
                by_pid[owner].send(signal.SIGCONT)
        grow(backend, 20)
        assert [node.stop() for node in nodes] == [0, 0, 0]

        assert backend.verify() == backend.reads.latest_height()
