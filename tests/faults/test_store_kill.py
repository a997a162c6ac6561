"""kill -9 while a store appends, is filled downwards, or is migrated: what was answered as
stored is there, and what is there verifies."""

from __future__ import annotations

import gzip
import random
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from flask_noderpc import SQLiteBackend
from flask_noderpc.testing.chains import ChainMaker, make_blocks

from .processes import ROOT, is_long

pytestmark = pytest.mark.integration

MOMENTS = 50 if is_long() else 6
BLOCKS, TRUSTED = 240, 120
GOLDEN = ROOT / "tests" / "golden" / "store_0.1_whole.db.gz"
MIGRATED = 140

# Prints each height as soon as it is stored.
APPEND = """
import sys
from flask_noderpc import CommittedBlock, SQLiteBackend

whole, store = SQLiteBackend(sys.argv[1]), SQLiteBackend(sys.argv[2])
print("begun", flush=True)
for height in range(store.head().height + 1, whole.latest_height() + 1):
    block = whole.block(height)[1]
    store.append_block(CommittedBlock(block, whole.commit(height), whole.results(height)))
    print(height, flush=True)
"""
BACKFILL = """
import sys
from flask_noderpc import SQLiteBackend
from flask_noderpc.backends.base.store import OlderBlock

whole, store = SQLiteBackend(sys.argv[1]), SQLiteBackend(sys.argv[2])
print("begun", flush=True)
for height in range((store.base_height() or int(sys.argv[3]) + 1) - 1, 0, -1):
    block, results = whole.block(height)[1], whole.results(height)
    store.backfill(OlderBlock(block, results, whole.validators(height)))
    print(height, flush=True)
"""
MIGRATE = """
import sys
from flask_noderpc import SQLiteBackend
from flask_noderpc.backends.sqlite import migration

migration._STEP_S = -1.0
print("begun", flush=True)
SQLiteBackend(sys.argv[2]).migrate(lambda remaining: print(remaining, flush=True))
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A chain of several validators, whose store the processes copy."""
    path, maker = tmp_path_factory.mktemp("whole") / "whole.db", ChainMaker((10, 7, 3))
    with closing(SQLiteBackend(path)) as store:
        store.init_chain(maker.genesis, maker.state)
        store.append_block(*make_blocks(maker, BLOCKS, 3))
    return path


def begin(path: Path, whole: Path) -> None:
    with closing(SQLiteBackend(path)) as store, closing(SQLiteBackend(whole)) as chain:
        first, second, third = (chain.validators(TRUSTED + n) for n in range(3))
        store.init_at(
            chain.chain_id(),
            1,
            chain.block_meta(TRUSTED).header,
            chain.commit(TRUSTED),
            (first, second, third),
            chain.consensus_params(TRUSTED + 1),
        )


def killed(script: str, seconds: float, *args: object) -> list[int]:
    """Run a script and kill it so long after it began; return the numbers that it printed."""
    with subprocess.Popen(
        [sys.executable, "-c", script, *map(str, args)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        threading.Event().wait(seconds)
        process.kill()
        lines = process.stdout.read().splitlines(keepends=True)
    # The last line may have been cut off.
    return [int(line) for line in lines if line.endswith("\n")]


def moments() -> list[float]:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    randomness = random.Random(seed)
    return [randomness.random() * 0.1 for _ in range(MOMENTS)]


def check(store: SQLiteBackend) -> None:
    if store.latest_height():
        assert store.verify() == store.latest_height() - store.base_height() + 1


def test_blocks_that_were_appended_are_there(tmp_path: Path, whole: Path) -> None:
    path = tmp_path / "chain.db"
    begin(path, whole)

    for seconds in moments():
        stored = killed(APPEND, seconds, whole, path)
        with closing(SQLiteBackend(path)) as store:
            assert store.latest_height() >= max(stored, default=0)
            check(store)


def test_blocks_that_were_filled_in_are_there(tmp_path: Path, whole: Path) -> None:
    path = tmp_path / "chain.db"
    begin(path, whole)

    for seconds in moments():
        stored = killed(BACKFILL, seconds, whole, path, TRUSTED)
        with closing(SQLiteBackend(path)) as store:
            assert (1 if stored else 0) <= store.base_height() <= min(stored, default=TRUSTED)
            check(store)


def test_a_migration_that_was_killed_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "chain.db"
    for seconds in moments():
        path.write_bytes(gzip.decompress(GOLDEN.read_bytes()))

        killed(MIGRATE, seconds, "", path)

        with closing(SQLiteBackend(path)) as store:
            store.migrate()
            assert store.verify() == MIGRATED
        for each in tmp_path.glob("chain.db*"):
            each.unlink()
