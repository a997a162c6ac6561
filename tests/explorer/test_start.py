"""Tests of ``noderpc start --explorer``."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..helpers.http import get
from ..server.node_process import started

pytestmark = pytest.mark.integration


def test_a_node_has_an_explorer_if_it_is_asked_for(tmp_path: Path) -> None:
    with started(tmp_path, "--explorer", "--workers", "2") as node:
        node.until_up()
        url = node.url("explorer")
        assert url.endswith("/explorer/")
        found = get(url.removesuffix("/explorer/"), "/explorer/")
        assert (found.status, "Latest blocks" in found.text) == (200, True)
        assert "/explorer/" in get(node.url(), "/").text


def test_a_node_has_none_otherwise(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        node.until_up()
        assert get(node.url(), "/explorer/").status == 404
        assert "/explorer" not in node.log.read_text()
