"""Tests of a node with several workers on one database."""

from __future__ import annotations

from pathlib import Path

from tests.server.node_process import started
from tests.server.test_workers import has_same_head


def test_all_workers_have_a_block_that_one_has_reported(tmp_path: Path, url: str) -> None:
    # A worker that did not learn of the block would use its version for half a minute.
    database = f"{url}&poll_interval=30"
    flags = ("--workers", "2", "--block-interval", "0.05", "--empty-blocks=false")
    with started(tmp_path, "--database", database, *flags) as node:
        node.until_up()
        has_same_head(node)
