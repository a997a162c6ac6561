"""Tests of every route and every field of the interface document, on a live server."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from functools import reduce
from operator import getitem
from typing import Any

import pytest

from flask_noderpc.protocol.comet.hashes import tx_hash
from tests.interface.shapes import DOCUMENT, SHAPES, Kind, check

from ..helpers.http import call, get
from .chain import (
    AFTER_ABSENCE,
    LATEST,
    TX,
    WITH_EVENTS,
    WITH_EVIDENCE,
    WITH_FAILED_TX,
    WITH_PARAMS,
    WITH_TXS,
    WITH_UPDATE,
    PeeredBackend,
)

ROUTES: dict[str, dict[str, Any]] = {route["name"]: route for route in DOCUMENT["routes"]}

Value = int | bool | str | bytes | tuple[str, bytes]
BLOCK_HASH = ("hash of block", b"")
TX_HASH = ("hash", tx_hash(TX))
FRESH_TX = ("fresh", b"")

# Calls of each route, which together must show every parameter and every field.
CALLS: dict[str, list[dict[str, Value]]] = {
    "health": [{}],
    "status": [{}],
    "net_info": [{}],
    "blockchain": [{}, {"minHeight": 2, "maxHeight": 5}],
    "block": [{}] + [{"height": h} for h in (WITH_TXS, WITH_EVIDENCE, AFTER_ABSENCE)],
    "block_by_hash": [{"hash": BLOCK_HASH}],
    "block_results": [{}]
    + [{"height": h} for h in (WITH_EVENTS, WITH_UPDATE, WITH_FAILED_TX, WITH_PARAMS)],
    "commit": [{}, {"height": 2}],
    "validators": [{}, {"height": LATEST, "page": 1, "per_page": 2}],
    "genesis": [{}],
    "genesis_chunked": [{"chunk": 0}],
    "consensus_params": [{}, {"height": 3}],
    "unconfirmed_txs": [{}, {"limit": 1}],
    "num_unconfirmed_txs": [{}],
    "tx": [{"hash": TX_HASH}, {"hash": TX_HASH, "prove": True}],
    "broadcast_tx_sync": [{"tx": FRESH_TX}, {"tx": ("tx", b"no pair")}],
    "broadcast_tx_async": [{"tx": FRESH_TX}],
    "check_tx": [{"tx": ("tx", TX)}, {"tx": ("tx", b"no pair")}],
    "abci_info": [{}],
    "abci_query": [
        {"path": "/store", "data": ("data", b"name"), "height": 3, "prove": True},
        {"data": ("data", b"nobody")},
    ],
}


class Sender:
    """Makes and sends calls, and each transaction only once."""

    def __init__(self, url: str, backend: PeeredBackend) -> None:
        self._url = url
        self._block_hash = backend.reads.block_meta(WITH_TXS).block_id.hash
        self._sent = 0

    def get(self, name: str, params: dict[str, Value]) -> dict[str, Any]:
        texts = {key: self._uri(value) for key, value in params.items()} | {"bogus": "1"}
        answer = get(self._url, ROUTES[name]["path"], texts)
        assert answer.headers["Content-Type"] == "application/json"
        assert answer.status == 200, answer.body
        return dict(answer.json)

    def post(self, name: str, params: dict[str, Value]) -> dict[str, Any]:
        values = {key: self._json(value) for key, value in params.items()} | {"bogus": 1}
        return dict(call(self._url, name, values).json)

    def post_positional(self, name: str, params: dict[str, Value]) -> dict[str, Any]:
        wanted = (params.get(row["name"]) for row in ROUTES[name]["params"])
        values = [None if value is None else self._json(value) for value in wanted]
        return dict(call(self._url, name, values).json)

    def _bytes(self, kind: str, value: bytes) -> bytes:
        if kind == "hash of block":
            return self._block_hash
        if kind == "fresh":
            self._sent += 1
            return b"fresh=%d" % self._sent
        return value

    def _uri(self, value: Value) -> str:
        match value:
            case (str(kind), bytes(content)):
                content = self._bytes(kind, content)
                return (
                    f'"{content.decode()}"' if kind in ("tx", "fresh") else "0x" + content.hex()
                )
            case bool():
                return str(value).lower()
            case str():
                return f'"{value}"'
        return str(value)

    def _json(self, value: Value) -> object:
        match value:
            case (str(kind), bytes(content)):
                content = self._bytes(kind, content)
                if kind in ("tx", "fresh"):
                    return b64encode(content).decode()
                return content.hex() if kind == "data" else "0x" + content.hex()
            case bool() | str():
                return value
        # In the document's form, integers are decimal strings.
        return str(value)


@pytest.fixture(scope="module")
def sender(url: str, backend: PeeredBackend) -> Sender:
    backend.mempool.submit(b"waiting=1")
    backend.mempool.submit(b"waiting=2")
    return Sender(url, backend)


def calls() -> list[Any]:
    return [
        pytest.param(name, params, id="-".join((name, *map(str, params.values()))))
        for name, of_route in CALLS.items()
        for params in of_route
    ]


def expected_members(name: str) -> set[str]:
    members = {"jsonrpc", "id", "result"}
    return members | {"error"} if ROUTES[name].get("error_member") else members


# The first block has no previous hash, and an absent vote has no address.
EMPTY_HEX = re.compile(
    r"\.(last_block_id(\.parts)?\.hash|signatures\[\d\]\.validator_address)"
    ": expected hex, got ''"
)


def wrong_with(result: object, name: str) -> list[str]:
    found = check(result, ROUTES[name]["result"], name)
    return [text for text in found if not EMPTY_HEX.search(text)]


@pytest.mark.parametrize(("name", "params"), calls())
def test_get_answers_as_the_document_specifies(
    sender: Sender, name: str, params: dict[str, Value]
) -> None:
    reply = sender.get(name, params)

    assert reply.keys() == expected_members(name)
    assert (reply["jsonrpc"], reply["id"]) == ("2.0", -1)
    assert reply.get("error", "") == ""
    assert wrong_with(reply["result"], name) == []


@pytest.mark.parametrize(("name", "params"), calls())
def test_post_answers_as_get_does_but_for_the_id(
    sender: Sender, name: str, params: dict[str, Value]
) -> None:
    by_get, by_post = sender.get(name, params), sender.post(name, params)
    positional = sender.post_positional(name, params)

    assert (by_post["id"], positional["id"]) == (1, 1)
    for reply in (by_get, by_post, positional):
        del reply["id"]
        if params.get("tx") == FRESH_TX:
            # Each call sent a different transaction.
            assert wrong_with(reply["result"], name) == []
            del reply["result"]["hash"]
    assert by_get == by_post == positional


def test_every_route_and_every_parameter_is_exercised() -> None:
    assert CALLS.keys() == ROUTES.keys()
    for name, of_route in CALLS.items():
        used = {key for params in of_route for key in params}
        assert used == {row["name"] for row in ROUTES[name]["params"]}, name


def test_every_field_and_every_element_is_shown_by_some_answer(sender: Sender) -> None:
    shown: set[str] = set()
    for name, of_route in CALLS.items():
        for params in of_route:
            shown.update(
                _shown(sender.get(name, params)["result"], ROUTES[name]["result"], name)
            )

    expected = {label for name in ROUTES for label in _every(ROUTES[name]["result"], name, ())}
    assert expected - shown == set()


def _shown(value: Any, kind: Kind, label: str) -> Iterator[str]:
    """Yield a label for each field and each list element of the value."""
    yield label
    if isinstance(kind, str) or value is None:
        return
    match dict(kind):
        case {"shape": str(name)}:
            yield from _shown(value, SHAPES[name], name)
        case {"array": inner}:
            for item in value:
                yield from _shown(item, inner, label + "[]")
        case {"nullable": inner}:
            yield from _shown(value, inner, label + "?")
        case fields:
            for path, inner in fields.items():
                yield from _shown(
                    reduce(getitem, path.split("."), value), inner, f"{label}.{path}"
                )


def _every(kind: Kind, label: str, above: tuple[str, ...]) -> Iterator[str]:
    """Yield the labels that results can have."""
    yield label
    if isinstance(kind, str):
        return
    match dict(kind):
        case {"shape": str(name)}:
            if name not in above:
                yield from _every(SHAPES[name], name, (*above, name))
        case {"array": inner}:
            yield from _every(inner, label + "[]", above)
        case {"nullable": inner}:
            yield from _every(inner, label + "?", above)
        case fields:
            for path, inner in fields.items():
                yield from _every(inner, f"{label}.{path}", above)
