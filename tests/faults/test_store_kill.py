"""Kill a process with SIGKILL while a store appends, is backfilled, pruned, compacted or
migrated: what was reported as stored is there, and the rest verifies."""

from __future__ import annotations

import gzip
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from flask_noderpc import SQLiteBackend

from .half_chain import TRUSTED, begin, check
from .processes import ROOT, is_long

pytestmark = pytest.mark.integration

MOMENTS = 50 if is_long() else 4
# Numbers that a script prints before it is killed.
MOST = 20
GOLDEN = ROOT / "tests" / "golden" / "store_0.1_whole.db.gz"
MIGRATED = 140

# The script prints each height as soon as it is stored.
APPEND = """
import sys
from flask_noderpc import CommittedBlock, SQLiteBackend

whole, store = SQLiteBackend(sys.argv[1]), SQLiteBackend(sys.argv[2])
print("begun", flush=True)
for height in range(store.head().height + 1, whole.reads.latest_height() + 1):
    block = whole.reads.block(height)[1]
    commit, results = whole.reads.commit(height), whole.reads.results(height)
    store.append_block(CommittedBlock(block, commit, results))
    print(height, flush=True)
"""
BACKFILL = """
import sys
from flask_noderpc import SQLiteBackend
from flask_noderpc.backends.base.new_blocks import OlderBlock

whole, store = SQLiteBackend(sys.argv[1]), SQLiteBackend(sys.argv[2])
print("begun", flush=True)
for height in range((store.reads.base_height() or int(sys.argv[3]) + 1) - 1, 0, -1):
    block, results = whole.reads.block(height)[1], whole.reads.results(height)
    store.backfill(OlderBlock(block, results, whole.reads.validators(height)))
    print(height, flush=True)
"""
PRUNE = """
import sys
from flask_noderpc import SQLiteBackend

store = SQLiteBackend(sys.argv[2])
print("begun", flush=True)
while store.reads.latest_height() > store.reads.base_height():
    store.prune(store.reads.latest_height() - store.reads.base_height())
    print(store.reads.base_height(), flush=True)
"""
COMPACT = """
import sys
from flask_noderpc import SQLiteBackend

print("begun", flush=True)
while True:
    SQLiteBackend(sys.argv[2]).compact()
    print(0, flush=True)
"""
MIGRATE = """
import sys
from flask_noderpc import SQLiteBackend
from flask_noderpc.backends.sqlite import schema

schema._STEP_S = -1.0
print("begun", flush=True)
SQLiteBackend(sys.argv[2]).migrate(lambda remaining: print(remaining, flush=True))
"""


def killed(script: str, randomness: random.Random, *args: object) -> tuple[list[int], bool]:
    """Run a script, and kill it after some of the numbers that it prints; return all printed
    numbers, and true if it had not ended before."""
    with subprocess.Popen(
        [sys.executable, "-c", script, *map(str, args)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        lines = [process.stdout.readline() for _ in range(randomness.randrange(MOST))]
        threading.Event().wait(randomness.random() * 0.01)
        process.kill()
        lines += process.stdout.read().splitlines(keepends=True)
    # The last line may have been cut off.
    numbers = [int(line) for line in lines if line.endswith("\n")]
    return numbers, process.returncode == -signal.SIGKILL


def kills(script: str, whole: Path, path: Path) -> Iterator[list[int]]:
    """Kill a script several times; yield the heights that it stored each time.

    The store begins again when the chain ends.
    """
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    randomness, count = random.Random(seed), 0
    while count < MOMENTS:
        if not path.exists():
            begin(path, whole)
        stored, in_time = killed(script, randomness, whole, path, TRUSTED)
        yield stored
        count += in_time
        if not in_time:
            remove(path)


def remove(path: Path) -> None:
    for each in path.parent.glob(f"{path.name}*"):
        each.unlink()


def test_blocks_that_were_appended_are_there(tmp_path: Path, whole: Path) -> None:
    path = tmp_path / "chain.db"
    for stored in kills(APPEND, whole, path):
        with closing(SQLiteBackend(path)) as store, closing(SQLiteBackend(whole)) as chain:
            assert store.reads.latest_height() >= max(stored, default=0)
            check(store, chain)


def test_blocks_that_were_filled_in_are_there(tmp_path: Path, whole: Path) -> None:
    path = tmp_path / "chain.db"
    for stored in kills(BACKFILL, whole, path):
        with closing(SQLiteBackend(path)) as store, closing(SQLiteBackend(whole)) as chain:
            assert (store.reads.base_height() or TRUSTED + 1) <= min(
                stored, default=TRUSTED + 1
            )
            check(store, chain)


def test_blocks_that_were_not_pruned_are_there(tmp_path: Path, whole: Path) -> None:
    path, randomness = tmp_path / "chain.db", random.Random(0)
    for _ in range(MOMENTS):
        if not path.exists():
            path.write_bytes(whole.read_bytes())
        pruned, in_time = killed(PRUNE, randomness, "", path)
        with closing(SQLiteBackend(path)) as store, closing(SQLiteBackend(whole)) as chain:
            assert store.reads.base_height() >= max(pruned, default=1)
            assert store.reads.latest_height() == chain.reads.latest_height()
            check(store, chain)
        if not in_time:
            remove(path)


def test_a_compaction_that_was_killed_leaves_a_store(tmp_path: Path, whole: Path) -> None:
    path, randomness = tmp_path / "chain.db", random.Random(0)
    path.write_bytes(whole.read_bytes())
    for _ in range(MOMENTS):
        killed(COMPACT, randomness, "", path)
        with closing(SQLiteBackend(path)) as store, closing(SQLiteBackend(whole)) as chain:
            assert store.reads.latest_height() == chain.reads.latest_height()
            check(store, chain)

    with closing(SQLiteBackend(path)) as store:
        store.compact()
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_a_migration_that_was_killed_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "chain.db"
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    randomness, count = random.Random(seed), 0
    while count < MOMENTS:
        path.write_bytes(gzip.decompress(GOLDEN.read_bytes()))

        # Kill it several times on one store.
        in_time = True
        while in_time and count < MOMENTS and randomness.random() < 0.8:
            in_time = killed(MIGRATE, randomness, "", path)[1]
            count += in_time

        with closing(SQLiteBackend(path)) as store:
            store.migrate()
            assert store.verify() == MIGRATED
        remove(path)
