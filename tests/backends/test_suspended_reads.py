"""Tests of reads that wait while their store is suspended, as before a fork."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from flask_noderpc import SQLiteBackend
from flask_noderpc.testing.chains import ChainMaker
from tests.helpers.until import PATIENCE, until

pytestmark = pytest.mark.sqlite
READS = 3
# Each read notifies once before it waits, and once at its end; with some room.
_MOST_NOTIFIED = 10 * READS


def test_waiting_reads_do_not_wake_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maker, notified = ChainMaker(), list[None]()
    notify_all = threading.Condition.notify_all

    def counted(condition: threading.Condition) -> None:
        notified.append(None)
        notify_all(condition)

    with closing(SQLiteBackend(tmp_path / "a.db")) as store:
        store.init_chain(maker.genesis, maker.state)
        readers = store.reads.files().readers
        with ThreadPoolExecutor(READS + 1) as pool:
            with readers.snapshot():
                suspended = pool.submit(readers.suspend, PATIENCE)
                until(lambda: suspended.running() and readers._suspended, "the suspension")
                monkeypatch.setattr(threading.Condition, "notify_all", counted)
                reads = [pool.submit(readers.one, "SELECT 7") for _ in range(READS)]
                until(lambda: len(notified) >= READS, "the waiting reads")
                assert not any(read.done() for read in reads)
            assert suspended.result(PATIENCE)
            readers.resume()
            assert [read.result(PATIENCE) for read in reads] == [(7,)] * READS
    assert len(notified) <= _MOST_NOTIFIED
