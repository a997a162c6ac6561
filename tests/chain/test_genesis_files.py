"""Genesis documents of every CometBFT version are read, and wrong ones are refused."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest

from flask_noderpc.domain.genesis import (
    BlockParams,
    ConsensusParams,
    EvidenceParams,
    Genesis,
    GenesisValidator,
    ValidatorParams,
)
from flask_noderpc.errors import ConfigurationError
from flask_noderpc.protocol.comet.genesis import genesis_document, read_genesis

from .fixtures import GENESIS_TIME, key

NOW = GENESIS_TIME + 5
PUBLIC = {
    "type": "tendermint/PubKeyEd25519",
    "value": b64encode(key(1).public.value).decode(),
}


def validator(**changes: Any) -> dict[str, Any]:
    address = key(1).address.hex().upper()
    return {"address": address, "pub_key": PUBLIC, "power": "10", "name": "one", **changes}


def document(**changes: Any) -> bytes:
    whole = {
        "genesis_time": "2020-09-13T12:26:40.000000001Z",
        "chain_id": "by-hand",
        "initial_height": "0",
        "validators": [validator()],
        "app_hash": "",
    }
    return json.dumps({**whole, **changes}).encode()


VERSIONS: dict[str, dict[str, dict[str, Any]]] = {
    "0.34": {
        "block": {"max_bytes": "22020096", "max_gas": "-1", "time_iota_ms": "1000"},
        "evidence": {
            "max_age_num_blocks": "100000",
            "max_age_duration": "172800000000000",
            "max_bytes": "1048576",
        },
        "validator": {"pub_key_types": ["ed25519"]},
        "version": {},
    },
    "0.37": {
        "block": {"max_bytes": "22020096", "max_gas": "-1"},
        "evidence": {
            "max_age_num_blocks": "100000",
            "max_age_duration": "172800000000000",
            "max_bytes": "1048576",
        },
        "validator": {"pub_key_types": ["ed25519"]},
        "version": {"app": "0"},
    },
    "0.38": {
        "block": {"max_bytes": "22020096", "max_gas": "-1"},
        "evidence": {
            "max_age_num_blocks": "100000",
            "max_age_duration": "172800000000000",
            "max_bytes": "1048576",
        },
        "validator": {"pub_key_types": ["ed25519"]},
        "version": {"app": "0"},
        "abci": {"vote_extensions_enable_height": "0"},
    },
    "1.0": {
        "block": {"max_bytes": "22020096", "max_gas": "-1"},
        "evidence": {
            "max_age_num_blocks": "100000",
            "max_age_duration": "172800000000000",
            "max_bytes": "1048576",
        },
        "validator": {"pub_key_types": ["ed25519"]},
        "version": {"app": "0"},
        "synchrony": {"precision": "505000000", "message_delay": "15000000000"},
        "feature": {"vote_extensions_enable_height": "0", "pbts_enable_height": "0"},
    },
}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_document_of_each_version_is_read(version: str) -> None:
    genesis = read_genesis(document(consensus_params=VERSIONS[version]), NOW)

    assert genesis.consensus_params == ConsensusParams()
    assert (genesis.chain_id, genesis.initial_height) == ("by-hand", 1)
    assert genesis.genesis_time == GENESIS_TIME + 1
    assert genesis.validators[0].name == "one"


def test_only_the_chain_id_is_needed() -> None:
    genesis = read_genesis(b'{"chain_id": "least"}', NOW)

    assert genesis == Genesis("least", NOW)


def test_numbers_may_be_numbers_or_texts() -> None:
    as_text = read_genesis(document(initial_height="7", validators=[validator(power="3")]), NOW)
    as_number = read_genesis(document(initial_height=7, validators=[validator(power=3)]), NOW)

    assert as_text == as_number
    assert as_number.initial_height == 7


def test_a_missing_time_is_now() -> None:
    assert read_genesis(document(genesis_time="0001-01-01T00:00:00Z"), NOW).genesis_time == NOW


def test_an_address_may_be_left_out() -> None:
    genesis = read_genesis(document(validators=[validator(address="")]), NOW)

    assert genesis.validators[0].address == key(1).address


def test_validators_may_be_null() -> None:
    assert read_genesis(document(validators=None), NOW).validators == ()


def test_app_state_is_stored_byte_for_byte() -> None:
    raw = b'{"chain_id": "x", "app_state": {"b" : [1.50, "\\u00e9"],  "a": null}}'

    assert read_genesis(raw, NOW).app_state == b'{"b" : [1.50, "\\u00e9"],  "a": null}'


def test_a_written_genesis_is_read_back() -> None:
    genesis = Genesis(
        "there-and-back",
        GENESIS_TIME + 7,
        5,
        ConsensusParams(
            BlockParams(1000, 2000),
            EvidenceParams(1, 2, 3),
            ValidatorParams(("ed25519", "secp256k1")),
            4,
            6,
        ),
        (GenesisValidator(key(1).address, key(1).public, 9, "one"),),
        b"\x01\x02",
    )

    assert read_genesis(genesis_document(genesis), NOW) == genesis


def test_a_written_app_state_is_read_back() -> None:
    genesis = Genesis("with-state", GENESIS_TIME, app_state=b'{"accounts":[1,2]}')

    again = read_genesis(genesis_document(genesis), NOW)

    assert json.loads(again.app_state) == {"accounts": [1, 2]}


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"chain_id": ""}, "chain_id has 1 to 50 printable bytes"),
        ({"chain_id": "x" * 51}, "not 51"),
        ({"chain_id": 5}, "chain_id"),
        ({"genesis_time": "yesterday"}, "yesterday"),
        ({"initial_height": "-1"}, "initial_height is negative"),
        ({"initial_height": "one"}, "one"),
        ({"initial_height": 1.5}, "initial_height"),
        ({"app_hash": "xyz"}, "hex"),
        ({"validators": [validator(power="0")]}, "has voting power 0"),
        ({"validators": [validator(power="-3")]}, "has voting power -3"),
        ({"validators": [validator(power="many")]}, "many"),
        ({"validators": [validator(address="00" * 20)]}, "is not that of its key"),
        ({"validators": [validator(pub_key={"type": "tendermint/X", "value": ""})]}, "/X'"),
        ({"validators": [validator(pub_key={**PUBLIC, "value": "AQ=="})]}, "key of 1 bytes"),
        ({"validators": [validator(pub_key={**PUBLIC, "value": "%"})]}, "base64"),
        ({"validators": {}}, "array"),
        ({"consensus_params": []}, "object"),
        ({"consensus_params": {"block": {"max_bytes": "0"}}}, "max_bytes"),
        ({"consensus_params": {"block": {"max_bytes": "-2"}}}, "max_bytes"),
        ({"consensus_params": {"block": {"max_gas": "-2"}}}, "max_gas"),
        ({"consensus_params": {"block": {"max_gas": None}}}, "NoneType"),
        ({"consensus_params": {"evidence": {"max_bytes": "x"}}}, "x"),
        ({"consensus_params": {"validator": {"pub_key_types": 5}}}, "int"),
    ],
)
def test_a_wrong_document_is_refused_saying_why(
    changes: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ConfigurationError, match="genesis document: ") as refusal:
        read_genesis(document(**changes), NOW)

    assert complaint in str(refusal.value)


def test_a_chain_id_is_counted_in_bytes() -> None:
    with pytest.raises(ConfigurationError, match="not 100"):
        read_genesis(json.dumps({"chain_id": "é" * 50}).encode(), NOW)
