"""Tests of power losses while a store appends, is backfilled, prunes, is compacted or migrated:
what was reported as stored is there, and the rest verifies.

A shim records every write and flush of a process. At random points of that record, files are
made as a power loss may leave them: with everything that was flushed, and with some, none, or
some sectors of the later writes.
"""

from __future__ import annotations

import gzip
import random
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from flask_noderpc import SQLiteBackend
from tests.backends.leftovers import assert_no_leftovers

from .crashes import Disk, Operation, recorded
from .half_chain import BLOCKS, TRUSTED, begin, check
from .processes import is_long
from .test_store_kill import GOLDEN, MIGRATED

POINTS = 100 if is_long() else 8
ANSWERED = "answered"
# Number of blocks of the store that is compacted.
KEPT = 40

# The script writes each height into a file as soon as it is stored, and sometimes opens the
# store again.
_COMMON = """
import os, sys
from flask_noderpc import CommittedBlock, SQLiteBackend
from flask_noderpc.backends.base.new_blocks import OlderBlock

whole, path, trusted = SQLiteBackend(sys.argv[1]), sys.argv[2], int(sys.argv[3])
store = SQLiteBackend(path, max_log_bytes=int(sys.argv[4]))
answers = os.open(os.path.join(os.path.dirname(path), "answered"), os.O_CREAT | os.O_WRONLY)

def answered(height):
    os.write(answers, b"%d\\n" % height)
    if height % 50 == 0:
        store.close()
"""
APPEND = """
for height in range(trusted + 1, whole.reads.latest_height() + 1):
    block = whole.reads.block(height)[1]
    commit, results = whole.reads.commit(height), whole.reads.results(height)
    store.append_block(CommittedBlock(block, commit, results))
    answered(height)
"""
BACKFILL = """
for height in range(trusted, 0, -1):
    block, results = whole.reads.block(height)[1], whole.reads.results(height)
    store.backfill(OlderBlock(block, results, whole.reads.validators(height)))
    answered(height)
"""
PRUNE = """
for base in range(2, 200):
    store.prune_some(base)
    answered(base)
"""
COMPACT = """
store.compact()
answered(1)
"""
MIGRATE = """
from flask_noderpc.backends.sqlite import schema

schema._STEP_S = -1.0
store.migrate(answered)
"""
# Sizes of the WAL with occasional checkpoints, and with one after most blocks.
LOGS = (64 << 20, 100_000)
UNFLUSHED = """
from flask_noderpc.backends.sqlite.connection import SQLiteFile

configure = SQLiteFile._configure

def configure_less(self, connection):
    configure(self, connection)
    connection.execute("PRAGMA synchronous = NORMAL")

SQLiteFile._configure = configure_less
"""


class Loss(NamedTuple):
    """The store after a power loss, and the heights that had been reported as stored."""

    path: Path
    heights: Sequence[int]


def losses(
    before: Path, done: Sequence[Operation], scratch: Path, count: int = POINTS
) -> Iterator[Loss]:
    """Yield the stores that power losses at random points of a record leave."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}, {len(done)} operations")
    randomness, disk, heights = random.Random(seed), Disk(before), list[int]()
    points = set(randomness.sample(range(len(done) + 1), count))
    for number, each in enumerate([*done, None]):
        if number in points:
            folder = scratch / "after"
            folder.mkdir()
            disk.crash(randomness, folder)
            for index in folder.glob("*-shm"):
                # SQLite needs nothing in this file.
                index.write_bytes(randomness.randbytes(1 << 15))
            yield Loss(folder / "chain.db", tuple(heights))
            shutil.rmtree(folder)
        if each is not None and each.name == ANSWERED:
            heights += [int(each.data)] if each.data else []
        elif each is not None:
            disk.do(each)


def record(
    script: str,
    whole: Path,
    tmp_path: Path,
    log_bytes: int = LOGS[0],
    store: Path | None = None,
) -> list[Operation]:
    """Return the operations of a script on a copy of a store, or on a store that begins at a
    trusted block."""
    before, folder = tmp_path / "before", tmp_path / "store"
    before.mkdir()
    if store is None:
        begin(before / "chain.db", whole)
    else:
        shutil.copy(store, before / "chain.db")
    shutil.copytree(before, folder)
    path = folder / "chain.db"
    return recorded(_COMMON + script, folder, tmp_path, whole, path, TRUSTED, log_bytes)


@pytest.mark.parametrize("log_bytes", LOGS)
def test_blocks_that_were_appended_survive_a_power_loss(
    tmp_path: Path, whole: Path, log_bytes: int
) -> None:
    done = record(APPEND, whole, tmp_path, log_bytes)

    for loss in losses(tmp_path / "before", done, tmp_path):
        with closing(SQLiteBackend(loss.path)) as store, closing(SQLiteBackend(whole)) as chain:
            assert store.reads.latest_height() >= max(loss.heights, default=0)
            check(store, chain)


@pytest.mark.parametrize("log_bytes", LOGS)
def test_blocks_that_were_filled_in_survive_a_power_loss(
    tmp_path: Path, whole: Path, log_bytes: int
) -> None:
    done = record(BACKFILL, whole, tmp_path, log_bytes)

    for loss in losses(tmp_path / "before", done, tmp_path):
        with closing(SQLiteBackend(loss.path)) as store, closing(SQLiteBackend(whole)) as chain:
            lowest = store.reads.base_height() or TRUSTED + 1
            assert lowest <= min(loss.heights, default=TRUSTED + 1)
            check(store, chain)


def test_blocks_that_were_pruned_stay_away(tmp_path: Path, whole: Path) -> None:
    done = record(PRUNE, whole, tmp_path, LOGS[1], whole)

    for loss in losses(tmp_path / "before", done, tmp_path):
        with closing(SQLiteBackend(loss.path)) as store:
            base = store.reads.base_height()
            assert base >= max(loss.heights, default=1)
            assert store.verify() == BLOCKS - base + 1
            assert_no_leftovers(store, base)


def test_a_compaction_leaves_the_store_or_its_copy(tmp_path: Path, whole: Path) -> None:
    pruned = tmp_path / "pruned.db"
    shutil.copy(whole, pruned)
    with closing(SQLiteBackend(pruned)) as store:
        store.prune(KEPT)
    before = pruned.stat().st_size
    done = record(COMPACT, whole, tmp_path, LOGS[0], pruned)

    for loss in losses(tmp_path / "before", done, tmp_path):
        with closing(SQLiteBackend(loss.path)) as store:
            assert store.verify() == KEPT
        if loss.heights:
            assert loss.path.stat().st_size < before


def test_a_migration_goes_on_after_a_power_loss(tmp_path: Path, whole: Path) -> None:
    old = tmp_path / "old.db"
    old.write_bytes(gzip.decompress(GOLDEN.read_bytes()))
    done = record(MIGRATE, whole, tmp_path, LOGS[0], old)

    for loss in losses(tmp_path / "before", done, tmp_path):
        with closing(SQLiteBackend(loss.path)) as store:
            assert store.migrate() <= min(loss.heights, default=MIGRATED)
            assert store.verify() == MIGRATED


def test_a_store_that_flushed_less_would_lose_blocks(tmp_path: Path, whole: Path) -> None:
    done = record(UNFLUSHED + APPEND, whole, tmp_path)

    lost = 0
    for loss in losses(tmp_path / "before", done, tmp_path, 20):
        with closing(SQLiteBackend(loss.path)) as store:
            lost += store.reads.latest_height() < max(loss.heights, default=0)
    assert lost
