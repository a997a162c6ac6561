"""Tests of the methods of other nodes: each is served by a development chain, or the docs have
the reason why it is not."""

from __future__ import annotations

import tomllib
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from flask_noderpc.ethereum.api import NAMESPACES
from flask_noderpc.ethereum.rpc.routes import SESSION_METHODS

from .dev.fixtures import chain_of, dev_app

DATA = Path(__file__).parents[3] / "docs" / "ethereum" / "other_nodes.toml"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    app = dev_app(tmp_path_factory.mktemp("dev"), evm_api=NAMESPACES)
    call = {"jsonrpc": "2.0", "id": 1, "method": "rpc.discover"}
    with closing(chain_of(app)):
        document = app.test_client().post("/evm", json=call).get_json()["result"]
    return {method["name"] for method in document["methods"]} | SESSION_METHODS


def methods_of(namespaces: dict[str, str]) -> set[str]:
    return {f"{name}_{each}" for name, found in namespaces.items() for each in found.split()}


def document() -> dict[str, Any]:
    return tomllib.loads(DATA.read_text())


def reasons() -> list[str]:
    return [name for methods in document()["reasons"].values() for name in methods.split()]


@pytest.mark.parametrize(("node", "namespaces"), document()["nodes"].items())
def test_each_method_is_served_or_has_a_reason(
    served: set[str], node: str, namespaces: dict[str, str]
) -> None:
    found = methods_of(namespaces)
    assert len(found) >= 10, node
    assert found - served - {*reasons()} == set()


def test_each_reason_is_of_a_method_that_is_not_served(served: set[str]) -> None:
    known = set().union(*map(methods_of, document()["nodes"].values()))
    assert len(set(reasons())) == len(reasons())
    assert served.isdisjoint(reasons())
    assert known.issuperset(reasons())
