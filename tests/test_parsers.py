"""Tests that parsers of bytes from clients take steps in proportion to the number of bytes."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from io import BufferedReader, BytesIO
from itertools import product, starmap
from typing import Any, cast

import pytest
from wsproto import ConnectionType
from wsproto.connection import Connection

from flask_noderpc import jsoncodec
from flask_noderpc.chain.applications import kvstore
from flask_noderpc.cosmos.protocol import bech32, coins, tx
from flask_noderpc.cosmos.rest import reader, requests, routes
from flask_noderpc.domain import search, time
from flask_noderpc.errors import NodeRPCError
from flask_noderpc.ethereum.protocol import rlp, transactions
from flask_noderpc.ethereum.protocol.typed_data import typed_digest
from flask_noderpc.ethereum.rpc import dialect
from flask_noderpc.events import query
from flask_noderpc.explorer.abi import Abi
from flask_noderpc.jsonrpc.params import values_of
from flask_noderpc.protocol import protobuf
from flask_noderpc.server.http import Body, HeadReader, read_trailers
from flask_noderpc.web.rules import head, origin, render
from flask_noderpc.wire.comet import gojson
from tests.helpers import steps

SIZE = 1_600
_SEARCH = "tx.GetTxsEventRequest"


def _buffered(data: bytes) -> BufferedReader:
    return BufferedReader(cast("Any", BytesIO(data)))


def _body(data: bytes) -> bytes:
    source = _buffered(
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + data
    )
    found = HeadReader(source).read()
    assert found is not None
    return Body(source, found, lambda: None, None).read()


def _frames(data: bytes) -> None:
    connection = Connection(ConnectionType.SERVER, [])
    connection.receive_data(data)
    for _ in connection.events():
        pass


def _header(name: str, data: bytes) -> head.Head:
    fields = {"HTTP_IF_NONE_MATCH": "", name: data.decode("latin-1")}
    return head.Head("call", "GET", "localhost", "192.0.2.1", fields)


def _typed(data: bytes) -> bytes:
    """Return a struct whose fields have types of the client's, with a list that repeats one of
    them."""
    kind = data.decode("latin-1")
    types = {"A": [{"name": "a", "type": f"{kind}[]"}, {"name": kind, "type": "uint8"}]}
    message = {"a": ["1"] * len(data), kind: 1}
    return typed_digest({"domain": {}, "types": types, "primaryType": "A", "message": message})


def _abi(data: bytes) -> Abi:
    text = data.decode("latin-1")
    inputs = [{"name": "a", "type": text}] * 2
    return Abi.parse(json.dumps([{"type": "event", "name": text, "inputs": inputs}]))


def _text(parse: Callable[[str], object]) -> Callable[[bytes], object]:
    return lambda data: parse(data.decode("latin-1"))


PARSERS: dict[str, Callable[[bytes], object]] = {
    "a request line": lambda data: HeadReader(
        _buffered(b"GET " + data + b" HTTP/1.1\r\n")
    ).read(),
    "a host in a target": lambda data: HeadReader(
        _buffered(b"GET http://" + data + b"\x7f HTTP/1.1\r\n")
    ).read(),
    "a header": lambda data: HeadReader(
        _buffered(b"GET / HTTP/1.1\r\nHost: a\r\nX:" + data + b"\r\nY: b\r\n\r\n")
    ).read(),
    "headers": lambda data: HeadReader(_buffered(b"GET / HTTP/1.1\r\n" + data)).read(),
    "trailers": lambda data: read_trailers(BytesIO(data + b"\r\n\r\n")),
    "a body in chunks": _body,
    "frames of a websocket": _frames,
    "a query string": values_of,
    "a query of events": _text(query.parse),
    "a value of an event": _text(search.parse_number),
    "a time": _text(time.from_text),
    "an origin": lambda data: origin._is_same_origin(
        data.decode("latin-1"), data.decode("latin-1")
    ),
    "codings that a client accepts": lambda data: render._is_accepted(
        _header("HTTP_ACCEPT_ENCODING", data)
    ),
    "tags of cached results": lambda data: render._is_known(
        _header("HTTP_IF_NONE_MATCH", data), "a"
    ),
    "an address": _text(head.client_key.__wrapped__),
    "JSON": jsoncodec.decode,
    "JSON by Go's rules": gojson.check,
    "a list by Go's rules": lambda data: gojson.elements(b"[" + data + b"]"),
    "base64 by Go's rules": gojson.base64_bytes,
    "hex by Go's rules": gojson.hex_bytes,
    "a call by geth's rules": dialect._first_value,
    "a duration": _text(time.from_go_duration),
    "structured data": _typed,
    "an ABI": _abi,
    "a transaction of Ethereum": transactions.decode,
    "RLP": lambda data: list(iter_rlp(data)),
    "a message of protobuf": protobuf.Message,
    "a transaction of the SDK": lambda data: tx.decode(
        data, lambda name: None, lambda any: None
    ),
    "a transaction that changes validators": lambda data: kvstore.parse_update(b"val=" + data),
    "an address of the SDK": _text(bech32.decode.__wrapped__),
    "coins": _text(coins.parse),
    "an amount": _text(coins.parse_amount),
    "a query of REST": lambda data: requests.of_query(_SEARCH, data.decode("latin-1"), ()),
    "a name in a query of REST": lambda data: requests._path(data.decode("latin-1"), [""]),
    "a number of REST": lambda data: requests.uint64(data.decode("latin-1"), 0),
    "a body of REST": lambda data: reader.read(_SEARCH, {"query": data.decode("latin-1")}),
    "a path of REST": lambda data: [
        route.pattern.fullmatch(data.decode("latin-1")) for route in routes.ROUTES
    ],
}


def iter_rlp(data: bytes) -> Any:
    items = rlp.Reader(data)
    while not items.done:
        yield items.encoded("item")


UNITS = (
    b" ",
    b"\t ",
    b",",
    b'"',
    b'\\"',
    b"\\",
    b"[",
    b"{",
    b'[{"":',
    b"1",
    b"0",
    b"1.",
    b"%",
    b"%41",
    b"a",
    b"a=1&",
    b"a[",
    b"a.a[0]",
    b";q=1,",
    b"'",
    b"a='1' AND ",
    b"a:b\r\n",
    b"\r\n",
    b"1\r\na\r\n",
    b"1;a\r\na\r\n",
    b"0x",
    b"_1",
    b"1stake,",
    b"\x00",
    b"\x08\x01",
    b"\x0a\x00",
    b"\x0b",
    b"\x80",
    b"\xc0",
    b"\xc1\xc0",
    b"\xf8\xff",
    b"\x81\x80\x00\x00\x00\x00",
    b"\x01\x80\x00\x00\x00\x00",
    b"\xff",
    b"/",
    b":",
    b"=",
    b"-",
)
BEFORE = (b"", b"a", b"[", b'"', b"a=", b"1")
AFTER = (b"", b"\x01")


@pytest.mark.parametrize("name", PARSERS)
def test_steps_grow_as_the_bytes(name: str) -> None:
    parse = PARSERS[name]

    def work(data: bytes) -> None:
        # Any refusal is fine here.
        with suppress(ValueError, NodeRPCError, OSError, rlp.Malformed):
            parse(data)

    ratios = {
        shape: steps.growth(work, shape, SIZE)
        for shape in starmap(steps.Shape, product(BEFORE, UNITS, AFTER))
    }
    assert {shape: ratio for shape, ratio in ratios.items() if not steps.is_linear(ratio)} == {}


def test_quadratic_work_is_noticed() -> None:
    def work(data: bytes) -> None:
        for at in range(len(data)):
            for _ in data[at:]:
                pass

    assert not steps.is_linear(steps.growth(work, steps.Shape(b"", b"a", b""), 400))
