"""Tests of an app's own EVM methods: on every transport, by namespace, and refused routes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any, cast

import pytest
from flask import Flask

from flask_noderpc import (
    ConfigurationError,
    Context,
    MemoryChain,
    NodeRPC,
    NoParams,
    Route,
    WireSchema,
)
from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.testing import make_chain
from flask_noderpc.testing.node import serve
from flask_noderpc.wire.fields import Number

from ..helpers.websocket import WebSocketClient

Call = Callable[..., Any]


@dataclass(frozen=True)
class Given:
    count: int
    data: bytes = b""
    text: str = ""
    flag: bool = False


@dataclass(frozen=True)
class Sum:
    total: int


class SumSchema(WireSchema):
    domain = Sum
    total = Number()


def echo(ctx: Context, params: Given) -> dict[str, Any]:
    """Return the parameters."""
    return asdict(params)


def height(ctx: Context, params: NoParams) -> int:
    """Return the height."""
    return ctx.backend.reads.latest_height()


def add(ctx: Context, params: NoParams) -> Sum:
    """Return a class with a schema."""
    return Sum(7)


ROWS = (
    Route("acme_echo", echo, Given, dict[str, Any]),
    Route("acme_sum", add, NoParams, Sum, schema=SumSchema),
    Route("eth_acmeHeight", height, NoParams, int),
    Route("txpool_acmeHeight", height, NoParams, int),
)


def app_with(rows: Any = ROWS, **settings: Any) -> Flask:
    chain = make_chain(5)
    backend = ChainBackend(MemoryChain(chain.genesis, chain.blocks, state=chain.state))
    app = Flask("host")
    NodeRPC(
        app,
        backend=backend,
        rows={"evm_routes": rows},
        **{"json_rpc_enable": True, **settings},
    )
    return app


@pytest.fixture(params=["POST", "websocket"])
def call(request: pytest.FixtureRequest) -> Iterator[Call]:
    """Call a method by each transport."""
    app = app_with(evm_api=("eth",), deny_methods=["acme_sum"])
    client = app.test_client()

    def post(method: str, *params: Any) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return client.post("/evm", json=body).get_json()

    if request.param == "POST":
        yield post
        return
    with serve(app) as url, closing(WebSocketClient(url, path="/evm/ws")) as socket:
        yield lambda method, *params: socket.asked(method, params)


@pytest.mark.features
def test_a_custom_method_is_answered_on_every_transport_in_ethereum_json(call: Call) -> None:
    found = call("acme_echo", "0x10", "0xab", "a", True)

    assert found["result"] == {"count": "0x10", "data": "0xab", "text": "a", "flag": True}
    assert call("eth_acmeHeight")["result"] == "0x5"


@pytest.mark.features
@pytest.mark.parametrize(
    ("params", "message"),
    [
        ([], "missing value for required argument 0"),
        (["5"], "invalid argument 0: json: cannot unmarshal hex string without 0x prefix"),
        (["0x1", "0x1"], "invalid argument 1: json: cannot unmarshal hex string of odd length"),
        (["0x1", "0x", 5], "invalid argument 2: json: cannot unmarshal number into Go value"),
        (["0x1", "0x", "", "", 1], "too many arguments, want at most 4"),
    ],
)
def test_bad_parameters_of_a_custom_method_get_geths_errors(
    call: Call, params: list[Any], message: str
) -> None:
    error = call("acme_echo", *params)["error"]

    assert error["code"] == -32602
    assert error["message"].startswith(message)


@pytest.mark.features
def test_a_custom_method_follows_its_namespace_and_access_rules(call: Call) -> None:
    listed = {row["name"] for row in call("rpc.discover")["result"]["methods"]}

    # The route enables its custom namespace, and the setting enables eth.
    assert {"acme_echo", "eth_acmeHeight"} <= listed
    assert call("rpc_modules")["result"] == {"acme": "1.0", "eth": "1.0", "rpc": "1.0"}
    for unserved in ("txpool_acmeHeight", "acme_sum"):
        assert call(unserved)["error"]["code"] == -32601
        assert unserved not in listed


@pytest.mark.features
def test_custom_methods_go_with_a_dialect() -> None:
    client = app_with(dialect="comet-0.38").test_client()

    body = {"jsonrpc": "2.0", "id": 1, "method": "eth_acmeHeight"}
    assert client.post("/evm", json=body).get_json()["result"] == "0x5"


@pytest.mark.features
def test_a_custom_result_is_dumped_by_the_schema_of_its_route() -> None:
    client = app_with(evm_api=("acme",)).test_client()

    def called(method: str) -> Any:
        return client.post("/evm", json={"jsonrpc": "2.0", "id": 1, "method": method}).json

    assert called("acme_sum")["result"] == {"total": 7}
    methods = called("rpc.discover")["result"]["methods"]
    (described,) = (row for row in methods if row["name"] == "acme_sum")
    assert "SumSchema" in json.dumps(described["result"]["schema"])


BAD_ROWS: dict[str, Any] = {
    "'eth_chainId' is declared twice": [Route("eth_chainId", height, NoParams, int)],
    "'eth_sendTransaction' is declared": [Route("eth_sendTransaction", height, NoParams, int)],
    "'eth_subscribe' is a built-in method": [Route("eth_subscribe", height, NoParams, int)],
    "such as eth_myMethod, got 'ping'": [Route("ping", height, NoParams, int)],
    "such as eth_myMethod, got 'acme_'": [Route("acme_", height, NoParams, int)],
    "evm_routes: expected a Route, got 'acme'": ["acme"],
    "evm_routes: expected a list of Route, got 5": 5,
    "no schema for Sum of acme_sum": [Route("acme_sum", add, NoParams, Sum)],
    "schema: expected a subclass of WireSchema": [
        Route("acme_sum", add, NoParams, Sum, schema=cast(Any, Sum))
    ],
}


@pytest.mark.features
@pytest.mark.parametrize("message", BAD_ROWS)
def test_a_row_that_cannot_be_served_is_refused_when_it_is_mounted(message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        app_with(BAD_ROWS[message])


@pytest.mark.features
def test_custom_methods_need_the_evm_layer() -> None:
    with pytest.raises(ConfigurationError, match="NODERPC_JSON_RPC_ENABLE"):
        app_with(json_rpc_enable=False)


@pytest.mark.features
def test_a_namespace_without_a_route_is_still_unknown() -> None:
    with pytest.raises(ConfigurationError, match=r"expected any of eth, .*, acme, got"):
        app_with(evm_api=("amce",))
