"""Tests that genesis documents of every CometBFT version are read, and invalid ones refused."""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flask_noderpc.domain.genesis import (
    BlockParams,
    ConsensusParams,
    EvidenceParams,
    Genesis,
    GenesisValidator,
    SynchronyParams,
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


def without(group: str) -> dict[str, Any]:
    return {name: members for name, members in VERSIONS["0.38"].items() if name != group}


def with_value(group: str, name: str, value: str) -> dict[str, Any]:
    params = VERSIONS["0.38"]
    return {**params, group: {**params[group], name: value}}


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


def sdk_document(**changes: Any) -> bytes:
    consensus = {"validators": [validator()], "params": VERSIONS["0.38"]}
    whole = {
        "app_name": "simd",
        "app_version": "0.50.14",
        "genesis_time": "2020-09-13T14:26:40.000000001+02:00",
        "chain_id": "by-hand",
        "initial_height": 1,
        "app_hash": None,
        "consensus": consensus,
    }
    return json.dumps({**whole, **changes}).encode()


def test_a_document_of_the_cosmos_sdk_is_read() -> None:
    assert read_genesis(sdk_document(), NOW) == read_genesis(
        document(consensus_params=VERSIONS["0.38"]), NOW
    )
    assert read_genesis(sdk_document(app_hash="AQI="), NOW).app_hash == b"\x01\x02"


@pytest.mark.parametrize("member", ["version", "abci"])
def test_null_is_read_where_go_reads_it(member: str) -> None:
    params = {**VERSIONS["0.38"], member: None}

    genesis = read_genesis(document(consensus_params=params, app_hash=None), NOW)

    assert genesis.consensus_params == ConsensusParams()
    assert genesis.app_hash == b""


def test_parameters_that_are_absent_are_zero_as_in_cometbft() -> None:
    params = {**VERSIONS["0.38"], "block": {"max_bytes": "2000000"}}

    genesis = read_genesis(document(consensus_params=params), NOW)

    assert genesis.consensus_params.block == BlockParams(2_000_000, 0)


def test_the_defaults_are_those_of_the_version() -> None:
    raw = document(consensus_params=None)

    block = {
        dialect: read_genesis(raw, NOW, dialect).consensus_params.block
        for dialect in ("document", "comet-0.34", "comet-0.38", "comet-0.40", "comet-1.0")
    }

    assert block == {
        "document": BlockParams(),
        "comet-0.34": BlockParams(),
        "comet-0.38": BlockParams(),
        "comet-0.40": BlockParams(55_600_190),
        "comet-1.0": BlockParams(4_194_304, 10_000_000),
    }


def test_a_document_without_a_dialect_is_of_the_version_whose_members_it_has() -> None:
    feature = {"vote_extensions_enable_height": "6", "pbts_enable_height": "7"}
    newer = {**VERSIONS["1.0"], "feature": feature, "abci": VERSIONS["0.38"]["abci"]}
    with_authority = {**VERSIONS["0.38"], "authority": {"authority": "me"}}

    of_10 = read_genesis(document(consensus_params=newer), NOW).consensus_params
    of_038 = read_genesis(document(consensus_params=newer), NOW, "comet-0.38").consensus_params
    of_040 = read_genesis(document(consensus_params=with_authority), NOW).consensus_params

    assert (of_10.vote_extensions_enable_height, of_10.pbts_enable_height) == (6, 7)
    assert of_038 == ConsensusParams()
    assert of_040.authority == "me"


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


@given(
    st.builds(
        ConsensusParams,
        block=st.builds(
            BlockParams,
            max_bytes=st.integers(1 << 20, 1 << 26) | st.just(-1),
            max_gas=st.integers(-1, (1 << 63) - 1),
        ),
        evidence=st.builds(
            EvidenceParams,
            max_age_num_blocks=st.integers(1, (1 << 63) - 1),
            max_age_duration=st.integers(1, (1 << 63) - 1),
            max_bytes=st.integers(0, 1 << 20),
        ),
        app_version=st.integers(0, (1 << 64) - 1),
        vote_extensions_enable_height=st.integers(0, (1 << 63) - 1),
    ),
    st.sampled_from(
        [
            {},
            {"authority": "me"},
            {"pbts_enable_height": 9},
            {"synchrony": SynchronyParams(1, 2)},
        ]
    ),
    st.sampled_from(["", "document", "comet-0.34", "comet-0.38", "comet-0.40", "comet-1.0"]),
)
def test_all_that_is_written_is_read_back(
    params: ConsensusParams, more: dict[str, Any], dialect: str
) -> None:
    genesis = Genesis(
        "there-and-back", GENESIS_TIME, 5, replace(params, **more), app_hash=b"\x01\x02"
    )

    assert read_genesis(genesis_document(genesis), NOW) == genesis
    written = genesis_document(genesis, dialect)
    assert read_genesis(written, NOW) == genesis


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
        ({"chain_id": ""}, "chain_id: expected a chain ID of 1 to 50 printable bytes"),
        ({"chain_id": "x" * 51}, "got 51"),
        ({"chain_id": 5}, "chain_id"),
        ({"genesis_time": "yesterday"}, "yesterday"),
        ({"initial_height": "-1"}, "initial_height: expected 0 or more, got -1"),
        ({"initial_height": "one"}, "one"),
        ({"initial_height": 1.5}, "initial_height"),
        ({"app_hash": "xyz"}, "hex"),
        (
            {"validators": [validator(power="0")]},
            "[0].power: expected 1 or more, got 0",
        ),
        ({"validators": [validator(power="-3")]}, "expected 1 or more, got -3"),
        ({"validators": [validator(power="many")]}, "many"),
        ({"validators": [validator(power=3)]}, 'in quotes, such as "1", got 3'),
        ({"validators": [validator(), validator()]}, "expected each key once"),
        ({"validators": [validator(address="00" * 20)]}, "expected the address of its key"),
        ({"validators": [validator(pub_key={"type": "tendermint/X", "value": ""})]}, "/X"),
        ({"validators": [validator(pub_key={**PUBLIC, "value": "AQ=="})]}, "key of 1 bytes"),
        ({"validators": [validator(pub_key={**PUBLIC, "value": "%"})]}, "base64"),
        ({"validators": {}}, "validators: expected a list, got {}"),
        ({"consensus_params": []}, "object"),
        ({"consensus_params": {"block": {"max_bytes": "0"}}}, "max_bytes"),
        ({"consensus_params": {"block": {"max_bytes": "-2"}}}, "max_bytes"),
        ({"consensus_params": {"block": {"max_gas": "-2"}}}, "max_gas"),
        ({"consensus_params": {"evidence": {"max_bytes": "x"}}}, "x"),
        ({"consensus_params": {"validator": {"pub_key_types": 5}}}, "expected a list, got 5"),
        ({"consensus_params": without("evidence")}, "evidence.max_age_num_blocks: expected 1"),
        ({"consensus_params": without("validator")}, "validator.pub_key_types: expected"),
        ({"consensus_params": without("block")}, "block.max_bytes: expected -1, or 1 to"),
        ({"consensus_params": with_value("evidence", "max_bytes", "22020097")}, "max_bytes"),
        (
            {"consensus_params": with_value("abci", "vote_extensions_enable_height", "-1")},
            "vote_extensions_enable_height: expected 0 or more, got -1",
        ),
        ({"genesis_time": "2020-09-13T14:26:40+02:00"}, "genesis_time: expected a time in UTC"),
        ({"initial_height": 7}, "consensus: expected an object"),
    ],
)
def test_a_wrong_document_is_refused_saying_why(
    changes: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ConfigurationError, match="genesis document: ") as refusal:
        read_genesis(document(**changes), NOW)

    assert complaint in str(refusal.value)


def test_all_that_is_wrong_is_said_at_once() -> None:
    wrong = document(chain_id="", app_hash="xyz", validators=[validator(power="0")])

    with pytest.raises(ConfigurationError, match="genesis document: ") as refusal:
        read_genesis(wrong, NOW)

    for member in ("chain_id", "app_hash", "validators[0].power"):
        assert f"{member}: " in str(refusal.value)


def test_a_chain_id_is_counted_in_bytes() -> None:
    with pytest.raises(ConfigurationError, match="got 100"):
        read_genesis(json.dumps({"chain_id": "é" * 50}).encode(), NOW)


NAMES = ["block", "evidence", "validator", "pub_key_types", "pub_key", "type", "value", "power"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just("1"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text() | st.sampled_from(NAMES), inner, max_size=3)
    ),
    max_leaves=6,
)
MEMBERS = [
    *("genesis_time", "chain_id", "initial_height", "consensus_params", "validators"),
    *("app_hash", "app_state", "consensus"),
]


def either(document: bytes, dialect: str) -> None:
    try:
        genesis = read_genesis(document, NOW, dialect)
    except ConfigurationError as error:
        text = str(error)
        assert text.startswith("genesis document: ")
        assert len(text) < 3000
        return
    again = read_genesis(genesis_document(genesis, dialect), NOW, dialect)
    assert replace(again, app_state=b"") == replace(genesis, app_state=b"")


@given(st.dictionaries(st.sampled_from(MEMBERS), JSON), st.sampled_from(["", "comet-1.0"]))
def test_any_member_is_read_or_refused(members: dict[str, Any], dialect: str) -> None:
    either(document(**members), dialect)
    either(sdk_document(**members), dialect)


@given(st.binary() | st.text().map(str.encode))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    either(content, "")
