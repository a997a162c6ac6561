"""Tests of the number of workers that ``noderpc start`` has by default."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from flask_noderpc.concurrency import usable_cores

from ..helpers.banner import rows
from ..helpers.until import until
from .node_process import COMMAND, Node, started

_CORES = min(usable_cores(), 8)


def _wait_for_banner(node: Node) -> dict[str, list[str]]:
    until(lambda: "curl" in rows(node.log.read_text()), "the banner")
    return rows(node.log.read_text())


def test_by_default_each_core_has_a_worker(tmp_path: Path) -> None:
    with started(tmp_path, "--workers", "auto") as node:
        shown = _wait_for_banner(node)

        if _CORES == 1:
            assert len(node.children()) == 1
            assert "processes" not in shown
        else:
            assert len(node.children()) == _CORES + 1
            assert shown["processes"] == [f"{_CORES} to serve, and 1 to produce blocks"]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs Linux's CPU affinity")
def test_a_node_on_one_core_is_one_process(tmp_path: Path) -> None:
    core = min(os.sched_getaffinity(0))
    command = ["taskset", "-c", str(core), *COMMAND, "--home", str(tmp_path)]
    flags = ("--rpc.laddr", "tcp://127.0.0.1:0", "--workers", "auto")
    with started(tmp_path, *flags, command=command) as node:
        _wait_for_banner(node)

        assert len(node.children()) == 1


def test_a_development_chain_is_one_process(tmp_path: Path) -> None:
    with started(tmp_path, "--dev", "--workers", "auto") as node:
        _wait_for_banner(node)

        assert len(node.children()) == 1


def test_an_app_is_one_process(tmp_path: Path) -> None:
    app = tmp_path / "app.py"
    app.write_text(
        "from flask import Flask\n"
        "from flask_noderpc import NodeRPC\n"
        "app = Flask(__name__)\n"
        f"NodeRPC(app, database={str(tmp_path / 'chain.db')!r},"
        " rpc_laddr='tcp://127.0.0.1:0')\n"
    )
    command = [*COMMAND[:1], "-m", "flask", "--app", str(app), "noderpc", "start"]
    with started(tmp_path, command=command) as node:
        _wait_for_banner(node)

        assert len(node.children()) == 1
