"""Tests of encodings of CometBFT 0.38 that the recordings don't show, from its source."""

from __future__ import annotations

import json
from typing import Any

import pytest
from flask.testing import FlaskClient

from flask_noderpc.domain import abci, responses
from flask_noderpc.domain import events as event_data
from flask_noderpc.domain.block import NO_BLOCK, Version
from flask_noderpc.domain.genesis import (
    BlockParams,
    ConsensusParamsUpdate,
    EvidenceParams,
    Genesis,
    ValidatorParams,
)
from flask_noderpc.domain.network import NetInfo
from flask_noderpc.domain.validator import (
    ED25519,
    SECP256K1,
    PublicKey,
    Validator,
    ValidatorUpdate,
)
from flask_noderpc.events.messages import Message
from flask_noderpc.testing.node import app_for
from flask_noderpc.wire.comet.v038 import COMET_038
from flask_noderpc.wire.comet.v038_schemas import Version as VersionShape
from flask_noderpc.wire.schema import compiled
from tests.http import chain

KEY = PublicKey(ED25519, b"k")
PROTO_KEY = {
    "Sum": {"type": "tendermint.crypto.PublicKey_Ed25519", "value": {"ed25519": "aw=="}}
}
EMPTY_ID = {"hash": "", "parts": {"total": 0, "hash": ""}}


def shown(answer: Any) -> Any:
    """Return the JSON of a result."""
    return json.loads(COMET_038.encode(answer))


def value_of(event: Any) -> Any:
    """Return the JSON of an event's value."""
    encoded = COMET_038.encode_event(Message(1, 0, "x", event, {}))
    return json.loads(b'{"data":' + encoded + b"}")["data"]["value"]


def test_a_block_or_header_that_is_not_there_is_null() -> None:
    assert shown(responses.ResultBlock(NO_BLOCK, None)) == {
        "block_id": EMPTY_ID,
        "block": None,
    }
    assert shown(responses.ResultHeader(None)) == {"header": None}


@pytest.mark.parametrize(
    ("version", "expected"),
    [(Version(11, 0), {"block": "11"}), (Version(11, 2), {"block": "11", "app": "2"})],
)
def test_a_header_leaves_out_the_application_version_zero(
    version: Version, expected: dict[str, str]
) -> None:
    assert compiled(VersionShape)(version) == expected


def test_a_power_of_zero_is_left_out() -> None:
    results = abci.BlockResults(
        1, validator_updates=(ValidatorUpdate(KEY, 0), ValidatorUpdate(KEY, 5))
    )

    assert shown(results)["validator_updates"] == [
        {"pub_key": PROTO_KEY},
        {"pub_key": PROTO_KEY, "power": "5"},
    ]


def test_other_key_types_have_their_names() -> None:
    key = PublicKey(SECP256K1, b"k")
    page = responses.ResultValidators(1, (Validator(b"a", key, 1),), 1)
    results = abci.BlockResults(1, validator_updates=(ValidatorUpdate(key, 1),))

    assert shown(page)["validators"][0]["pub_key"] == {
        "type": "tendermint/PubKeySecp256k1",
        "value": "aw==",
    }
    assert shown(results)["validator_updates"][0]["pub_key"]["Sum"] == {
        "type": "tendermint.crypto.PublicKey_Secp256K1",
        "value": {"secp256k1": "aw=="},
    }


@pytest.mark.parametrize(
    ("update", "expected"),
    [
        (None, None),
        (ConsensusParamsUpdate(), {}),
        (ConsensusParamsUpdate(app_version=0), {"version": {}}),
        (
            ConsensusParamsUpdate(
                BlockParams(5, 0), EvidenceParams(1, 2, 0), ValidatorParams(), 3
            ),
            {
                "block": {"max_bytes": "5"},
                "evidence": {"max_age_num_blocks": "1", "max_age_duration": "2"},
                "validator": {"pub_key_types": ["ed25519"]},
                "version": {"app": "3"},
            },
        ),
    ],
)
def test_an_update_has_the_groups_that_change(
    update: ConsensusParamsUpdate | None, expected: Any
) -> None:
    results = abci.BlockResults(1, consensus_param_updates=update)

    assert shown(results)["consensus_param_updates"] == expected


def test_an_event_without_attributes_is_whole_only_in_a_whole_result() -> None:
    bare = abci.Event("bare")
    results = abci.BlockResults(1, (abci.ExecTxResult(events=(bare,)),), (bare,))

    encoded = shown(results)

    assert encoded["txs_results"][0]["events"] == [{"type": "bare", "attributes": []}]
    assert encoded["finalize_block_events"] == [{"type": "bare"}]


def test_invalid_utf_8_becomes_replacement_characters() -> None:
    event = abci.Event("a", (abci.EventAttribute(b"\xff", b"\xfe"),))

    attributes = shown(abci.ExecTxResult(events=(event,)))["events"][0]["attributes"]

    assert attributes == [{"key": "\ufffd", "value": "\ufffd", "index": True}]


def test_abci_info_without_blocks_is_empty() -> None:
    assert shown(responses.ResultABCIInfo(abci.AppInfo())) == {"response": {}}


def test_a_query_may_have_a_proof() -> None:
    step = abci.ProofOp("t", b"k", b"d")

    response = shown(responses.ResultABCIQuery(abci.QueryResult(proof_ops=(step,))))["response"]

    assert response["proofOps"] == {"ops": [{"type": "t", "key": "aw==", "data": "ZA=="}]}
    assert (response["key"], response["value"]) == ("", None)


def test_a_genesis_shows_an_app_state_as_it_is() -> None:
    assert "app_state" not in shown(Genesis("c", 0))
    assert b'"app_state":{"a": [1]}' in COMET_038.encode(
        Genesis("c", 0, app_state=b'{"a": [1]}')
    )


def test_a_node_that_knows_no_listener_names_the_usual_one() -> None:
    assert shown(NetInfo())["listeners"] == ["Listener(@)"]


def test_a_tx_event_has_index_and_code_of_a_failed_transaction() -> None:
    result = abci.ExecTxResult(code=2, data=b"d", log="no", gas_wanted=1, codespace="app")

    assert value_of(event_data.TxCommitted(1, 3, b"t", result)) == {
        "TxResult": {
            "height": "1",
            "index": 3,
            "tx": "dA==",
            "result": {
                "code": 2,
                "data": "ZA==",
                "log": "no",
                "gas_wanted": "1",
                "codespace": "app",
            },
        }
    }


@pytest.fixture
def client(backend: chain.PeeredBackend) -> FlaskClient:
    return app_for(backend, dialect="comet-0.38").test_client()


def got(client: FlaskClient, path: str) -> Any:
    """Return the result of a GET."""
    reply = client.get(path)
    assert reply.status_code == 200
    assert reply.json is not None
    assert reply.json.keys() == {"jsonrpc", "id", "result"}
    return reply.json["result"]


def test_an_app_serves_the_dialect(client: FlaskClient) -> None:
    status = got(client, "/status")
    block = got(client, f"/block?height={chain.WITH_EVIDENCE}")["block"]
    results = got(client, f"/block_results?height={chain.WITH_EVENTS}")
    search = got(client, '/tx_search?query="tx.height>0"&prove=true')

    assert status["node_info"]["version"] == "0.38.25"
    assert status["validator_info"]["pub_key"]["type"] == "tendermint/PubKeyEd25519"
    assert block["evidence"]["evidence"][0]["type"] == "tendermint/DuplicateVoteEvidence"
    assert block["data"] == {"txs": []}
    assert results["finalize_block_events"][0] == {
        "type": "begin",
        "attributes": [{"key": "foo", "value": "100", "index": True}],
    }
    assert search["txs"][0]["tx_result"]["code"] == 0
    assert search["txs"][0]["proof"]["data"] == search["txs"][0]["tx"]


@pytest.mark.parametrize("path", ["/block?height=99", "/block?height=x", "/tx?hash=0x00"])
def test_a_get_that_fails_is_an_error_of_the_server(client: FlaskClient, path: str) -> None:
    assert client.get(path).status_code == 500


def test_a_route_that_is_not_there_is_not_found(client: FlaskClient) -> None:
    assert client.get("/nosuch").status_code == 404
