"""Tests of searches on a chain that KVStore made: each rule of CometBFT 0.38's indexer.

KVStore gives each transaction two events with ``app.creator`` and ``app.key``: one by «Cosmoshi
Netowoko» with the key, one by «Cosmoshi» with the value.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from flask.testing import FlaskClient

from flask_noderpc.domain import search as search_limits
from flask_noderpc.protocol.comet.hashes import tx_hash
from flask_noderpc.testing.chains import ChainMaker
from flask_noderpc.testing.node import app_for
from tests.helpers.stores import make_store

from ..helpers.http import HttpResponse, client_call, client_get

BLOCKS = (
    (b"name=satoshi", b"n1=10"),
    (),
    (b"n2=9", b"n3=9.5", b"n4=8atom"),
    (b"n5=200", b"same=same"),
)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlaskClient]:
    backend = make_store(tmp_path_factory.mktemp("search") / "chain.db")
    maker = ChainMaker()
    backend.init_chain(maker.genesis, maker.state)
    backend.append_block(*(maker.block(*txs) for txs in BLOCKS))
    yield app_for(backend).test_client()
    backend.close()


def search(client: FlaskClient, query: str, **params: Any) -> Any:
    return client_call(client, "tx_search", {"query": query, **params})


def keys(client: FlaskClient, query: str, **params: Any) -> list[str]:
    """Return the keys of the found transactions, and check the total."""
    from base64 import b64decode

    result = search(client, query, **params)["result"]
    assert int(result["total_count"]) == len(result["txs"])
    return [b64decode(tx["tx"]).partition(b"=")[0].decode() for tx in result["txs"]]


NUMBERS = ["n1", "n2", "n3", "n4", "n5"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        # Keys that each transaction of some heights has.
        ("tx.height = 1", ["name", "n1"]),
        ("tx.height = 2", []),
        ("tx.height > 1 AND tx.height <= 3", ["n2", "n3", "n4"]),
        ("tx.height > 3.5", ["n5", "same"]),
        ("tx.height EXISTS", ["name", *NUMBERS, "same"]),
        ("tx.height = 1 AND tx.height = 4", ["name", "n1"]),
        ("tx.height = 1 AND tx.height > 3", ["n5", "same"]),
        ("tx.height = '1'", []),
        # A single condition compares the height as a string; with other conditions it is
        # compared as a number.
        ("tx.height = 01", []),
        ("tx.height = 01 AND app.key = 'n1'", ["n1"]),
        ("tx.height = 1 AND tx.height = 04", ["name", "n1"]),
        ("tx.height >= 01 AND tx.height <= 01", ["name", "n1"]),
        # Equality compares strings.
        ("app.key = 'satoshi'", ["name"]),
        ("app.key = 10", ["n1"]),
        ("app.key = 10.0", []),
        ("app.key = 'SATOSHI'", []),
        # Ranges compare numbers; 8atom is not a number.
        ("app.key > 9", ["n1", "n3", "n5"]),
        ("app.key >= 9 AND app.key < 10", ["n2", "n3"]),
        ("app.key < 9", []),
        ("app.key > DATE 2020-01-01", []),
        ("app.key CONTAINS 'atos'", ["name"]),
        ("app.key CONTAINS 'n' AND tx.height = 3", ["n2", "n3", "n4"]),
        ("app.key EXISTS AND tx.height >= 4", ["n5", "same"]),
        # A transaction with the key in both events counts once.
        ("app.key = 'same'", ["same"]),
        ("app.index_key EXISTS AND tx.height = 3", ["n2", "n3", "n4"]),
        # All conditions must hold within one event.
        ("app.creator = 'Cosmoshi' AND app.key = 'satoshi'", ["name"]),
        ("app.creator = 'Cosmoshi' AND app.key = 'name'", []),
        ("app.key = 'name' AND app.key = 'satoshi'", []),
        ("app.creator CONTAINS 'Neto' AND app.key CONTAINS 'n'", ["name", *NUMBERS]),
        ("app.creator = 'Cosmoshi' AND app.key > 100", ["n5"]),
        ("app.creator = 'Cosmoshi' AND app.key EXISTS AND tx.height = 4", ["n5", "same"]),
        # Only indexed attributes can be found.
        ("app.noindex_key EXISTS", []),
        ("tm.event = 'Tx'", []),
        ("tm.event = 'Tx' AND tx.height = 1", []),
        ("app EXISTS", []),
        ("nothing.like_it = 'x'", []),
    ],
)
def test_search_finds_matching_transactions(
    client: FlaskClient, query: str, found: list[str]
) -> None:
    assert keys(client, query) == found
    assert keys(client, query, order_by="desc") == found[::-1]


def test_a_tx_hash_condition_alone_decides(client: FlaskClient) -> None:
    digits = tx_hash(b"n2=9").hex()

    assert keys(client, f"tx.hash = '{digits.upper()}' AND tx.height = 1") == ["n2"]
    assert keys(client, f"tx.hash = '{digits}'") == ["n2"]
    assert keys(client, f"tx.hash = '{'00' * 32}'") == []


def test_a_transaction_looks_as_it_does_by_its_hash(client: FlaskClient) -> None:
    for prove in (False, True):
        params = {"hash": tx_hash(b"n3=9.5").hex(), "prove": prove}
        alone = client_call(client, "tx", params)["result"]

        assert search(client, "app.key = 'n3'", prove=prove)["result"]["txs"] == [alone]
        query = f"tx.hash = '{params['hash']}'"
        assert search(client, query, prove=prove)["result"]["txs"] == [alone]
        assert ("proof" in alone) == prove


@pytest.mark.parametrize(
    "query", ["tx.height > 0", "app.index_key EXISTS", "app.key CONTAINS ''"]
)
@pytest.mark.parametrize("order", ["asc", "desc"])
def test_pages_join_to_the_whole(client: FlaskClient, query: str, order: str) -> None:
    pages = [
        search(client, query, page=page, per_page=3, order_by=order)["result"]
        for page in (1, 2, 3)
    ]

    assert {page["total_count"] for page in pages} == {"7"}
    assert [tx for page in pages for tx in page["txs"]] == (
        search(client, query, order_by=order)["result"]["txs"]
    )


@pytest.mark.parametrize("page", [0, -1, 4, 10**9, (1 << 63) - 1])
def test_a_page_beyond_the_last_is_refused(client: FlaskClient, page: int) -> None:
    error = search(client, "tx.height > 0", page=page, per_page=3)["error"]

    assert error["data"] == f"page should be within [1, 3] range, given {page}"


def test_an_empty_result_has_one_page(client: FlaskClient) -> None:
    assert search(client, "tx.height > 9", page=1)["result"] == {"txs": [], "total_count": "0"}
    assert "within [1, 1]" in search(client, "tx.height > 9", page=2)["error"]["data"]


BLOCK_QUERIES = [
    ("block.height > 2", [4, 3]),
    ("block.height = 3", [3]),
    ("block.height = '3'", [3]),
    ("block.height = 2 AND block.height = 3", [2]),
    ("block.height = 3 AND x.y = '1'", []),
    ("block.height EXISTS", []),
    ("block.height CONTAINS '3'", []),
    ("block.height = 9", []),
    ("app.key EXISTS", []),
]


@pytest.mark.parametrize(("query", "found"), BLOCK_QUERIES)
def test_blocks(client: FlaskClient, query: str, found: list[int]) -> None:
    result = client_call(client, "block_search", {"query": query})["result"]

    assert result["total_count"] == str(len(found))
    assert result["blocks"] == [
        client_call(client, "block", {"height": height})["result"] for height in found
    ]
    upward = client_call(client, "block_search", {"query": query, "order_by": "asc"})["result"]
    assert upward["blocks"] == result["blocks"][::-1]


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"query": "tx.height > 0", "order_by": "up"}, "order_by to be either"),
        ({"query": "tx.hash = 'zz'"}, "error during searching for a hash in the query"),
        ({"query": "tx.height >"}, "offset 11: EOF"),
        ({"query": "a.b = '" + "x" * 512 + "'"}, "expected at most 512 bytes"),
        ({"query": " AND ".join(["a.b = 1"] * 10_000)}, "expected at most 512 bytes"),
        ({}, "offset 0: EOF"),
    ],
)
def test_bad_search_parameters_are_refused(
    client: FlaskClient, params: dict[str, str], reason: str
) -> None:
    assert reason in client_call(client, "tx_search", params)["error"]["data"]


def test_a_refused_value_is_not_an_internal_error(client: FlaskClient) -> None:
    query = client_call(client, "tx_search", {"query": "tx.height >"})["error"]
    height = client_call(client, "block", {"height": "0"})["error"]

    assert query == {
        "code": -32603,
        "message": "Invalid value",
        "data": "offset 11: EOF (query: expected conditions such as tx.height > 5 AND"
        " app.key = 'name')",
    }
    assert height["message"] == "Invalid value"


def asked(client: FlaskClient, path: str) -> HttpResponse:
    answer = client_get(client, path)
    assert "error" not in answer.json or answer.status == 400
    return answer


def test_a_get_takes_the_query_in_quotes(client: FlaskClient) -> None:
    query = quote(json.dumps("app.key = 'satoshi'"))

    answer = asked(
        client, f"/tx_search?query={query}&prove=true&per_page=1&order_by=%22desc%22"
    )

    assert answer.json["result"]["total_count"] == "1"
    assert asked(client, f"/block_search?query={query}").json["result"]["blocks"] == []


def test_a_search_beyond_a_limit_names_its_setting(client: FlaskClient) -> None:
    backend = client.application.extensions["noderpc"]["noderpc"].backend
    narrow = app_for(backend, max_response_bytes=1000).test_client()

    blocks = client_call(narrow, "block_search", {"query": "block.height > 0"})["error"]
    assert "NODERPC_MAX_RESPONSE_BYTES" in blocks["data"]
    txs = client_call(narrow, "tx_search", {"query": "tx.height > 0"})["error"]
    assert "NODERPC_MAX_RESPONSE_BYTES" in txs["data"]


@pytest.mark.sqlite
def test_a_search_beyond_the_limit_of_rows_names_its_setting(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL has only a time limit."""
    backend = client.application.extensions["noderpc"]["noderpc"].backend
    monkeypatch.setattr(search_limits, "MIN_ROWS", 10)
    monkeypatch.setattr(search_limits, "ROWS_PER_S", 0)
    short = app_for(backend).test_client()
    scan = client_call(short, "tx_search", {"query": "app.key CONTAINS 'n'"})["error"]
    assert "more than 10 rows" in scan["data"]
    assert "NODERPC_SEARCH_TIMEOUT" in scan["data"]
