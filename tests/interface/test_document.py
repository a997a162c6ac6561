"""Tests that the document's tables are complete: every name in them is defined."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from .shapes import DOCUMENT, EXTRAS, SHAPES, Kind

ROUTES: list[dict[str, Any]] = DOCUMENT["routes"]


def shapes_in(kind: Kind) -> Iterator[str]:
    if isinstance(kind, str):
        return
    for name, inner in kind.items():
        if name == "shape":
            yield str(inner)
        else:
            yield from shapes_in(inner)


def test_the_routes_stand_in_the_order_of_the_document() -> None:
    assert [route["name"] for route in ROUTES] == [
        "health",
        "status",
        "net_info",
        "blockchain",
        "block",
        "block_by_hash",
        "block_results",
        "commit",
        "validators",
        "genesis",
        "genesis_chunked",
        "consensus_params",
        "unconfirmed_txs",
        "num_unconfirmed_txs",
        "tx",
        "broadcast_tx_sync",
        "broadcast_tx_async",
        "check_tx",
        "abci_info",
        "abci_query",
    ]


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route["name"])
def test_a_route_s_path_is_its_name(route: dict[str, Any]) -> None:
    assert route["path"] == "/" + route["name"]


def test_every_shape_is_used_and_every_used_one_is_there() -> None:
    used = {name for route in ROUTES for name in shapes_in(route["result"])}
    used |= {name for fields in SHAPES.values() for name in shapes_in(fields)}

    assert used == SHAPES.keys()


def test_extras_belong_to_a_shape_and_repeat_none_of_its_fields() -> None:
    assert EXTRAS.keys() <= SHAPES.keys()
    assert not any(SHAPES[name].keys() & extras.keys() for name, extras in EXTRAS.items())


def test_four_answers_carry_an_empty_error_member() -> None:
    # The document says "top-level `error` also present" for the result of broadcast_tx_sync;
    # the result of broadcast_tx_async has the same shape.
    named = [route["name"] for route in ROUTES if route.get("error_member")]

    assert named == ["broadcast_tx_sync", "broadcast_tx_async", "check_tx", "abci_query"]


def test_parameters_are_of_three_types() -> None:
    found = {param["type"] for route in ROUTES for param in route["params"]}

    assert found == {"integer", "string", "boolean"}
