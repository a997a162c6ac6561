"""Tests of the gateway at its boundary: heights, permissions, limits, wrong requests."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from flask import Flask, Request
from flask.testing import FlaskClient
from hypothesis import given, settings
from hypothesis import strategies as st
from werkzeug.test import Client, TestResponse

from flask_noderpc import ConfigurationError, Denied, NodeRPC
from flask_noderpc.chain.embedded import EmbeddedChain
from flask_noderpc.cosmos.bank import Bank
from flask_noderpc.cosmos.settings import CosmosSettings
from flask_noderpc.domain.abci import QueryResult
from flask_noderpc.protocol.comet.hashes import tx_hash
from flask_noderpc.protocol.protobuf import integer, message
from flask_noderpc.signals import rpc_called
from flask_noderpc.testing.node import app_for
from flask_noderpc.web.rules import render

from .conftest import LAST

REST = CosmosSettings(rest=True)
BOB = "cosmos1avgyh77ycn997ja45q5q8ss8y9mr424jq6zn4p"
BALANCE = f"/cosmos/bank/v1beta1/balances/{BOB}/by_denom?denom=token"
PARAMS = "/cosmos/bank/v1beta1/params"
TXS = "/cosmos/tx/v1beta1/txs"
HEIGHT = "X-Cosmos-Block-Height"
GARBAGE = {"tx_bytes": b64encode(b"garbage").decode(), "mode": "BROADCAST_MODE_SYNC"}
ELSEWHERE = {"Origin": "https://elsewhere.example"}


def mounted(chain: EmbeddedChain, **given: Any) -> FlaskClient:
    return app_for(chain, **{"rest": True, "dialect": "comet-0.38", **given}).test_client()


def refused(reply: TestResponse, status: int, code: int) -> str:
    """Check an error of the gateway, and return its text."""
    assert (reply.status_code, reply.content_type) == (status, "application/json")
    body = reply.get_json()
    assert body == {"code": code, "message": body["message"], "details": []}
    text: str = body["message"]
    return text


def test_wallets_find_what_they_probe_on_an_app(client: FlaskClient) -> None:
    # For Keplr, 501 means that a module is missing, and 400 that it exists.
    assert refused(client.get("/cosmos/bank/v1beta1/spendable_balances/test"), 400, 3)
    for path in (
        "/ibc/apps/transfer/v1/params",
        "/feemarket/v1/params",
        "/cosmwasm/wasm/v1/contract/test/smart/test",
        "/cosmos/none",
    ):
        assert refused(client.get(path), 501, 12) == "Not Implemented"
    # Other paths belong to the app.
    assert client.get("/none").status_code == 404
    assert client.get("/status").get_json()["result"]["node_info"]["network"] == "bank-test-1"


def test_its_own_address_serves_nothing_else(rest: Client) -> None:
    for path in ("/", "/status", "/none", "/cosmos", "/cosmos/", "/metrics", f"{PARAMS}%0A"):
        assert refused(rest.get(path), 501, 12) == "Not Implemented"
    # A base URL may end with a slash.
    for path in (PARAMS, f"http://localhost/{PARAMS}", PARAMS.replace("bank", "/bank/")):
        assert rest.get(path).get_json()["params"]["default_send_enabled"] is True


def test_a_state_is_read_at_a_height(client: FlaskClient) -> None:
    def asked(height: str, name: str = HEIGHT) -> TestResponse:
        return client.get(BALANCE, headers={name: height})

    latest, first = client.get(BALANCE), asked("1")
    assert latest.headers[HEIGHT] == latest.headers[f"Grpc-Metadata-{HEIGHT}"] == str(LAST)
    assert first.headers[HEIGHT] == "1"
    assert first.get_json()["balance"]["amount"] == "1000000000"
    assert latest.get_json()["balance"]["amount"] == "999999990"
    assert asked("1", f"Grpc-Metadata-{HEIGHT}").data == first.data
    assert asked("").data == asked("0").data == latest.data
    wrong = "codespace sdk code 18: invalid request: "
    for height, text in (
        (
            "99",
            "codespace sdk code 26: invalid height: cannot query with height in the future;"
            " please provide a valid height",
        ),
        ("-1", f"{wrong}cannot query with height < 0; please provide a valid height"),
        (
            "x",
            f"{wrong}Baseapp.RegisterGRPCServer: invalid height header"
            ' "x-cosmos-block-height": strconv.ParseInt: parsing "x": invalid syntax',
        ),
    ):
        assert refused(asked(height), 500, 2) == text
    failed = client.get("/cosmos/bank/v1beta1/balances/test", headers={HEIGHT: "2"})
    assert failed.headers[f"Grpc-Metadata-{HEIGHT}"] == "2"
    assert HEIGHT not in failed.headers


def test_parameters_of_the_consensus_are_those_of_the_genesis(client: FlaskClient) -> None:
    # The SDK 0.53.8 gives this text with the same genesis.
    assert client.get("/cosmos/consensus/v1/params").get_data(as_text=True) == (
        '{"params":{"block":{"max_bytes":"200000","max_gas":"1000000"},"evidence":'
        '{"max_age_num_blocks":"100000","max_age_duration":"172800s","max_bytes":"50000"},'
        '"validator":{"pub_key_types":["ed25519"]},"version":{"app":"0"},'
        '"abci":{"vote_extensions_enable_height":"0"}}}'
    )


def test_a_transaction_is_simulated_by_its_bytes_and_by_its_json(
    client: FlaskClient, chain: EmbeddedChain
) -> None:
    simulate, (raw,) = "/cosmos/tx/v1beta1/simulate", chain.reads.block(2)[1].txs
    shown = client.get(f"{TXS}/{tx_hash(raw).hex()}").get_json()["tx"]

    by_bytes = client.post(simulate, json={"tx_bytes": b64encode(raw).decode()})
    by_json = client.post(simulate, json={"tx": shown})

    assert "account sequence mismatch" in refused(by_json, 500, 2)
    assert by_json.data == by_bytes.data
    # cosmpy writes the member's name in this way.
    shown["authInfo"] = shown.pop("auth_info")
    assert client.post(simulate, json={"tx": shown}).data == by_bytes.data


@pytest.mark.parametrize(
    ("tx", "text"),
    [
        (1, "json: cannot unmarshal number into Go value of type map[string]json.RawMessage"),
        ({"body": []}, "json: cannot unmarshal array into Go value of type map[string]"),
        ({"signatures": "AA=="}, "json: cannot unmarshal string into Go value of type []"),
        ({"signatures": [1]}, "json: cannot unmarshal number into Go value of type []uint8"),
        ({"body": {"messages": [{}]}}, "Any JSON doesn't have '@type'"),
        ({"body": {"messages": [{"@type": "/x.Y"}]}}, "unable to resolve type URL /x.Y"),
        ({"body": {"memo": 1}}, "json: cannot unmarshal number into Go value of type string"),
        ({"body": {"timeout_height": "x"}}, 'strconv.ParseUint: parsing "x": invalid syntax'),
        ({"body": {"timeout_height": True}}, "json: cannot unmarshal bool into Go value"),
        (
            {"body": {"timeout_height": "0x1"}},
            'strconv.ParseUint: parsing "0x1": invalid syntax',
        ),
        ({"body": {"unordered": "x"}}, "json: cannot unmarshal string into Go value of type"),
        ({"body": {"timeout_timestamp": "x"}}, "bad Timestamp: x"),
        ({"body": {"timeout_timestamp": {}}}, "bad Timestamp: {}"),
    ],
)
def test_json_that_is_no_transaction_is_named(client: FlaskClient, tx: Any, text: str) -> None:
    reply = client.post("/cosmos/tx/v1beta1/simulate", json={"tx": tx})
    assert refused(reply, 400, 3).startswith(text)


def test_a_transaction_without_anything_is_simulated(client: FlaskClient) -> None:
    reply = client.post("/cosmos/tx/v1beta1/simulate", json={"tx": {}})
    text = "must contain at least one message: invalid request with gas used: '1150'"
    assert refused(reply, 500, 2) == text


@pytest.mark.parametrize(
    ("mode", "status", "text"),
    [
        ("2", 400, 'unknown value "2" for enum cosmos.tx.v1beta1.BroadcastMode'),
        (99, 500, "unsupported return type unspecified; supported types: sync, async"),
        (-1, 500, "unsupported return type unspecified; supported types: sync, async"),
        (True, 400, "json: cannot unmarshal bool into Go value of type tx.BroadcastMode"),
        ([2], 400, "json: cannot unmarshal array into Go value of type tx.BroadcastMode"),
        (1 << 31, 400, "json: cannot unmarshal number into Go value of type tx.BroadcastMode"),
    ],
)
def test_a_mode_is_read_as_by_the_sdk(
    client: FlaskClient, mode: Any, status: int, text: str
) -> None:
    reply = client.post(TXS, json={**GARBAGE, "mode": mode})
    assert refused(reply, status, {400: 3, 500: 2}[status]) == text


def test_messages_within_messages_come_to_an_end(client: FlaskClient) -> None:
    inner: dict[str, Any] = {}
    for _ in range(100):
        inner = {"body": {"messages": [{"@type": "/cosmos.tx.v1beta1.Tx", **inner}]}}
    reply = client.post("/cosmos/tx/v1beta1/simulate", json={"tx": inner})
    assert "nested too deeply" in refused(reply, 400, 3)
    for body in (
        b'{"tx":' * 5000 + b"1" + b"}" * 5000,
        b'{"tx_bytes":"\\ud800"}',
        b'{"mode":1e999}',
    ):
        assert refused(client.post(TXS, data=body), 400, 3)


def test_validators_are_paged(client: FlaskClient) -> None:
    path = "/cosmos/base/tendermint/v1beta1/validatorsets/1"
    assert client.get(f"{path}?pagination.offset=1").get_json()["pagination"]["total"] == "1"
    beyond = client.get(f"{path}?pagination.offset=5&pagination.limit=2")
    assert refused(beyond, 500, 2) == "page should be within [1, 1] range, given 3"
    for name in ("offset", "limit"):
        negative = client.get(f"{path}?pagination.{name}={(1 << 64) - 1}")
        assert refused(negative, 400, 3) == f"{name} must greater than 0"
    none = client.get("/cosmos/base/tendermint/v1beta1/validatorsets/0")
    assert refused(none, 500, 2) == "height must be greater than 0, but got 0"


def test_keys_of_the_stores_are_read(client: FlaskClient) -> None:
    def asked(query: str) -> TestResponse:
        return client.get(f"/cosmos/base/tendermint/v1beta1/abci_query?{query}")

    found = asked("path=/store/bank/key&data=AHN0YWtl").get_json()
    assert (found["value"], found["proof_ops"]) == ("NDAwMDAwMDEwMA==", None)
    text = refused(asked("path=/cosmos.bank.v1beta1.Query/Params"), 400, 3)
    assert text == "unsupported ABCI query path: /cosmos.bank.v1beta1.Query/Params"


def test_methods_that_are_denied_are_not_implemented(chain: EmbeddedChain) -> None:
    client = mounted(chain, deny_methods=["abci_query", "broadcast_*"])
    assert "NODERPC_DENY_METHODS" in refused(client.get(PARAMS), 501, 12)
    assert "NODERPC_DENY_METHODS" in refused(client.post(TXS, json=GARBAGE), 501, 12)


def test_a_host_decides_about_calls(chain: EmbeddedChain) -> None:
    def authorize(request: Request, method: str) -> bool | Denied:
        if method == "broadcast_tx_sync":
            return Denied(401, {"WWW-Authenticate": "Bearer"}, "log in")
        return True

    app = Flask("guarded")
    NodeRPC(app, backend=chain, settings=[REST], authorize=authorize)
    client = app.test_client()
    denied = client.post(TXS, json=GARBAGE)
    assert refused(denied, 401, 7) == "log in"
    assert denied.headers["WWW-Authenticate"] == "Bearer"
    assert client.get(PARAMS).status_code == 200


def test_pages_of_other_sites_send_nothing(chain: EmbeddedChain) -> None:
    client = mounted(chain)
    assert refused(client.post(TXS, json=GARBAGE, headers=ELSEWHERE), 403, 7)
    assert client.get(PARAMS, headers=ELSEWHERE).status_code == 200
    closed = mounted(chain, read_origins=[])
    assert refused(closed.get(PARAMS, headers=ELSEWHERE), 403, 7)
    assert (
        mounted(chain, write_origins=[ELSEWHERE["Origin"]])
        .post(TXS, json=GARBAGE, headers=ELSEWHERE)
        .get_json()["tx_response"]["codespace"]
        == "sdk"
    )


def test_pages_may_read_where_cors_is_open(chain: EmbeddedChain) -> None:
    client = mounted(chain, cors_origins="*")
    asked = {
        **ELSEWHERE,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type,x-cosmos-block-height",
    }
    preflight = client.options(TXS, headers=asked)
    assert preflight.status_code == 204
    assert "x-cosmos-block-height" in preflight.headers["Access-Control-Allow-Headers"]
    for reply in (
        preflight,
        client.get(PARAMS, headers=ELSEWHERE),
        client.get("/feemarket/v1/params", headers=ELSEWHERE),
    ):
        assert reply.headers["Access-Control-Allow-Origin"] == "*"
    assert (
        "Access-Control-Allow-Origin"
        not in mounted(chain).get(PARAMS, headers=ELSEWHERE).headers
    )


def test_a_body_is_read_to_its_limit(chain: EmbeddedChain) -> None:
    client = mounted(chain, max_body_bytes=200)
    assert client.post(TXS, json=GARBAGE).status_code == 200
    long = json.dumps({**GARBAGE, "more": "x" * 200}).encode()
    assert "NODERPC_MAX_BODY_BYTES" in refused(client.post(TXS, data=long), 400, 3)
    packed = client.post(TXS, data=b"x", headers={"Content-Encoding": "gzip"})
    assert "Content-Encoding" in refused(packed, 400, 3)


def test_a_transaction_that_is_not_checked_has_the_code_of_the_sdk(
    chain: EmbeddedChain,
) -> None:
    too_large = b64encode(bytes(2_000_000)).decode()
    client = mounted(chain, max_body_bytes=4_000_000)
    reply = client.post(TXS, json={**GARBAGE, "tx_bytes": too_large}).get_json()
    assert (reply["tx_response"]["code"], reply["tx_response"]["codespace"]) == (21, "sdk")


def test_large_replies_are_compressed(
    chain: EmbeddedChain, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(render, "MIN_BYTES", 1_000)
    path = f"{TXS}?query=tx.height%3E0"
    packed = mounted(chain).get(
        path,
        headers={"Accept-Encoding": "gzip"},
        environ_overrides={"REMOTE_ADDR": "192.0.2.7"},
    )
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.data) == client.get(path).data


def test_it_is_served_below_a_prefix(chain: EmbeddedChain) -> None:
    app = Flask("prefixed")
    NodeRPC(app, backend=chain, settings=[REST], url_prefix="/chains/<name>")
    NodeRPC(app, backend=chain, settings=[REST], url_prefix="/<prefix>/<rest>", name="other")
    client = app.test_client()
    assert client.get(f"/chains/bank{PARAMS}").status_code == 200
    assert client.get(f"/others/bank{PARAMS}").status_code == 200
    assert client.get(PARAMS).status_code == 404


def test_calls_are_reported(chain: EmbeddedChain, client: FlaskClient) -> None:
    seen: list[tuple[str, str, int]] = []

    def receive(sender: object, **call: Any) -> None:
        seen.append((call["method"], call["transport"], call["outcome"]))

    with rpc_called.connected_to(receive, sender=chain):
        client.get(PARAMS)
        client.post(TXS, json=GARBAGE)
    assert seen == [("abci_query", "rest", 0), ("broadcast_tx_sync", "rest", 0)]


def test_it_is_off_unless_a_setting_brings_it(chain: EmbeddedChain, tmp_path: Path) -> None:
    assert mounted(chain, rest=False).get(PARAMS).status_code == 404
    with pytest.raises(ConfigurationError, match="NODERPC_APPLICATION = 'bank'"):
        NodeRPC(Flask("other"), settings=[REST])
    other = EmbeddedChain(tmp_path / "chain.db")
    with pytest.raises(ConfigurationError, match="or implement sdk_prefix"):
        NodeRPC(Flask("other"), backend=other, settings=[REST])


def test_what_nobody_expects_is_told_to_the_log_alone(
    chain: EmbeddedChain, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: EmbeddedChain) -> None:
        raise ZeroDivisionError("secret")

    client = mounted(chain)
    monkeypatch.setattr(EmbeddedChain, "application", property(fail))
    reply = client.get(PARAMS)
    assert "secret" not in refused(reply, 500, 13)
    assert "secret" in caplog.text


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (PARAMS, b"\x0a\x05"),
        ("/cosmos/base/node/v1beta1/config", b"\xff"),
        # The time is later than the last one that can be written as text.
        ("/cosmos/staking/v1beta1/validators", message(1, message(9, integer(1, 1 << 40)))),
    ],
)
def test_an_answer_that_cannot_be_read_is_not_the_callers_mistake(
    raising: FlaskClient, monkeypatch: pytest.MonkeyPatch, path: str, value: bytes
) -> None:
    def answers(*_: object) -> QueryResult:
        return QueryResult(value=value, key=None)

    monkeypatch.setattr(Bank, "query", answers)
    text = refused(raising.get(path), 500, 13)
    assert text.startswith("invalid response from the application to /")


WRONG = (
    f"{BALANCE}&denom=%ff%00",
    f"/cosmos/bank/v1beta1/balances/{BOB}?pagination.limit={'9' * 5000}",
    f"/cosmos/bank/v1beta1/balances/{BOB}?pagination.offset={'0' * 5000}1",
    f"/cosmos/bank/v1beta1/balances/{BOB}?pagination.key.x.y=1&pagination=2&.=3&=",
    f"/cosmos/bank/v1beta1/balances/{BOB}?pagination.limit=1;x",
    "/cosmos/bank/v1beta1/balances/%ff",
    "/cosmos/bank/v1beta1/balances/a%2Fb",
    f"/cosmos/base/tendermint/v1beta1/blocks/{'9' * 5000}",
    "/cosmos/base/tendermint/v1beta1/blocks/+-1",
    "/cosmos/base/tendermint/v1beta1/blocks/%D9%A1",
    f"/cosmos/tx/v1beta1/txs/block/-{1 << 63}",
    f"/cosmos/tx/v1beta1/txs?query=tx.height%3D1&limit={(1 << 64) - 1}&page={(1 << 64) - 1}",
    f"/cosmos/base/tendermint/v1beta1/validatorsets/1?pagination.offset={(1 << 64) - 1}",
    "/cosmos/bank/v1beta1/denoms_metadata/" + "x/" * 500,
)


BALANCES = f"/cosmos/bank/v1beta1/balances/{BOB}"


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("x=%zz", 'invalid URL escape "%zz"'),
        ("%", 'invalid URL escape "%"'),
        ("a=1;b=2", "invalid semicolon separator in query"),
        ("pagination=1", "field type *query.PageRequest is not supported in query parameters"),
        (
            "pagination[limit]=1",
            "field type *query.PageRequest is not supported in query parameters",
        ),
        ("pagination.limit.x=1", "unexpected nested field x in pagination.limit"),
        ("pagination.limit=08", 'strconv.ParseUint: parsing "08": invalid syntax'),
        ("pagination.key=ab%2B_", "illegal base64 data at input byte 2"),
        ("pagination.key=ab-_a", "illegal base64 data at input byte 4"),
    ],
)
def test_a_query_string_is_refused_as_by_the_sdk(
    client: FlaskClient, query: str, text: str
) -> None:
    # The SDK 0.53.8 gives this text for the same requests.
    assert refused(client.get(f"{BALANCES}?{query}"), 400, 3) == text


@pytest.mark.parametrize(("given", "byte"), [("AQI-_w", 4), ("nobody", 4), ("%20", 0)])
def test_bytes_in_a_path_are_refused_as_by_the_sdk(
    client: FlaskClient, given: str, byte: int
) -> None:
    path = "/cosmos/auth/v1beta1/bech32"
    assert client.get(f"{path}/AQIDBA==").get_json() == {
        "address_string": "cosmos1qypqxpqqlyngr"
    }
    text = "type mismatch, parameter: address_bytes, error: illegal base64 data at input byte"
    assert refused(client.get(f"{path}/{given}"), 400, 3) == f"{text} {byte}"


def test_a_query_string_is_read_as_by_the_sdk(client: FlaskClient) -> None:
    def coins(query: str) -> list[str]:
        return [
            each["denom"] for each in client.get(f"{BALANCES}?{query}").get_json()["balances"]
        ]

    everything = coins("")
    for query, count in (("limit=0x2", 2), ("limit=02", 2), ("limit=0b1", 1), ("limit=1_0", 4)):
        assert coins(f"pagination.{query}") == everything[:count]
    assert "TOKEN" in coins("resolveDenom=true")
    # The query string is not read if a request has no field for it.
    assert client.get(f"{PARAMS}?a=%zz;b").status_code == 200
    one_that_is_empty = client.get("/cosmos/bank/v1beta1/send_enabled?denoms=").get_json()
    assert one_that_is_empty == {"send_enabled": [], "pagination": None}
    owners = client.get("/cosmos/bank/v1beta1/denom_owners/ibc/none").get_json()
    assert owners["denom_owners"] == []
    assert client.get("/cosmos/base/tendermint/v1beta1/blocks/0x2").status_code == 200


def test_errors_of_the_node_have_the_codes_of_the_sdk(client: FlaskClient) -> None:
    def asked(path: str, height: str = "") -> str:
        return refused(client.get(path, headers={HEIGHT: height}), 500, 2)

    text = "codespace sdk code 26: invalid height: cannot query with height in the future"
    for path in ("base/tendermint/v1beta1/blocks/latest", "tx/v1beta1/txs?query=tx.height%3E0"):
        assert asked(f"/cosmos/{path}", "99").startswith(text)
    text = (
        "codespace sdk code 26: invalid height: requested height -1 but height must not be less"
    )
    assert asked(f"{TXS}/block/-1").startswith(text)
    text = "codespace sdk code 18: invalid request: out of range: cannot paginate 1 txs"
    assert asked(f"{TXS}/block/2?pagination.offset=1").startswith(text)


def test_a_page_before_the_first_is_the_first(client: FlaskClient) -> None:
    first = client.get(f"{TXS}?query=tx.height%3E0")
    assert first.get_json()["total"] == "4"
    assert client.get(f"{TXS}?query=tx.height%3E0&page={(1 << 64) - 1}").data == first.data


def test_errors_are_not_escaped_for_html(client: FlaskClient) -> None:
    reply = client.get(PARAMS, headers={HEIGHT: "-1"})
    assert "with height < 0" in reply.get_data(as_text=True)


@pytest.mark.parametrize("path", WRONG)
def test_wrong_paths_are_answered(raising: FlaskClient, path: str) -> None:
    reply = raising.get(path)
    assert reply.content_type == "application/json"
    assert reply.status_code == 200 or set(reply.get_json()) == {"code", "message", "details"}


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
_BODIES = (
    st.binary(max_size=40)
    | st.fixed_dictionaries(
        {}, optional={"tx_bytes": _JSON, "mode": _JSON, "txBytes": _JSON, "tx": _JSON}
    ).map(lambda body: json.dumps(body).encode())
    | st.binary(max_size=80).map(
        lambda raw: json.dumps({"tx_bytes": b64encode(raw).decode(), "mode": 2}).encode()
    )
)


@pytest.fixture(scope="module")
def raising(chain: EmbeddedChain) -> FlaskClient:
    """Return a client whose app raises exceptions that are not handled."""
    app = app_for(chain, settings=[REST])
    app.config["PROPAGATE_EXCEPTIONS"] = True
    return app.test_client()


@settings(max_examples=200)
@given(body=_BODIES, path=st.sampled_from([TXS, "/cosmos/tx/v1beta1/simulate"]))
def test_any_body_is_answered(raising: FlaskClient, body: bytes, path: str) -> None:
    reply = raising.post(path, data=body)
    assert reply.content_type == "application/json"
    found = reply.get_json()
    assert reply.status_code == 200 or set(found) == {"code", "message", "details"}
