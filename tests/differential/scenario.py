"""Transactions that both nodes get, and the requests that follow."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from .http_client import Ask
from .sides import Side

# Key of a validator that never votes; the real validator has enough power to decide alone.
_OTHER_KEY = base64.b64encode(bytes(range(32))).decode()

TXS: tuple[bytes, ...] = (
    b"name=satoshi",
    b"a<b>&c=d/e",
    "schlüssel=wert".encode(),
    b"name=nakamoto",
    # These bytes are incomplete characters, and so are not UTF-8.
    b"half\xe2\x82=\xf0\x9f\x98",
)
ORIGIN_DENIED = (b"nothing", b"=x", b"a=b=c", b"")
"""Transactions that 0.38 and 1.0 refuse, and other versions accept."""
VALIDATOR_TXS: tuple[bytes, ...] = (
    f"val=ed25519!{_OTHER_KEY}!1".encode(),
    b"while=two",
    f"val=ed25519!{_OTHER_KEY}!0".encode(),
    b"after=two",
)
"""Transactions that 0.38 and 1.0 read as a change of the validator set."""


def play(side: Side, txs: tuple[bytes, ...]) -> int:
    """Send the transactions, each in a separate block; return the final height."""
    height = side.settle()
    for tx in txs:
        sent = side.call("broadcast_tx_commit", tx=base64.b64encode(tx).decode())
        height = side.settle(max(height, int(sent["height"])))
    return height


def requests(height: int, block_hash: str, unwanted: tuple[bytes, ...]) -> Iterator[Ask]:
    """Yield every route over every transport, with valid, edge and invalid parameters.

    ``block_hash`` is the hex of block 3's hash, which differs between the nodes; ``unwanted``
    are transactions that the node does not accept.
    """
    yield from _uris(height, block_hash)
    yield from _posts(height, block_hash)
    yield from _broadcasts(unwanted)
    yield from _envelopes()
    yield from _other_methods()
    yield from _websockets()


def _hash(tx: bytes) -> bytes:
    return hashlib.sha256(tx).digest()


_FIRST = _hash(TXS[0])
_UNKNOWN = bytes(32)

_NO_PARAMS = (
    "health", "status", "net_info", "blockchain", "genesis", "genesis_chunked", "block",
    "block_results", "commit", "header", "validators", "consensus_params",
    "unconfirmed_txs", "num_unconfirmed_txs", "abci_info", "abci_query", "tx", "tx_search",
    "block_search", "block_by_hash", "header_by_hash", "consensus_state",
    "dump_consensus_state", "check_tx", "broadcast_evidence", "subscribe", "unsubscribe",
    "unsubscribe_all", "dial_seeds", "dial_peers", "unsafe_flush_mempool", "nosuch",
)  # fmt: skip

_AT_HEIGHT = ("block", "block_results", "commit", "header", "validators", "consensus_params")

_HEIGHT_VALUES = (
    "2", '"2"', "0", "-1", "007", "abc", "1.5", "true", "'5'", "+5", "null", "0x05", "1e3",
    "9223372036854775807", "9223372036854775808", '""', '"x"', '"', "[1]", "{}",
)  # fmt: skip


def _uris(height: int, block_hash: str) -> Iterator[Ask]:
    for route in _NO_PARAMS:
        yield _uri(route)
    yield from _heights(height)
    yield from _pages()
    yield from _hashes(block_hash)
    yield from _searches()
    yield from _application()
    yield _uri("block", height="2", unknown="1")
    yield Ask("uri block height twice", path="/block?height=2&height=3")


def _heights(height: int) -> Iterator[Ask]:
    for route in _AT_HEIGHT:
        for expected in (1, 2, 3, height, height + 1, height + 2, height + 100):
            yield _uri(route, height=str(expected))
    for value in _HEIGHT_VALUES:
        yield _uri("block", height=value)
        yield _uri("validators", page=value)
    for low, high in (
        ("1", "3"), ("2", "2"), ("3", "1"), ("-1", "3"), ("0", "0"), ("1", "1000"), ("x", ""),
    ):  # fmt: skip
        yield _uri("blockchain", minHeight=low, maxHeight=high)


def _pages() -> Iterator[Ask]:
    for name, values in (
        ("per_page", ("0", "-1", "1", "101", "x")),
        ("page", ("0", "-1", "1", "2")),
    ):
        for value in values:
            yield _uri("validators", **{name: value})
            yield _uri("tx_search", query='"tx.height>0"', **{name: value})
            yield _uri("block_search", query='"block.height>0"', **{name: value})
    for chunk in ("0", "1", "-1", "x", "18446744073709551616"):
        yield _uri("genesis_chunked", chunk=chunk)
    for limit in ("0", "-1", "1", "101", "x", "true"):
        yield _uri("unconfirmed_txs", limit=limit)


def _hashes(block_hash: str) -> Iterator[Ask]:
    for shown in (
        "0x" + _FIRST.hex(), "0X" + _FIRST.hex().upper(), _FIRST.hex(), f'"{_FIRST.hex()}"',
        "0x" + _UNKNOWN.hex(), "0xzz", "0x0", "0x", '""', "abc", "123", "[1,2]", "true",
    ):  # fmt: skip
        yield _uri("tx", hash=shown)
    for prove in ("true", "false", "1", '"true"', "True", "0x01", "null"):
        yield _uri("tx", hash="0x" + _FIRST.hex(), prove=prove)
    for shown in ("0x" + block_hash, "0x" + _UNKNOWN.hex(), '"text"', "0x12", "x"):
        yield _uri("block_by_hash", hash=shown)
        yield _uri("header_by_hash", hash=shown)


def _searches() -> Iterator[Ask]:
    for query in QUERIES:
        yield _uri("tx_search", query=f'"{query}"')
        yield _uri("block_search", query=f'"{query}"')
    for order in ('"asc"', '"desc"', '"up"', "asc"):
        yield _uri("tx_search", query='"tx.height>0"', order_by=order)
        yield _uri("block_search", query='"block.height>0"', order_by=order)
    yield _uri("tx_search", query='"tx.height>0"', prove="true", per_page="2", page="2")


def _application() -> Iterator[Ask]:
    for data in ('"name"', "0x6e616d65", "name", "123", '"nosuch"', '""', "0xz"):
        yield _uri("abci_query", data=data)
        yield _uri("abci_query", data=data, prove="true", height="2")
    for path in ('"/key"', '"/val"', '"/store"', "/store", '"/store', "0x2f6b6579"):
        yield _uri("abci_query", path=path, data='"name"')
    for tx in ('"name=satoshi"', '"new=one"', '"nothing"', '""', "0x613d62", "123", "abc"):
        yield _uri("check_tx", tx=tx)
    yield _uri("broadcast_evidence", evidence='{"type":"x","value":{}}')


QUERIES = (
    "tx.height=5", "tx.height>0 AND tx.height<4", "app.creator='Cosmoshi Netowoko'",
    "app.key='name'", "app.key CONTAINS 'am'", "app.key EXISTS", "app.index_key EXISTS",
    "app.noindex_key='index is working'", "tm.event='Tx'", f"tx.hash='{_FIRST.hex().upper()}'",
    f"tx.hash='{_FIRST.hex()}'", "tx.hash='zz'", "tx.hash='00'", "block.height=2",
    "block.height>1 AND block.height<=3", "app.creator='Cosmoshi' AND app.key='satoshi'",
    "app.creator='Cosmoshi' AND app.key='name'", "", " ", "tx.height", "tx.height=",
    "x AND y", "tx.height=1 OR tx.height=2", "5=5", "tx.height>'x'", "tx.height >= 3",
    "app.key='x", "tx.height>=1.5", "tx.height=05", "block.height EXISTS", "a.b-c='d'",
    "a/b='c'", "tm.event = 'NewBlock' and x=1", "x > TIME 2013-05-03T14:45:00Z",
    "x > DATE 2020-13-01", "x" * 513,
)  # fmt: skip


def _uri(route: str, **params: str) -> Ask:
    query = "&".join(f"{name}={quote(value)}" for name, value in params.items())
    shown = " ".join(f"{name}={value}" for name, value in params.items())
    return Ask(f"uri {route} {shown}".strip(), path=f"/{route}" + ("?" + query) * bool(query))


def _posts(height: int, block_hash: str) -> Iterator[Ask]:
    for route in _NO_PARAMS:
        yield _post(route, {})
    for route in ("health", "block", "genesis_chunked", "abci_query", "tx_search"):
        for params in _NO_OBJECTS:
            yield _post(route, params)
    for route in _AT_HEIGHT:
        for expected in (1, height, height + 1, height + 100):
            yield _post(route, {"height": str(expected)})
    for value in _JSON_HEIGHTS:
        yield _post("block", {"height": value})
        yield _post("validators", ["2", value, "1"])
    for query in QUERIES[:12]:
        yield _post("tx_search", {"query": query})
        yield _post("block_search", {"query": query})
    for route, members in _single_posts(block_hash):
        yield _post(route, members)


_NO_OBJECTS: tuple[Any, ...] = (None, [], 5, "x")
_JSON_HEIGHTS: tuple[Any, ...] = (
    2, "2", None, 0, "0", "-1", "abc", "0x5", "", "007", 1.5, True, [], {}, "1e3",
    "9223372036854775808",
)  # fmt: skip


def _single_posts(block_hash: str) -> Iterator[tuple[str, Any]]:
    known, unknown = _text(_FIRST), _text(_UNKNOWN)
    yield from (("block", ["2"]), ("block", ["2", "3"]), ("validators", ["4"]))
    yield "block", {"HEIGHT": "2", "Height": "3"}
    for value in (known, unknown, _FIRST.hex(), "0x" + _FIRST.hex(), "", "x", 5, None, [1]):
        yield "tx", {"hash": value}
    for value in (True, "true", 1, None):
        yield "tx", {"hash": known, "prove": value}
    for value in (_text(bytes.fromhex(block_hash)), unknown):
        yield "block_by_hash", {"hash": value}
    for value in (block_hash, known):
        yield "header_by_hash", {"hash": value}
    for value in ("6e616d65", "6E616D65", "0x6e61", "name", "", 5, "6e6"):
        yield "abci_query", {"data": value}
    yield "abci_query", {"path": "/key", "data": "6e616d65", "prove": True}
    yield "abci_query", {"path": 5}
    yield "tx_search", {"query": "tx.height>0", "per_page": "2", "page": "2"}
    yield "tx_search", {"query": "tx.height>0", "page": "99"}
    for query in ("tx.height\x1f>0", "tx.height>0\x0b\x85\xa0"):
        yield "tx_search", {"query": query}
    for tx in (b"new=one", b"nothing", b""):
        yield "check_tx", {"tx": _text(tx)}
    for evidence in ({"type": "x", "value": {}}, None):
        yield "broadcast_evidence", {"evidence": evidence}


def _broadcasts(unwanted: tuple[bytes, ...]) -> Iterator[Ask]:
    for route in ("broadcast_tx_sync", "broadcast_tx_async", "broadcast_tx_commit"):
        for tx in (*unwanted, TXS[0]):
            yield _uri(route, tx=f'"{tx.decode()}"')
            yield _post(route, {"tx": _text(tx)})
        yield _uri(route, tx="123")
        yield _post(route, {"tx": 5})


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _body(route: str, params: Any = None, request_id: Any = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": route, "params": params}


def _post(route: str, params: Any) -> Ask:
    shown = json.dumps(params)
    return Ask(f"post {route} {shown}", "POST", body=json.dumps(_body(route, params)))


def _envelopes() -> Iterator[Ask]:
    health = json.dumps(_body("health"))
    commit = json.dumps(_body("commit", {"height": "2"}))
    future = json.dumps(_body("commit", {"height": "1000"}))
    bodies = {
        "empty": "",
        "blank": " ",
        "no JSON": "{",
        "trailing": health + "x",
        "null": "null",
        "number": "5",
        "text": '"x"',
        "empty list": "[]",
        "empty object": "{}",
        "list of an empty object": "[{}]",
        "list of a number": "[1]",
        "list of null": "[null]",
        "a list with one bad": f"[{health},5]",
        "one in a list": f"[{health}]",
        "two in a list": f"[{health},{commit}]",
        "ten in a list": f"[{','.join([health] * 10)}]",
        "eleven in a list": f"[{','.join([health] * 11)}]",
        "all may be kept": f"[{commit},{commit}]",
        "one failed that may be kept": future,
        "notification": '{"method":"health"}',
        "notification in a list": f'[{{"method":"health"}},{health}]',
        "null id": '{"id":null,"method":"health"}',
        "text id": '{"id":"x","method":"health"}',
        "empty text id": '{"id":"","method":"health"}',
        "zero id": '{"id":0,"method":"health"}',
        "large id": '{"id":9007199254740993,"method":"health"}',
        "broken id": '{"id":1.7,"method":"health"}',
        "bool id": '{"id":true,"method":"health"}',
        "list id": '{"id":[1],"method":"health"}',
        "object id": '{"id":{"a":1},"method":"health"}',
        "no version": '{"id":1,"method":"health"}',
        "other version": '{"jsonrpc":"1.0","id":1,"method":"health"}',
        "number version": '{"jsonrpc":2.0,"id":1,"method":"health"}',
        "no method": '{"id":1}',
        "number method": '{"id":1,"method":5}',
        "null method": '{"id":1,"method":null}',
        "no params": '{"id":1,"method":"health"}',
        "no params where there are some": '{"id":1,"method":"block"}',
        "upper case members": '{"ID":1,"METHOD":"health"}',
        "member twice": '{"id":1,"id":2,"method":"status","method":"health"}',
        "too large": '{"id":1,"method":"' + "x" * 1_000_000 + '"}',
    }
    for name, body in bodies.items():
        yield Ask(f"body {name}", "POST", body=body)


def _other_methods() -> Iterator[Ask]:
    form = (("Content-Type", "application/x-www-form-urlencoded"),)
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"):
        yield Ask(f"{method} of a route", method, "/block?height=2")
        yield Ask(f"{method} of the root", method, "/")
    yield Ask("a form", "POST", "/block", "height=2", form)
    yield Ask("a form and a query", "POST", "/block?height=3", "height=2", form)
    for method in ("GET", "PUT", "PATCH", "DELETE"):
        yield Ask(f"a form by {method}", method, "/block", "height=2", form)
    yield Ask("JSON to a route", "POST", "/block", '{"height":"2"}')
    yield Ask("a body by GET", "GET", "/", json.dumps(_body("health")))
    yield Ask("a query at the root", "POST", "/?a=b", json.dumps(_body("health")))
    for path in ("/nosuch", "/block/", "/Block", "/block/2", "/v1", "/v1/health"):
        yield Ask(f"path {path}", path=path)
    yield Ask("a call under v1", "POST", "/v1", json.dumps(_body("health")))
    yield Ask("websocket without a handshake", path="/websocket")


def _websockets() -> Iterator[Ask]:
    def call(method: str, params: Any = None, request_id: Any = 7) -> str:
        return json.dumps(_body(method, {} if params is None else params, request_id))

    yield _frames("calls", call("health"), call("block", {"height": "2"}), call("nosuch"))
    yield _frames("bad parameters", call("block", {"height": 2}), call("block", ["1", "2"]))
    yield _frames("no calls", "{", "[]", "5", f"[{call('health')}]")
    yield _frames(
        "subscribe",
        call("subscribe", {"query": "tm.event='NewBlock'"}),
        call("subscribe", {"query": "tm.event='NewBlock'"}),
        call("subscribe", {"query": "tm.event = 'NewBlock'"}),
        call("unsubscribe", {"query": "tm.event='Tx'"}),
        call("unsubscribe", {"query": "tm.event='NewBlock'"}),
        call("unsubscribe_all"),
        call("subscribe", {"query": ""}),
        call("subscribe", {"query": "x"}),
        call("subscribe", {"query": "a=1 OR b=2"}),
        call("subscribe", {"query": "x" * 513}),
        call("subscribe", {"query": 5}),
        call("subscribe", {}),
    )
    yield _frames(
        "too many", *(call("subscribe", {"query": f"a={number}"}) for number in range(6))
    )


def _frames(name: str, *frames: str) -> Ask:
    return Ask(f"websocket {name}", frames=frames)


CATEGORIES = (
    "NewBlock", "NewBlockHeader", "Tx", "NewRound", "NewRoundStep",
    "CompleteProposal", "Polka", "ValidBlock", "Lock", "Vote",
)  # fmt: skip
"""Events of a block with one transaction, in every version."""
