"""Tests of an app in the dialects of CometBFT's versions."""

from __future__ import annotations

import json
from typing import Any

import pytest
from flask.testing import FlaskClient

from flask_noderpc.testing import run_node
from flask_noderpc.testing.node import app_for
from tests.helpers.websocket import WebSocketClient

from . import chain

NEW = pytest.mark.parametrize(
    "dialect", ["comet-0.37", "comet-0.38", "comet-0.40", "comet-1.0"]
)
OLD = pytest.mark.parametrize("dialect", ["comet-0.34", "comet-0.37"])
ANY = pytest.mark.parametrize(
    "dialect",
    ["comet-0.34", "comet-0.37", "comet-0.38", "comet-0.39", "comet-0.40", "comet-1.0"],
)


@pytest.fixture
def client(backend: chain.PeeredBackend, dialect: str) -> FlaskClient:
    return app_for(backend, dialect=dialect).test_client()


def got(client: FlaskClient, path: str) -> Any:
    """Return the result of a GET."""
    reply = client.get(path)
    assert reply.status_code == 200
    assert reply.json is not None
    return reply.json["result"]


def posted(client: FlaskClient, method: str, params: Any) -> Any:
    """Return the response to a call."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    return client.post("/", data=body).get_json()


@pytest.mark.parametrize("dialect", ["comet-0.34"])
@pytest.mark.parametrize("name", ["header", "header_by_hash"])
def test_0_34_has_no_routes_for_headers(client: FlaskClient, name: str) -> None:
    assert client.get(f"/{name}?height=1").status_code == 404
    assert posted(client, name, {})["error"]["code"] == -32601
    assert f"/{name}" not in client.get("/").get_data(as_text=True)


@NEW
def test_later_versions_have_them(client: FlaskClient) -> None:
    assert got(client, "/header?height=2")["header"]["height"] == "2"


@pytest.mark.parametrize("dialect", ["comet-0.34"])
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tx_search", ["tx.height=2", False, "1", "30", "asc"]),
        ("block_search", ["block.height=2", "1", "30", "asc"]),
    ],
)
def test_positional_params_of_0_34_include_match_events(
    client: FlaskClient, method: str, params: list[Any]
) -> None:
    found = posted(client, method, [*params, True])

    assert int(found["result"]["total_count"]) > 0
    assert posted(client, method, [*params, False])["result"] == found["result"]
    assert posted(client, method, params)["error"]["code"] == -32602


@pytest.mark.parametrize("dialect", ["comet-0.34"])
def test_the_page_of_0_34_names_it_too(client: FlaskClient) -> None:
    page = client.get("/").get_data(as_text=True)

    assert "block_search?query=_&page=_&per_page=_&order_by=_&match_events=_" in page


@NEW
def test_later_versions_have_no_such_parameter(client: FlaskClient) -> None:
    params = ["tx.height=2", False, "1", "30", "asc"]

    assert "result" in posted(client, "tx_search", params)
    assert "error" in posted(client, "tx_search", [*params, True])


@ANY
def test_by_name_it_has_no_effect(client: FlaskClient) -> None:
    for call in ("match_events=true", "match_events=false"):
        assert got(client, f'/tx_search?query="tx.height=2"&{call}')["total_count"] == "2"


@pytest.mark.parametrize("dialect", ["comet-1.0"])
def test_1_0_serves_everything_under_v1_too(client: FlaskClient) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "health", "params": {}})

    assert got(client, "/v1/block?height=2") == got(client, "/block?height=2")
    for path in ("/v1", "/v1/"):
        assert client.post(path, data=body).get_json()["result"] == {}
        assert client.get(path).get_data() == client.get("/").get_data()
    assert '"//localhost/health?"' in client.get("/v1").get_data(as_text=True)


@pytest.mark.parametrize("dialect", ["comet-0.34", "comet-0.37", "comet-0.38", "document"])
def test_others_have_nothing_there(client: FlaskClient) -> None:
    assert client.get("/v1").status_code == client.get("/v1/health").status_code == 404


@pytest.mark.parametrize(
    ("dialect", "p2p"),
    [("comet-0.34", "8"), ("comet-0.37", "8"), ("comet-0.40", "8"), ("comet-1.0", "9")],
)
def test_a_node_speaks_the_protocol_of_its_version(client: FlaskClient, p2p: str) -> None:
    versions = got(client, "/status")["node_info"]["protocol_version"]
    (peer,) = got(client, "/net_info")["peers"]

    assert versions["p2p"] == p2p
    assert peer["node_info"]["protocol_version"]["p2p"] == "8"


@OLD
def test_events_of_a_block_are_found_with_its_header(client: FlaskClient) -> None:
    query = json.dumps({"query": "begin.foo=100"})

    items = got(client, f"/events?filter={query}")["items"]

    assert [item["event"] for item in items] == ["NewBlockHeader", "NewBlock"]
    assert items[0]["data"]["value"]["num_txs"] == "2"


@OLD
def test_max_results_limits_a_page_of_events(client: FlaskClient) -> None:
    page = got(client, '/events?max_results="1"')

    assert page["items"][0]["cursor"] == page["newest"]


@pytest.mark.parametrize(
    ("dialect", "first"), [("comet-0.37", "Tx"), ("comet-1.0", "NewBlockEvents")]
)
def test_new_block_events_do_not_exist_before_0_38(dialect: str, first: str) -> None:
    with run_node(dialect=dialect) as node:
        client = WebSocketClient(node.url)
        client.asked("subscribe", {"query": "tm.event='NewBlockEvents'"})
        client.asked("subscribe", {"query": "tm.event='Tx'"})
        node.chain.mempool.submit(b"a=1")
        node.produce()

        assert client.json()["result"]["events"]["tm.event"] == [first]
        client.close()


@pytest.mark.parametrize("path", ["/websocket", "/v1/websocket"])
def test_1_0_has_two_websockets(path: str) -> None:
    with run_node(dialect="comet-1.0") as node:
        client = WebSocketClient(node.url, path=path)
        assert client.asked("health", {})["result"] == {}
        client.close()


@pytest.mark.parametrize("dialect", ["comet-0.40"])
@pytest.mark.parametrize(
    ("request_id", "said"),
    [
        ("1.5", "json-rpc ID must be a whole number, got 1.5"),
        ("-0.5", "json-rpc ID must be a whole number, got -0.5"),
        ("1e-5", "json-rpc ID must be a whole number, got 1e-05"),
        ("1234567.25", "json-rpc ID must be a whole number, got 1.23456725e+06"),
        ("1e30", "json-rpc ID out of int64 range, got 1e+30"),
        (
            "9223372036854775808",
            "json-rpc ID out of int64 range, got 9.223372036854776e+18",
        ),
        (
            "1e999",
            "json: cannot unmarshal number 1e999 into Go struct field .id of type float64",
        ),
    ],
)
def test_0_40_refuses_ids_that_are_no_whole_numbers(
    client: FlaskClient, request_id: str, said: str
) -> None:
    body = f'{{"jsonrpc":"2.0","id":{request_id},"method":"health"}}'

    # A node of 0.40.0 gave this response.
    assert client.post("/", data=body).get_json() == {
        "jsonrpc": "2.0",
        "error": {
            "code": -32700,
            "message": "Parse error. Invalid JSON",
            "data": f"error unmarshaling request: {said}",
        },
    }


@pytest.mark.parametrize("dialect", ["comet-0.40"])
@pytest.mark.parametrize("request_id", ["1.5", "1e30", "9223372036854775808"])
def test_0_40_refuses_such_ids_in_a_batch(client: FlaskClient, request_id: str) -> None:
    body = f'[{{"jsonrpc":"2.0","id":{request_id},"method":"health"}}]'

    answer = client.post("/", data=body).get_json()
    assert answer["error"]["code"] == -32700
    assert "cannot unmarshal array" in answer["error"]["data"]


@pytest.mark.parametrize("dialect", ["comet-0.40"])
@pytest.mark.parametrize(
    ("request_id", "shown"),
    [("-9223372036854775808", -(2**63)), ("1e5", 100_000), ("-3.0", -3), ('"1.5"', "1.5")],
)
def test_0_40_answers_other_ids(client: FlaskClient, request_id: str, shown: Any) -> None:
    body = f'{{"jsonrpc":"2.0","id":{request_id},"method":"health"}}'

    assert client.post("/", data=body).get_json()["id"] == shown


@pytest.mark.parametrize("dialect", ["comet-0.39", "comet-0.40"])
def test_0_39_and_later_show_the_authority_of_parameters(client: FlaskClient) -> None:
    params = got(client, "/consensus_params")["consensus_params"]

    assert list(params)[-2:] == ["abci", "authority"]
    assert params["authority"] == {"authority": ""}
