"""Tests of messages, batches and HTTP, compared with geth."""

from __future__ import annotations

import json
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from flask_noderpc import ConfigurationError, MemoryChain, NodeRPC
from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.ethereum.settings import EthereumSettings
from flask_noderpc.jsonrpc import context
from flask_noderpc.testing import make_chain
from flask_noderpc.testing.node import app_for

from .transcript import Exchange, exchanges

CHAIN = make_chain(3)
CALL = '{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}'


def app(**settings: Any) -> Flask:
    backend = ChainBackend(MemoryChain(CHAIN.genesis, CHAIN.blocks, state=CHAIN.state))
    return app_for(backend, json_rpc_enable=True, **settings)


@pytest.fixture
def client() -> FlaskClient:
    return app(evm_max_batch=4).test_client()


@pytest.mark.parametrize(
    "exchange",
    [*exchanges("messages"), *exchanges("batches"), *exchanges("parameters")],
    ids=lambda exchange: exchange.name,
)
def test_a_message_is_answered_as_geth_answers_it(
    client: FlaskClient, exchange: Exchange
) -> None:
    answer = client.post("/evm", data=exchange.sent, content_type="application/json")

    assert (answer.status_code, answer.text) == (200, exchange.answer)
    if exchange.answer:
        assert answer.content_type == "application/json"


def test_without_the_setting_there_is_no_layer() -> None:
    backend = ChainBackend(MemoryChain(CHAIN.genesis, CHAIN.blocks, state=CHAIN.state))

    assert app_for(backend).test_client().post("/evm", data=CALL).status_code == 404


@pytest.mark.parametrize(
    ("method", "options", "status", "text"),
    [
        ("GET", {}, 200, ""),
        ("GET", {"query_string": "a=b"}, 415, "invalid content type, only application/json"),
        ("PUT", {"data": CALL}, 405, "method not allowed"),
        ("DELETE", {}, 405, "method not allowed"),
        ("POST", {"data": CALL}, 415, "invalid content type, only application/json"),
        ("POST", {"data": CALL, "content_type": "text/plain"}, 415, "invalid content type"),
        ("POST", {"data": "", "content_type": "application/json"}, 200, ""),
        ("OPTIONS", {}, 200, ""),
    ],
)
def test_http_is_geths(
    client: FlaskClient, method: str, options: dict[str, Any], status: int, text: str
) -> None:
    answer = client.open("/evm", method=method, **options)

    assert answer.status_code == status
    assert answer.text.startswith(text)


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "application/json; charset=utf-8",
        "application/json-rpc",
        "application/jsonrequest",
    ],
)
def test_all_content_types_of_json_are_taken(client: FlaskClient, content_type: str) -> None:
    answer = client.post("/evm", data=CALL, content_type=content_type)

    assert answer.get_json(force=True)["result"] == "0x2328"


def test_a_body_over_the_limit_is_refused_before_it_is_read() -> None:
    client = app(evm_max_body_bytes=100).test_client()

    answer = client.post("/evm", data="x" * 101, content_type="application/json")

    assert answer.status_code == 413
    assert answer.text.startswith("content length too large (101>100)")
    assert "NODERPC_EVM_MAX_BODY_BYTES" in answer.text


def test_a_method_name_has_a_limit(client: FlaskClient) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "x" * 2049}

    error = client.post("/evm", json=call).get_json()["error"]

    assert error == {"code": -32600, "message": "method name too long: 2049 > 2048"}


def test_calls_beyond_the_size_of_an_answer_are_refused() -> None:
    client = app(max_response_bytes=100).test_client()
    batch = [json.loads(CALL) | {"id": number} for number in range(5)]

    answers = client.post("/evm", json=batch).get_json()

    codes = [answer.get("error", {}).get("code") for answer in answers]
    assert codes == [None, None, -32003, -32003, -32003]


def test_calls_beyond_the_time_of_a_batch_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(context, "BATCH_S", 1e-9)
    client = app().test_client()

    answers = client.post("/evm", json=[json.loads(CALL)] * 2).get_json()

    error = {"code": -32002, "message": "request timed out (send fewer calls in a batch)"}
    assert [answer["error"] for answer in answers] == [error] * 2


def test_the_namespaces_are_those_of_the_setting() -> None:
    client = app(evm_api="net").test_client()

    def error(method: str) -> Any:
        call = {"jsonrpc": "2.0", "id": 1, "method": method}
        return client.post("/evm", json=call).get_json().get("error")

    assert error("net_version") is None
    assert error("rpc_modules") is None
    assert error("eth_chainId")["code"] == -32601


def test_an_unknown_namespace_is_refused_at_start() -> None:
    with pytest.raises(
        ConfigurationError, match=r"NODERPC_EVM_API: expected any of .*, got 'admin'"
    ):
        app(evm_api="eth,admin")


def test_a_batch_has_as_many_calls_as_geth_takes() -> None:
    client = app().test_client()
    batch = [json.loads(CALL) | {"id": number} for number in range(1_001)]

    answers = client.post("/evm", json=batch[:1_000]).get_json()
    (refused,) = client.post("/evm", json=batch).get_json()

    assert [answer["id"] for answer in answers] == list(range(1_000))
    assert {answer["result"] for answer in answers} == {hex(9000)}
    assert "NODERPC_EVM_MAX_BATCH" in refused["error"]["message"]


def test_a_batch_that_is_too_long_is_not_read_to_its_end(client: FlaskClient) -> None:
    batch: list[object] = [{}, {}, {}, {}, {"jsonrpc": "2.0", "id": 7, "method": "eth_chainId"}]

    (answer,) = client.post("/evm", json=batch).get_json()

    assert answer["id"] is None
    assert "NODERPC_EVM_MAX_BATCH" in answer["error"]["message"]


@pytest.mark.parametrize("params", [[[]] * 50_000, [{"address": [{}] * 50_000}]])
def test_a_call_has_only_so_many_lists(client: FlaskClient, params: list[Any]) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "eth_getLogs", "params": params}

    error = client.post("/evm", json=call).get_json()["error"]

    assert error == {
        "code": -32602,
        "message": "params: expected at most 50000 arrays and objects; send several calls",
    }


_ADDRESSES = [f"0x{number:040x}" for number in range(2_001)]


@pytest.mark.parametrize(
    ("method", "params", "said"),
    [
        ("eth_call", [{"accessList": [{"address": a} for a in _ADDRESSES]}], "access list"),
        (
            "eth_call",
            [{"accessList": [{"address": _ADDRESSES[0], "storageKeys": ["0x00"] * 2_001}]}],
            "2000 storage keys, got 2001",
        ),
        ("eth_call", [{"authorizationList": [{}] * 2_001}], "2000 authorizations"),
        ("eth_call", [{"blobVersionedHashes": ["0x00"] * 2_001}], "2000 hashes of blobs"),
        ("eth_call", [{}, "latest", {key: {} for key in _ADDRESSES}], "2000 accounts"),
        (
            "eth_call",
            [{}, "latest", {_ADDRESSES[0]: {"state": dict.fromkeys(map(str, range(10_001)))}}],
            "10000 slots of overrides, got 10001",
        ),
        (
            "eth_getStorageValues",
            [{key: [] for key in _ADDRESSES}],
            "too many slots (max 1024)",
        ),
        ("eth_getStorageValues", [{"0x": ["0x0"] * 1_025}], "too many slots (max 1024)"),
    ],
)
def test_counts_are_checked_before_the_elements_are_read(
    client: FlaskClient, method: str, params: list[Any], said: str
) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}

    assert said in client.post("/evm", json=call).get_json()["error"]["message"]


@pytest.mark.parametrize("start", ['{"method":"eth_chainId","params":[', "["])
def test_a_body_has_only_so_many_values(client: FlaskClient, start: str) -> None:
    answer = client.post("/evm", data=start + "0," * 100_001, content_type="application/json")

    message = answer.get_json()["error"]["message"]
    assert message.startswith("expected at most 100000 values in a body, got 10000")


def test_a_page_that_may_not_read_is_refused_as_on_other_paths() -> None:
    client = app(read_origins=()).test_client()

    answer = client.post(
        "/evm", data=CALL, content_type="application/json", headers={"Origin": "https://a.b"}
    )

    assert answer.status_code == 403
    assert "NODERPC_READ_ORIGINS" in answer.get_json()["error"]["message"]


def test_a_host_route_at_the_evm_path_wins_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    host = Flask("host")
    host.add_url_rule("/evm", "own", lambda: "own", methods=["POST"])
    backend = ChainBackend(MemoryChain(CHAIN.genesis, CHAIN.blocks, state=CHAIN.state))

    NodeRPC(host, backend=backend, settings=[EthereumSettings(json_rpc_enable=True)])

    assert host.test_client().post("/evm").text == "own"
    assert host.test_client().get("/evm").status_code == 200
    assert caplog.text.count("POST /evm is served by the app's own") == 1
    assert "NODERPC_JSON_RPC_ENABLE" in caplog.text


# An example of Evmos's documentation of JSON-RPC.
EVMOS = '{"id": 1, "method": "eth_chainId", "params": []}'


def test_a_call_without_a_version_is_taken(client: FlaskClient) -> None:
    answer = client.post("/evm", data=EVMOS, content_type="application/json").get_json()

    assert answer == {"jsonrpc": "2.0", "id": 1, "result": "0x2328"}


def test_calls_without_a_version_are_taken_in_a_batch(client: FlaskClient) -> None:
    batch = f'[{EVMOS}, {CALL}, {{"id": 3}}, {{"id": 4, "method": 5}}]'

    answers = client.post("/evm", data=batch, content_type="application/json").get_json()

    assert [answer["id"] for answer in answers] == [1, 1, 3, 4]
    assert [answer.get("result") for answer in answers] == ["0x2328", "0x2328", None, None]
    assert {answer["error"]["code"] for answer in answers[2:]} == {-32600}


@pytest.mark.parametrize("version", ['""', '"1.0"', "null", "2.0", "2", "{}"])
def test_any_other_version_is_refused(client: FlaskClient, version: str) -> None:
    call = f'{{"jsonrpc": {version}, "id": 1, "method": "eth_chainId"}}'

    answer = client.post("/evm", data=call, content_type="application/json").get_json()

    assert answer["error"]["code"] == -32600
