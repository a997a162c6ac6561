"""Tests of an app's own routes: plain dataclasses and JSON, and errors for mistakes."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, cast

import pytest
from flask import Flask

from flask_noderpc import (
    COMETBFT_ROUTES,
    ConfigurationError,
    MemoryChain,
    NodeRPC,
    NodeRPCError,
    Route,
)
from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.domain.responses import Empty
from flask_noderpc.errors import InvalidParams, NotFound, RPCError, ValueNotAllowed
from flask_noderpc.jsonrpc.context import Context
from flask_noderpc.jsonrpc.params import NoParams
from flask_noderpc.testing import make_chain

from .conftest import MakeApp


def memory() -> ChainBackend:
    chain = make_chain(5)
    return ChainBackend(MemoryChain(chain.genesis, chain.blocks, state=chain.state))


def test_custom_routes_are_served_beside_those_of_the_node(make_app: MakeApp) -> None:
    def ping(ctx: Context, params: NoParams) -> Empty:
        """Answers."""
        return Empty()

    app = make_app()
    own = (Route("ping", ping, NoParams, Empty),)
    NodeRPC(app, backend=memory(), routes=COMETBFT_ROUTES + own)

    assert app.test_client().get("/ping").get_json()["result"] == {}
    assert app.test_client().post("/", json={"id": 1, "method": "ping"}).status_code == 200
    assert 'href="/ping"' in app.test_client().get("/").text


@dataclass
class Greeting:
    name: str
    times: int = 1
    loud: bool = False
    data: bytes | None = None
    others: tuple[str, ...] = field(default_factory=tuple)


def greet(ctx: Context, params: Greeting) -> dict[str, Any]:
    """Greets."""
    return {"height": ctx.backend.reads.latest_height(), "params": asdict(params)}


@pytest.fixture
def greeting(make_app: MakeApp, dialect: str) -> Flask:
    app = make_app()
    routes = [Route("greet", greet, Greeting, dict[str, Any])]
    NodeRPC(app, backend=memory(), routes=routes, dialect=dialect)
    return app


@pytest.mark.parametrize("dialect", ["document", "comet-0.34", "comet-1.0"])
def test_a_custom_route_takes_a_dataclass_and_returns_a_dict(
    greeting: Flask,
) -> None:
    client = greeting.test_client()
    path = '/greet?name="you"&times="3"&loud=true&data=0x0102&others=["me"]'
    params = {"name": "you", "times": "3", "loud": True, "data": "AQI=", "others": ["me"]}
    call = {"jsonrpc": "2.0", "id": 1, "method": "greet", "params": params}

    answers = [client.get(path).get_json(), client.post("/", json=call).get_json()]

    received = {"name": "you", "times": 3, "loud": True, "data": "AQI=", "others": ["me"]}
    assert [answer["result"] for answer in answers] == [{"height": 5, "params": received}] * 2
    assert client.get('/greet?name="a"').get_json()["result"]["params"]["times"] == 1
    # The node's own routes still exist.
    assert client.get("/status").status_code == 200
    described = client.get("/openapi.json").get_json()["paths"]["/greet"]["get"]
    assert [row["name"] for row in described["parameters"]] == list(params)


@pytest.mark.parametrize("dialect", ["document"])
def test_a_custom_route_reports_bad_parameters_like_the_node(greeting: Flask) -> None:
    client = greeting.test_client()

    missing, wrong = client.get("/greet"), client.get('/greet?name="a"&times=x')

    assert [each.status_code for each in (missing, wrong)] == [400, 400]
    assert missing.get_json()["error"]["data"] == "name: expected a value, got none"
    assert "times: expected a 64-bit integer" in wrong.get_json()["error"]["data"]


@pytest.mark.parametrize("answer", [[1, "a"], (1,), "text", 7, 1.5, True, {}, None])
def test_a_custom_route_may_return_any_json_value(make_app: MakeApp, answer: Any) -> None:
    app = make_app()
    kind = type({} if answer is None else answer)
    routes = [Route("own", lambda ctx, params: answer, NoParams, kind)]
    NodeRPC(app, backend=memory(), routes=routes)

    found = app.test_client().get("/own").get_json()["result"]

    assert found == (list(answer) if isinstance(answer, tuple) else answer)
    assert "/own" in app.test_client().get("/openapi.json").get_json()["paths"]


@pytest.mark.parametrize(
    ("error", "status", "code", "text"),
    [
        (NodeRPCError("no greeting today"), 500, -32603, "no greeting today"),
        (NodeRPCError("none", "ask later"), 500, -32603, "none (ask later)"),
        (NotFound("unknown name"), 404, -32603, "unknown name"),
        (ValueNotAllowed("not this name"), 400, -32603, "not this name"),
        (InvalidParams("name: too rude"), 400, -32602, "name: too rude"),
        (RPCError("later", code=-32050, message="Not now"), 500, -32050, "later"),
        (ConfigurationError("/home/me"), 500, -32603, "the node can't start; the server's log"),
        (ValueError("a bug"), 500, -32603, "the call failed; the server's log says why"),
    ],
)
def test_errors_raised_by_a_handler_are_sent(
    make_app: MakeApp, error: Exception, status: int, code: int, text: str
) -> None:
    def fail(ctx: Context, params: NoParams) -> dict[str, Any]:
        raise error

    app = make_app()
    NodeRPC(app, backend=memory(), routes=[Route("fail", fail, NoParams, dict)])

    answer = app.test_client().get("/fail")

    assert answer.status_code == status
    assert answer.get_json()["error"]["code"] == code
    assert answer.get_json()["error"]["data"].startswith(text)


def test_an_answer_of_another_kind_is_a_fault_that_the_log_explains(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    app = make_app()
    routes = [Route("own", lambda ctx, params: object(), NoParams, dict)]
    NodeRPC(app, backend=memory(), routes=routes)

    assert app.test_client().get("/own").status_code == 500
    assert "has no schema for object" in caplog.text


class Plain:
    pass


@dataclass
class Unknown:
    when: float


ROWS: dict[str, Any] = {
    "'status' is declared twice; remove one": [Route("status", greet, Greeting, dict)],
    "expected a Route, got 'greet'": ["greet"],
    "params: expected a dataclass, got <class": [Route("own", greet, cast(Any, Plain), dict)],
    "params: expected a dataclass, got None": [Route("own", greet, cast(Any, None), dict)],
    "Unknown.when: expected the annotation str": [
        Route("own", greet, cast(Any, Unknown), dict)
    ],
    "no schema for Plain of own": [Route("own", greet, Greeting, Plain)],
    r"dataclass\(frozen=True\)": [Route("own", greet, Greeting, dict, chain_only=True)],
}


@pytest.mark.parametrize("said", ROWS)
def test_a_row_that_can_t_be_served_is_refused_at_once(make_app: MakeApp, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        NodeRPC(make_app(), backend=memory(), routes=ROWS[said])


def test_a_single_route_and_the_node_s_table_may_be_given(make_app: MakeApp) -> None:
    own = Route("greet", greet, Greeting, dict)
    for routes in (own, (own,), iter([own]), (*COMETBFT_ROUTES, own)):
        app = make_app()
        NodeRPC(app, backend=memory(), routes=cast(Any, routes))
        client = app.test_client()
        assert [client.get(path).status_code for path in ("/greet", "/health")] == [400, 200]
