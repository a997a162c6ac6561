"""Kill a process that follows or imports a chain with SIGKILL; the next one continues."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from flask_noderpc import SQLiteBackend
from flask_noderpc.backends import open_store
from flask_noderpc.testing.node import Node, run_node
from tests.helpers.postgres import Cluster
from tests.helpers.process import Process
from tests.helpers.until import until

from .processes import ROOT, is_long

pytestmark = pytest.mark.integration

MOMENTS = 100 if is_long() else 2
# The script starts at once, although the lease of a killed process has not expired.
FOLLOW = """
import sys
from flask_noderpc.cli import main
from flask_noderpc.companion import decoding, lease

lease._SECONDS, lease._WAIT_S = 0.5, 60.0
# Blocks of any size are decoded in other processes.
decoding._WORTH_BYTES = 0
main(sys.argv[1:])
"""


def _grow(node: Node, blocks: int) -> int:
    for _ in range(blocks):
        node.chain.mempool.submit(b"key%d=value" % node.chain.reads.latest_height())
        node.produce()
    return node.chain.reads.latest_height()


def test_a_killed_follower_is_followed_by_another(tmp_path: Path) -> None:
    """The follower is killed while it backfills, and while it follows the head."""
    path = tmp_path / "copy.db"
    with run_node(dialect="comet-0.38") as node:
        _grow(node, 300)
        command = [sys.executable, "-c", FOLLOW, "follow", "--upstream", node.url]
        command += ["--database", str(path), "--upstream-poll", "0.05"]
        command += ["--trust-period", "99999d"]

        def begin() -> Process:
            return Process(command, tmp_path / "log", cwd=ROOT)

        for moment in range(MOMENTS):
            follower = begin()
            until(path.exists, "the store")
            # Kill at any moment: during the start, the backfill, or the wait for a block.
            time.sleep(random.Random(moment).uniform(0, 2))
            _grow(node, 2)
            follower.kill()
        follower = begin()
        with closing(SQLiteBackend(path)) as store:
            height = _grow(node, 3)
            until(
                lambda: store.has_chain() and store.reads.latest_height() == height, "the head"
            )
            until(lambda: store.reads.base_height() == 1, "the first block")
            assert follower.end() == 0
            assert store.verify() == height
            for at in range(1, height + 1):
                assert store.reads.block(at) == node.chain.reads.block(at)
                assert store.reads.results(at) == node.chain.reads.results(at)


@pytest.fixture(params=["sqlite", "postgres"])
def locations(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Names of new stores, one after the other."""
    if request.param == "sqlite":
        return (str(tmp_path / f"copy{number}.db") for number in count())
    cluster: Cluster = request.getfixturevalue("cluster")
    return (cluster.new_database() for _ in count())


def test_a_killed_import_goes_on(tmp_path: Path, locations: Iterator[str]) -> None:
    """The import continues downwards from its first trusted header, and upwards to the new
    blocks; two other processes decode."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    randomness, killed = random.Random(seed), 0
    with run_node(dialect="comet-0.38") as node:
        _grow(node, 300)
        while killed < MOMENTS:
            location = next(locations)
            command = [sys.executable, "-c", FOLLOW, "import", node.url, "--jobs", "2"]
            command += ["--database", location, "--trust-period", "99999d"]
            importing = Process(command, tmp_path / "log", cwd=ROOT)
            while killed < MOMENTS:
                # Kill at any moment: during the start, while a header is trusted, or while
                # chunks are decoded or stored.
                time.sleep(randomness.uniform(0, 3))
                if importing.has_ended():
                    break
                importing.kill()
                killed += 1
                _grow(node, 2)
                importing = Process(command, tmp_path / "log", cwd=ROOT)
            last = node.chain.reads.latest_height() - 1
            assert importing.wait() == 0, (tmp_path / "log").read_text()
            with closing(open_store(location)) as store:
                assert (store.reads.base_height(), store.reads.latest_height()) == (1, last)
                assert store.verify() == last
                for at in range(1, last + 1):
                    assert store.reads.block(at) == node.chain.reads.block(at)
                    assert store.reads.results(at) == node.chain.reads.results(at)
