"""Tests of what the captured replies of CometBFT's versions don't show.

The expected texts were printed by ``libs/json`` of each version for the same values.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from flask_noderpc.domain import abci, responses
from flask_noderpc.domain import events as event_data
from flask_noderpc.domain.block import NO_BLOCK
from flask_noderpc.domain.genesis import (
    BlockParams,
    ConsensusParams,
    ConsensusParamsUpdate,
    EvidenceParams,
    ValidatorParams,
)
from flask_noderpc.domain.validator import SECP256K1, PublicKey, ValidatorUpdate
from flask_noderpc.events.messages import Message, messages_at
from flask_noderpc.wire.comet.evidence import EvidenceObject
from flask_noderpc.wire.comet.v037 import COMET_034, COMET_037
from flask_noderpc.wire.comet.v038 import COMET_038
from flask_noderpc.wire.comet.v1 import COMET_1
from flask_noderpc.wire.dialect import Dialect
from tests.comet import rebuild
from tests.http import chain

from .test_comet_evidence import ATTACK, EVERY_PIECE, read

EVENTS = (
    abci.Event("bare"),
    abci.Event("t", (abci.EventAttribute(b"k", b"v"), abci.EventAttribute(b"", b"", False))),
)
IN_BYTES = [
    {"key": "aw==", "value": "dg==", "index": True},
    {"key": None, "value": None, "index": False},
]
IN_TEXT = [
    {"key": "k", "value": "v", "index": True},
    {"key": "", "value": "", "index": False},
]
UPDATE = ConsensusParamsUpdate(BlockParams(5, 0), EvidenceParams(1, 2, 0), ValidatorParams(), 3)
FIRST = rebuild.reply("0.37.18")["plain"]["block?height=1"]["body"]["result"]
BLOCK = rebuild.block(FIRST["block"])
GROUPS = {
    "block": {"max_bytes": "5"},
    "evidence": {"max_age_num_blocks": "1", "max_age_duration": "2"},
    "validator": {"pub_key_types": ["ed25519"]},
}


def shown(dialect: Dialect, answer: Any) -> Any:
    """Return the JSON of a result."""
    return json.loads(dialect.encode(answer))


def value_of(dialect: Dialect, event: Any) -> Any:
    """Return the JSON of an event's value."""
    encoded = dialect.encode_event(Message(1, 0, "x", event, {}))
    return json.loads(b'{"data":' + encoded + b"}")["data"]["value"]


@pytest.mark.parametrize(
    ("dialect", "attributes", "version"),
    [(COMET_034, IN_BYTES, {"app_version": "3"}), (COMET_037, IN_TEXT, {"app": "3"})],
    ids=["0.34", "0.37"],
)
def test_a_block_has_two_ends_before_0_38(
    dialect: Dialect, attributes: Any, version: Any
) -> None:
    results = abci.BlockResults(
        1,
        begin_block_events=EVENTS,
        end_block_events=EVENTS[:1],
        consensus_param_updates=UPDATE,
    )
    begin = [{"type": "bare"}, {"type": "t", "attributes": attributes}]
    end = [{"type": "bare"}]
    updates = {**GROUPS, "version": version}

    assert shown(dialect, results) == {
        "height": "1",
        "txs_results": None,
        "begin_block_events": begin,
        "end_block_events": end,
        "validator_updates": None,
        "consensus_param_updates": updates,
    }
    event = value_of(
        dialect, event_data.NewBlock(responses.ResultBlock(NO_BLOCK, BLOCK), results)
    )
    assert event["result_begin_block"] == {"events": begin}
    assert list(event["result_end_block"].items()) == [
        ("validator_updates", None),
        ("consensus_param_updates", updates),
        ("events", end),
    ]


@pytest.mark.parametrize(
    ("dialect", "attributes"),
    [(COMET_034, IN_BYTES), (COMET_037, IN_TEXT), (COMET_1, IN_TEXT)],
    ids=["0.34", "0.37", "1.0"],
)
def test_attributes_are_bytes_only_in_0_34(dialect: Dialect, attributes: Any) -> None:
    result = abci.ExecTxResult(events=EVENTS)
    whole = [{"type": "bare", "attributes": []}, {"type": "t", "attributes": attributes}]

    assert shown(dialect, result)["events"] == whole
    assert shown(dialect, abci.BlockResults(1, (result,)))["txs_results"][0]["events"] == whole
    event = value_of(dialect, event_data.TxCommitted(1, 0, b"t", result))
    assert event["TxResult"]["result"] == {
        "events": [{"type": "bare"}, {"type": "t", "attributes": attributes}]
    }


def test_0_34_leaves_zeros_out_of_parameters() -> None:
    params = ConsensusParams(
        BlockParams(22_020_096, 0, 1000), EvidenceParams(100_000, 5, 0), app_version=4
    )

    answer = shown(COMET_034, responses.ResultConsensusParams(1, params))

    assert answer["consensus_params"] == {
        "block": {"max_bytes": "22020096", "time_iota_ms": "1000"},
        "evidence": {"max_age_num_blocks": "100000", "max_age_duration": "5"},
        "validator": {"pub_key_types": ["ed25519"]},
        "version": {"app_version": "4"},
    }


def test_1_0_names_the_bytes_and_the_type_of_a_new_key() -> None:
    key = PublicKey(SECP256K1, b"k")
    results = abci.BlockResults(
        1, validator_updates=(ValidatorUpdate(key, 0), ValidatorUpdate(key, 4))
    )
    named = {"pub_key_bytes": "aw==", "pub_key_type": "secp256k1"}

    updates = shown(COMET_1, results)["validator_updates"]

    assert updates == [named, {"power": "4", **named}]


@EVERY_PIECE
@pytest.mark.parametrize(
    "dialect", [COMET_034, COMET_037, COMET_038, COMET_1], ids=["0.34", "0.37", "0.38", "1.0"]
)
def test_evidence_is_read_as_it_is_shown(dialect: Dialect, made: Any) -> None:
    piece = read(made["json"])

    found = value_of(dialect, event_data.NewEvidence(1, piece, ()))["evidence"]

    assert (
        dialect.params.reader(EvidenceObject()).from_json(json.dumps(found).encode()) == piece
    )


def test_1_0_names_the_fields_of_a_light_client_attack() -> None:
    event = event_data.NewEvidence(1, read(ATTACK), ())
    value = value_of(COMET_1, event)["evidence"]["value"]
    before = value_of(COMET_038, event)["evidence"]["value"]

    assert list(value) == [
        "conflicting_block",
        "common_height",
        "byzantine_validators",
        "total_voting_power",
        "timestamp",
    ]
    assert list(value.values()) == list(before.values())


def test_1_0_has_more_groups_of_consensus_parameters() -> None:
    params = ConsensusParams(vote_extensions_enable_height=7)

    answer = shown(COMET_1, responses.ResultConsensusParams(1, params))["consensus_params"]

    assert list(answer) == ["block", "evidence", "validator", "version", "synchrony", "feature"]
    assert answer["feature"] == {
        "vote_extensions_enable_height": "7",
        "pbts_enable_height": "0",
    }


@pytest.mark.parametrize("dialect", [COMET_034, COMET_037], ids=["0.34", "0.37"])
def test_before_0_38_a_header_comes_with_the_keys_of_its_block(
    backend: chain.PeeredBackend, dialect: Dialect
) -> None:
    made = {
        message.category: message
        for message in dialect.behaviours.filter_events(
            messages_at(backend.reads, chain.WITH_EVENTS)
        )
    }

    assert made["NewBlockHeader"].keys == {
        "tm.event": ["NewBlockHeader"],
        "begin.foo": ["100", "100"],
    }
    assert made["NewBlock"].keys["begin.foo"] == ["100", "100"]
    assert "NewBlockEvents" not in made


@pytest.mark.parametrize("dialect", [COMET_038, COMET_1], ids=["0.38", "1.0"])
def test_since_0_38_the_events_of_a_block_have_a_category(
    backend: chain.PeeredBackend, dialect: Dialect
) -> None:
    everything = list(messages_at(backend.reads, chain.WITH_EVENTS))

    assert list(dialect.behaviours.filter_events(everything)) == everything
