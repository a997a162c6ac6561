"""Tests of ``noderpc start`` and ``noderpc follow`` with a companion, as an operator sees
them."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import threading
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from flask_noderpc.testing.node import app_for, run_node, serve
from tests.helpers.http import HttpStatusError
from tests.helpers.process import Process, killed
from tests.helpers.until import PATIENCE, until
from tests.server.node_process import started

from .test_follow import grown

pytestmark = pytest.mark.integration


def _read(terminal: int, shown: list[bytes]) -> None:
    with suppress(OSError):
        while text := os.read(terminal, 4096):
            shown.append(text)


def test_a_backfill_has_a_progress_bar_on_a_terminal(tmp_path: Path) -> None:
    """An import has the same bar."""
    command = [sys.executable, "-c", "from flask_noderpc.cli import main; main()", "follow"]
    terminal, theirs = pty.openpty()
    shown: list[bytes] = []
    with run_node(dialect="comet-0.38") as node:
        flags = ["--upstream", grown(node, 60).url, "--database", str(tmp_path / "copy.db")]
        # At this rate the progress bar is visible.
        flags += ["--upstream-rate", "30", "--trust-period", "99999d"]
        with subprocess.Popen([*command, *flags], stdout=theirs, stderr=theirs) as follower:
            try:
                threading.Thread(target=_read, args=(terminal, shown), daemon=True).start()
                until(lambda: b"backfill" in b"".join(shown), "the bar")
                until(lambda: b"100%" in b"".join(shown), "its end")
                follower.terminate()
                assert follower.wait(PATIENCE) == 0
            finally:
                follower.kill()
    os.close(theirs)


def test_followed_blocks_and_the_backfill_are_lines_of_json(tmp_path: Path) -> None:
    program = [sys.executable, "-c", "from flask_noderpc.cli import main; main()", "follow"]
    log = tmp_path / "follow.log"
    with run_node(dialect="comet-0.38") as node:
        flags = ["--upstream", grown(node, 30).url, "--database", str(tmp_path / "copy.db")]
        flags += ["--trust-period", "99999d", "--log-format", "json"]
        with killed(Process([*program, *flags], log)) as follower:
            until(lambda: "backfill: 2" in log.read_text(), "the end of the backfill")
            grown(node, 1)
            until(lambda: '"event": "block"' in log.read_text(), "a block")
            assert follower.end() == 0
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    block = next(line for line in lines if line["event"] == "block")
    assert block["height"] >= 30
    assert {"txs", "lag_seconds"} <= block.keys()


def test_an_upgrade_of_the_nodes_is_served_without_a_restart(tmp_path: Path) -> None:
    """The serving processes are replaced one after another."""
    with run_node(dialect="comet-0.38") as node:
        chain = grown(node, 5).chain
        old, new = (app_for(chain, dialect=name) for name in ("comet-0.38", "comet-1.0"))
        flags = ("--workers", "2", "--trust-period", "99999d", "--upstream-poll", "0.1")
        with ExitStack() as stack:
            with serve(old) as url:
                companion = stack.enter_context(started(tmp_path, "--upstream", url, *flags))
                companion.until_up()
                until(lambda: companion.height() >= 5, "the blocks")
                with pytest.raises(HttpStatusError, match="404"):
                    companion.get("/v1/block?height=3")
            before = companion.children()
            stack.enter_context(serve(new, int(url.rpartition(":")[2])))

            def serves_the_new() -> bool:
                # Both processes accept connections.
                with suppress(OSError):
                    return all(companion.get("/v1/block?height=3") for _ in range(8))
                return False

            until(serves_the_new, "the new dialect")
            until(
                lambda: len(set(companion.children()) & set(before)) == 1, "the follower alone"
            )
            assert "to comet-1.0, which is served now" in companion.log.read_text()
            assert companion.end() == 0
