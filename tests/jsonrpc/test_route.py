"""Tests of the route table, and of what is derived from its rows."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from flask_noderpc import COMETBFT_ROUTES, ConfigurationError, MemoryChain, Route, RouteTable
from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.domain.responses import Empty
from flask_noderpc.errors import Busy, SearchTooCostly
from flask_noderpc.jsonrpc.context import Context
from flask_noderpc.jsonrpc.params import NoParams, Params, param, specs
from flask_noderpc.jsonrpc.route import ALWAYS, AT_HEIGHT, NEVER, Cache
from flask_noderpc.jsonrpc.waiters import ScanLimit, WaiterLimit
from flask_noderpc.testing import make_chain
from flask_noderpc.testing.node import app_for
from flask_noderpc.wire.params import Int64
from tests.interface.shapes import DOCUMENT


@dataclass(frozen=True, slots=True)
class Sample(Params):
    """Parameters with a height."""

    height: int | None = param(Int64(), default=None, doc="Which block.")


def handler(ctx: Context, params: NoParams) -> Empty:
    """The first
    sentence.

    Further text.
    """
    return Empty()


def bare(ctx: Context, params: NoParams) -> Empty:
    return Empty()


ONE = Route("one", handler, NoParams, Empty)
FINAL, YOUNG = Empty(), Empty()


def test_a_name_stands_in_a_table_once() -> None:
    with pytest.raises(ConfigurationError, match="route 'one' is declared twice; remove one"):
        RouteTable((ONE, ONE))
    with pytest.raises(ConfigurationError, match="declared twice"):
        RouteTable((ONE,)).__add__((ONE,))


def test_tables_are_added_in_order() -> None:
    second = (Route("two", bare, NoParams, Empty),)

    table = RouteTable((ONE,)) + second

    assert isinstance(table, RouteTable)
    assert [route.name for route in table] == ["one", "two"]
    assert list(table.by_name()) == ["one", "two"]


def test_the_sentence_of_a_route_is_that_of_its_handler() -> None:
    assert ONE.doc == "The first sentence."
    assert Route("two", bare, NoParams, Empty).doc == ""


def test_every_route_and_every_parameter_has_a_sentence() -> None:
    for route in COMETBFT_ROUTES:
        assert route.doc.endswith("."), route.name
        assert all(spec.doc.endswith(".") for spec in specs(route.params)), route.name


def test_the_routes_and_parameters_are_those_of_the_document_in_its_order() -> None:
    ours = [
        (route.name, [spec.wire for spec in specs(route.params)]) for route in COMETBFT_ROUTES
    ]
    theirs = [
        (route["name"], [row["name"] for row in route["params"]])
        for route in DOCUMENT["routes"]
    ]

    assert ours[: len(theirs)] == theirs
    assert [name for name, _ in ours[len(theirs) :]] == [
        "header",
        "header_by_hash",
        "broadcast_tx_commit",
        "broadcast_evidence",
        "consensus_state",
        "dump_consensus_state",
        "tx_search",
        "block_search",
        "events",
    ]


@pytest.mark.parametrize(
    ("cache", "height", "answer", "allowed"),
    [
        (NEVER, 5, FINAL, False),
        (ALWAYS, None, FINAL, True),
        (AT_HEIGHT, None, FINAL, False),
        (AT_HEIGHT, 5, FINAL, True),
        (Cache(immutable_with="height", final=lambda answer: answer is FINAL), 5, FINAL, True),
        (Cache(immutable_with="height", final=lambda answer: answer is FINAL), 5, YOUNG, False),
        (
            Cache(immutable_with="height", final=lambda answer: answer is FINAL),
            None,
            FINAL,
            False,
        ),
    ],
)
def test_immutable_answers_are_cached(
    cache: Cache, height: int | None, answer: Empty, allowed: bool
) -> None:
    def sample(ctx: Context, params: Sample) -> Empty:
        """Answers."""
        return answer

    backend = ChainBackend(MemoryChain(make_chain().genesis))
    app = app_for(backend, routes=(Route("sample", sample, Sample, Empty, cache),))
    query = {} if height is None else {"height": height}
    response = app.test_client().get("/sample", query_string=query)
    assert ("Cache-Control" in response.headers) is allowed


def test_waiters_are_counted_and_released() -> None:
    waiters = WaiterLimit(2, "NODERPC_X")

    with (
        waiters.acquire(),
        waiters.acquire(),
        pytest.raises(Busy, match="2 calls are already waiting; raise NODERPC_X"),
    ):
        waiters.acquire().__enter__()
    with waiters.acquire():
        pass


def test_the_client_with_the_most_waiters_loses_one() -> None:
    waiters = WaiterLimit(3, "NODERPC_X")
    backend = ChainBackend(MemoryChain(make_chain().genesis))
    hog = [waiters.acquire("hog") for _ in range(3)]
    first, second, _ = [each.__enter__() for each in hog]
    with waiters.acquire("guest") as guest:
        with pytest.raises(Busy, match=r"3 of this client.*raise NODERPC_X"):
            first.wait_for_height(backend.reads, 10, 30)
        for waiting in (second, guest):
            assert waiting.wait_for_height(backend.reads, 10, 0) < 10
        with pytest.raises(Busy):
            waiters.acquire("hog").__enter__()
    hog[0].__exit__(None, None, None)
    # Tickets that were taken back are not released twice.
    with waiters.acquire("guest"), pytest.raises(Busy):
        waiters.acquire("guest").__enter__()


def test_scan_tickets_are_waited_for_and_released() -> None:
    scans = ScanLimit(0.01)

    with (
        scans.acquire(),
        scans.acquire(),
        pytest.raises(SearchTooCostly, match="NODERPC_SEARCH_TIMEOUT"),
    ):
        scans.acquire().__enter__()
    with scans.acquire():
        pass
