"""Tests that the WAL stays small, and that long reads are logged."""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from flask_noderpc import SQLiteBackend
from flask_noderpc.domain.search import Page, Search, SearchLimits
from flask_noderpc.testing.chains import ChainMaker
from tests.helpers.until import PATIENCE

from .conftest import OpenStore

pytestmark = pytest.mark.sqlite

# More than 1,000 pages, the size at which SQLite begins to empty the WAL.
LIMIT = 5_000_000


@pytest.fixture
def store(open_store: OpenStore, maker: ChainMaker) -> SQLiteBackend:
    backend = open_store(max_log_bytes=LIMIT)
    backend.init_chain(maker.genesis, maker.state)
    return backend


def size(path: Path) -> int:
    return path.with_name(path.name + "-wal").stat().st_size


@contextmanager
def long_reader(path: Path) -> Iterator[None]:
    """Hold a transaction open in another program."""
    with closing(sqlite3.connect(path, isolation_level=None)) as at:
        at.execute("BEGIN")
        at.execute("SELECT count(*) FROM blocks").fetchone()
        yield


def write(store: SQLiteBackend, maker: ChainMaker, expected: int) -> None:
    """Append blocks with this many bytes together."""
    for number in range(expected // 500_000):
        store.append_block(maker.block(b"%d=" % number + b"x" * 500_000))


def test_a_long_reader_is_logged_once_and_leaves_no_large_wal(
    store: SQLiteBackend, maker: ChainMaker, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "flask_noderpc.store"), long_reader(path):
        write(store, maker, 3 * LIMIT)
        deadline = time.monotonic() + 120
        while not caplog.messages and time.monotonic() < deadline:
            store.append_block(maker.block(b"meanwhile=1"))
        assert size(path) > 3 * LIMIT, "it can't be emptied"
    (received,) = caplog.messages
    assert f"{path}-wal has " in received
    assert "has read the store for long" in received

    deadline = time.monotonic() + 120
    while size(path) > LIMIT and time.monotonic() < deadline:
        store.append_block(maker.block(b"after=1"))
    assert size(path) <= LIMIT
    assert store.verify() == maker.head.height


def test_the_log_stays_small_while_the_store_is_read_and_searched(
    store: SQLiteBackend, maker: ChainMaker, path: Path, open_store: OpenStore
) -> None:
    other = open_store(max_log_bytes=LIMIT)
    store.append_block(maker.block(b"a=1"))
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            other.reads.block_metas(1, other.reads.latest_height())
            other.reads.search_txs(Search(), Page(0, 5, True), SearchLimits(PATIENCE))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    write(store, maker, 10 * LIMIT)
    deadline = time.monotonic() + 120
    while size(path) > LIMIT and time.monotonic() < deadline:
        write(store, maker, 500_000)
    left = size(path)
    stop.set()
    for reader in readers:
        reader.join(PATIENCE)

    assert left <= LIMIT


def test_a_write_hardly_waits_for_a_long_reader(
    store: SQLiteBackend, maker: ChainMaker, path: Path
) -> None:
    waited: list[str] = []

    with long_reader(path):
        write(store, maker, 2 * LIMIT)
        # The writer waits for other writers as long as before, and for readers only briefly.
        store._open().writer.run(
            lambda at: waited.append(str(at.execute("PRAGMA busy_timeout").fetchone()[0]))
        )

    assert waited == ["5000"]
