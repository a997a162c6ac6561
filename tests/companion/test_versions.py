"""Tests of how the dialect of a node is found, by its version and by its responses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from flask_noderpc.companion.upstream import Upstream
from flask_noderpc.testing import SampleChain
from flask_noderpc.testing.node import run_node
from flask_noderpc.wire.dialects import DIALECTS

from .conftest import HEIGHTS, LIMITS, node_of
from .forked import forked_node, sei_results
from .test_follow import grown

NAMES = [name for name in DIALECTS if name.startswith("comet")]


@pytest.mark.parametrize(
    ("version", "name"),
    [
        *((DIALECTS[name].node_version, name) for name in (*NAMES, "document")),
        # `go install` built CometBFT 0.40.0 with this version.
        ("0.39.0", "comet-0.40"),
        ("0.39.0", "comet-0.39"),
        # Forks have different version numbers.
        *(("6.1-fork", name) for name in NAMES),
        ("v0.38.17-sei", "comet-0.38"),
    ],
)
def test_the_dialect_of_a_node(
    version: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(DIALECTS, name, replace(DIALECTS[name], node_version=version))
    with run_node(dialect=name) as node:
        grown(node, 1)
        found = Upstream(node.url, limits=LIMITS)
        assert found.dialect.name == name
        found.close()


@pytest.mark.parametrize("version", ["0.35.0-unreleased", "6.1-fork"])
def test_the_dialect_of_a_node_of_sei(version: str, chain: SampleChain) -> None:
    """The version names it, and so do its results, which have events like 0.38 and bytes like
    0.34."""

    def tell(status: Any) -> None:
        status["node_info"]["version"] = version

    changes = {"status": tell, "block_results": sei_results}
    with forked_node(node_of(chain, HEIGHTS), "comet-0.34", changes) as node:
        found = Upstream(node, limits=LIMITS)
        assert found.dialect.name == "comet-0.34"
        found.close()
