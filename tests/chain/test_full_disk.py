"""Tests that a call which waits for a block gets an error at once on a full disk."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from shutil import disk_usage

import pytest

from flask_noderpc import EmbeddedChain
from flask_noderpc.chain.block_scheduler import BlockSchedule
from flask_noderpc.testing.node import app_for

pytestmark = pytest.mark.sqlite

FULL = "the disk or the page limit is full, nothing was written"
# This leaves room for a pending transaction, but not for its block.
SPARE_PAGES, TX = 80, b"key=" + b"x" * 200_000
# A timeout that the test never reaches.
TIMEOUT_S = 60.0


@pytest.fixture
def nearly_full(tmp_path: Path) -> Iterator[EmbeddedChain]:
    path = tmp_path / "chain.db"
    with closing(EmbeddedChain(path)) as chain:
        chain.start()
    with closing(sqlite3.connect(path)) as store:
        (pages,) = store.execute("PRAGMA page_count").fetchone()
    made = EmbeddedChain(path, max_pages=pages + SPARE_PAGES, schedule=BlockSchedule(0.2))
    with closing(made) as chain:
        yield chain


def waiting_call(chain: EmbeddedChain) -> str:
    """Return the response to a call whose transaction gets into no block."""
    client = app_for(chain, broadcast_timeout=TIMEOUT_S).test_client()
    return client.get(f"/broadcast_tx_commit?tx=0x{TX.hex()}").get_data(as_text=True)


def test_a_waiting_call_at_the_producer_reports_a_full_disk(nearly_full: EmbeddedChain) -> None:
    nearly_full.start()

    assert FULL in waiting_call(nearly_full)
    assert nearly_full.mempool.pending_count().total == 1


def test_a_call_that_waits_in_another_process(nearly_full: EmbeddedChain) -> None:
    nearly_full.start()
    with closing(EmbeddedChain(nearly_full.store.location.path, produce=False)) as other:
        assert FULL in waiting_call(other)


def test_a_waiting_call_reports_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(EmbeddedChain(tmp_path / "chain.db", produce=False)) as chain:
        chain.start()
        used = disk_usage(tmp_path)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: used._replace(free=4096))

        assert FULL in waiting_call(chain)
