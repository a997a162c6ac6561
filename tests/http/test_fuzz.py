"""Tests that random input gets a JSON-RPC response, and never an internal error."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote_from_bytes

from flask.testing import FlaskClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flask_noderpc import COMETBFT_ROUTES
from flask_noderpc.jsonrpc.params import specs

from ..helpers.http import HttpResponse, client_post

# The chain is only read, except for transactions, on which no example depends.
shared = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

# broadcast_tx_commit waits for a block, and none is made.
NAMES = [route.name for route in COMETBFT_ROUTES if route.name != "broadcast_tx_commit"]
PARAMETERS = sorted({spec.wire for route in COMETBFT_ROUTES for spec in specs(route.params)})

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**25), 10**25)
    | st.floats()
    | st.text()
    | st.sampled_from(["0x", "0x00", '"', '""', "null", "5", "-1", "a" * 64, "A" * 44])
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8
)
params = st.dictionaries(st.sampled_from(PARAMETERS) | st.text(), values) | st.lists(values)
requests = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": values,
        "id": values,
        "method": st.sampled_from(NAMES) | values,
        "params": params | values,
        "extra": values,
    },
)
bodies = requests | st.lists(requests | values, max_size=12) | values


def assert_reply(reply: Any) -> None:
    assert reply["jsonrpc"] == "2.0"
    assert ("result" in reply) != (isinstance(reply.get("error"), dict))
    if "result" not in reply:
        error = reply["error"]
        assert error["code"] in (-32700, -32600, -32601, -32602, -32603)
        assert "the server's log" not in error.get("data", "")


def assert_json_rpc(answer: HttpResponse) -> None:
    assert answer.status in (200, 400), answer.body
    if not answer.body:
        assert "Content-Type" not in answer.headers
        return
    assert answer.headers["Content-Type"] == "application/json"
    replies = answer.json
    for reply in replies if isinstance(replies, list) else [replies]:
        assert_reply(reply)


@shared
@given(body=st.binary(max_size=300))
def test_any_bytes_are_answered(client: FlaskClient, body: bytes) -> None:
    assert_json_rpc(client_post(client, body))


@shared
@given(body=bodies)
def test_any_json_is_answered(client: FlaskClient, body: Any) -> None:
    assert_json_rpc(client_post(client, json.dumps(body)))


@shared
@given(method=st.sampled_from(NAMES), given_params=params)
def test_any_params_of_any_method_are_answered(
    client: FlaskClient, method: str, given_params: Any
) -> None:
    body = json.dumps({"id": 1, "method": method, "params": given_params}, allow_nan=True)

    assert_json_rpc(client_post(client, body))


@shared
@given(name=st.sampled_from(NAMES), query=st.binary(max_size=60))
def test_any_query_string_is_answered(client: FlaskClient, name: str, query: bytes) -> None:
    raw = quote_from_bytes(query, safe="&=%+;#?/\"'")

    assert_uri_reply(client, name, raw)


@shared
@given(
    name=st.sampled_from(NAMES),
    query=st.dictionaries(
        st.sampled_from(PARAMETERS),
        st.binary() | scalars.map(lambda value: str(value).encode("utf-8", "surrogatepass")),
    ),
)
def test_any_value_of_any_parameter_is_answered(
    client: FlaskClient, name: str, query: dict[str, bytes]
) -> None:
    raw = "&".join(f"{key}={quote_from_bytes(value)}" for key, value in query.items())

    assert_uri_reply(client, name, raw)


def assert_uri_reply(client: FlaskClient, name: str, query: str) -> None:
    response = client.get(f"/{name}", query_string=query)
    assert response.status_code in (200, 400, 404), response.data
    assert response.headers["Content-Type"] == "application/json"
    assert_reply(response.json)
    assert response.json is not None
    assert response.json["id"] == -1
