"""Kill a process with SIGKILL during pruning; each block must be complete or gone."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

from flask_noderpc.testing.chains import ChainMaker, make_blocks
from tests.backends.leftovers import assert_no_leftovers
from tests.helpers.until import PATIENCE, until

from .processes import (
    ROOT,
    is_long,
    opened,
    processes,
)

MOMENTS = 50 if is_long() else 4
EACH = 100
BLOCKS = EACH * MOMENTS
PRUNE = "from flask_noderpc.cli import main; main()"


def base_of(database: Path) -> int:
    with closing(sqlite3.connect(database, timeout=PATIENCE)) as at:
        return int(at.execute("SELECT min(height) FROM blocks").fetchone()[0])


def test_a_store_is_consistent_after_pruning_is_killed(tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    randomness = random.Random(seed)
    database, maker = tmp_path / "chain.db", ChainMaker((10,))
    with opened(database) as store:
        store.init_chain(maker.genesis, maker.state)
        store.append_block(*make_blocks(maker, BLOCKS, 1))

    halfway = 0
    for moment in range(1, MOMENTS + 1):
        before, retain = base_of(database), BLOCKS - EACH * moment + 10
        process = subprocess.Popen(
            [sys.executable, "-c", PRUNE, "prune", str(database), "--retain", str(retain)],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
        )
        until(lambda before=before: base_of(database) > before, "it prunes")  # type: ignore[misc]
        threading.Event().wait(randomness.random() * 0.05)
        process.kill()
        process.wait(PATIENCE)

        with opened(database) as store:
            base = store.reads.base_height()
            halfway += base < BLOCKS - retain + 1
            assert store.verify() == BLOCKS - base + 1
            assert_no_leftovers(store, base)

    # On a fast machine, a few kills may all come after the last block was removed.
    assert halfway or not is_long()
    with opened(database) as store:
        store.append_block(maker.block(b"next=1"))
        assert store.prune(5) > 0
        assert store.verify() == 5


def test_a_node_that_prunes_is_killed_and_goes_on(tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    randomness = random.Random(seed)
    database, latest = tmp_path / "chain.db", 0
    with processes() as start:
        for _ in range(MOMENTS // 2):
            node = start(database, 0.005, lease=0.2, empty=True, retain=5)
            node.wait_until_it_serves()
            with opened(database) as store:
                assert store.reads.wait_for_height(latest + 10, PATIENCE) > latest + 10
            threading.Event().wait(randomness.random() * 0.02)
            node.kill()

            with opened(database) as store:
                base, latest = store.reads.base_height(), store.reads.latest_height()
                # The last process may have been killed before it pruned.
                assert latest - base + 1 in (5, 6)
                assert store.verify() == latest - base + 1
                assert_no_leftovers(store, base)
                assert store.application.info().last_block_height == latest
