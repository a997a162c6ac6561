"""Tests of two ``noderpc start`` processes with one home."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from flask_noderpc.chain.block_scheduler import BlockSchedule

from ..faults.processes import check_duration, producer
from ..helpers.until import until
from ..server.node_process import Node, started

LEASE_S = BlockSchedule().lease_s
# Seconds that a busy machine takes to find a free lease and to make a block.
MORE_S = 7.0
BUSY = ("--empty-blocks", "--block-interval", "0.1")


def family(node: Node) -> set[int]:
    return {node.pid, *node.children()}


@pytest.mark.parametrize("workers", ["1", "2"])
def test_another_node_takes_over_from_one_that_was_killed(tmp_path: Path, workers: str) -> None:
    database = tmp_path / "data" / "noderpc.db"
    flags = (*BUSY, "--workers", workers)
    with ExitStack() as stack:
        # Both start together: one makes the home, and the other finds it.
        nodes = [stack.enter_context(started(tmp_path, *flags, log=f"{n}.log")) for n in "ab"]
        for node in nodes:
            node.until_up()
        until(lambda: nodes[0].height() > 3, "blocks")
        assert nodes[0].get("/genesis") == nodes[1].get("/genesis")
        producing, other = nodes if producer(database) in family(nodes[0]) else nodes[::-1]
        assert producer(database) in family(producing)

        victims = family(producing)
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        killed = time.monotonic()
        # Transactions that were being committed are in the store now.
        until(lambda: not any(_is_there(pid) for pid in victims), "their end")
        last = other.height()
        until(lambda: other.height() > last, "the next block")
        check_duration(time.monotonic() - killed, LEASE_S + MORE_S)

        assert producer(database) in family(other)
        heights = [
            int(meta["header"]["height"])
            for meta in other.get(f"/blockchain?minHeight={last - 2}&maxHeight={last + 1}")[
                "block_metas"
            ]
        ]
        assert heights == [last + 1, last, last - 1, last - 2]
        assert other.end() == 0
    message = subprocess.run(
        [
            sys.executable,
            "-c",
            "from flask_noderpc.cli import main; main()",
            "verify",
            database,
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    verified = re.search(r"(\d+) blocks verified", message.stdout)
    assert verified
    assert int(verified[1]) > last


def _is_there(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    # A zombie process has only its name left.
    return "\nState:\tZ" not in status


def test_a_serving_node_shows_blocks_of_the_producer(tmp_path: Path) -> None:
    with ExitStack() as stack:
        making = stack.enter_context(started(tmp_path, *BUSY))
        making.until_up()
        serving = stack.enter_context(
            started(tmp_path, *BUSY, "--produce", "false", log="serving.log")
        )
        serving.until_up()
        answer = serving.get('/broadcast_tx_commit?tx="a=1"')
        assert int(answer["height"]) > 0
        assert producer(tmp_path / "data" / "noderpc.db") in family(making)
        before = serving.height()
        until(lambda: serving.height() > before + 3, "blocks of the other")
