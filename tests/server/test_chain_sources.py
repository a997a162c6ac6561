"""Tests that ``noderpc start`` divides the work on a feature's chain as its source says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ..helpers.banner import rows
from ..helpers.http import HttpStatusError
from ..helpers.until import until
from .node_process import started

# Python imports sitecustomize at the start of each process.
_PATCH = """
from flask_noderpc import feature

ARCHIVE = feature.Feature(name="archive", chain_sources={"trust": "archive:Archive"})
FEATURES = (*feature.features(), ARCHIVE)
feature.features = lambda: FEATURES
"""
_SOURCE = """
from contextlib import contextmanager
from pathlib import Path

from flask_noderpc import ChainBackend, MemoryChain
from flask_noderpc.chain.source import ChainSource, Process
from flask_noderpc.testing import make_chain


class Archived(ChainBackend):
    def follow(self):
        FOLDER.joinpath("followed").write_text("x")


class Archive(ChainSource):
    def backend(self):
        global FOLDER
        FOLDER = Path(self.path).parent
        chain = make_chain(7)
        return Archived(MemoryChain(chain.genesis, chain.blocks, state=chain.state))

    def dialect(self):
        return "comet-0.38"

    def description(self):
        return f"the archive {self.settings.value('trust')}"

    def nodes(self):
        return ["http://archive:1"]

    def processes(self):
        return [Process(serves=False), Process(settings={"moniker": "first"})]

    @contextmanager
    def watch(self, dialect, *, has_bars):
        assert dialect == "comet-0.38"
        upgraded = Path(self.path).parent / "upgraded"
        yield lambda: {"dialect": "comet-1.0" if upgraded.exists() else dialect}
"""


def test_the_processes_are_those_of_the_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(_PATCH)
    (tmp_path / "archive.py").write_text(_SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    path = f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}".rstrip(":")
    monkeypatch.setenv("PYTHONPATH", path)
    data = tmp_path / "data"

    with started(tmp_path, "--trust", "old", "--workers", "2") as node:
        node.until_up()
        until(lambda: "curl" in rows(node.log.read_text()), "the banner")
        shown = rows(node.log.read_text())["chain"]
        assert shown[0].endswith("the archive old, dialect comet-0.38")
        assert len(node.children()) == 2
        assert (data / "followed").exists()
        assert node.height() == 7

        (data / "upgraded").touch()

        def serves_the_new() -> bool:
            try:
                return bool(node.get("/v1/health") == {})
            except (OSError, HttpStatusError):
                return False

        until(serves_the_new, "the new dialect")
        assert node.end() == 0
