"""Tests of results so large that their events are loaded and dumped one by one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from flask_noderpc import jsoncodec
from flask_noderpc.domain.abci import (
    BlockResults,
    Event,
    EventAttribute,
    ExecTxResult,
    PackedEvents,
)
from flask_noderpc.errors import DecodeError
from flask_noderpc.wire.dialect import Dialect
from flask_noderpc.wire.dialects import DIALECTS

EVENTS = tuple(
    Event(
        "transfer", (EventAttribute(b"amount", b"%d<atom>" % n), EventAttribute(b"\xc3", b""))
    )
    for n in range(6_000)
)
RESULTS = BlockResults(7, (ExecTxResult(events=EVENTS), ExecTxResult(code=1)), EVENTS)
NODES = pytest.mark.parametrize(
    "dialect",
    [each for each in DIALECTS.values() if each.behaviours.keeps_form],
    ids=lambda dialect: dialect.name,
)


@NODES
def test_large_results_are_loaded_and_dumped_to_the_byte(dialect: Dialect) -> None:
    document = dialect.encode(RESULTS)
    found = dialect.decode(BlockResults, document)

    assert jsoncodec.is_large(document)
    assert isinstance(found.tx_results[0].events, PackedEvents)
    assert found == dialect.load(BlockResults, json.loads(document))
    assert dialect.encode(found) == document


@NODES
def test_the_form_of_large_results_is_kept(dialect: Dialect) -> None:
    document = json.loads(dialect.encode(RESULTS))
    block_events = next(v for k, v in document.items() if k.endswith("block_events") and v)
    for events in (block_events, document["txs_results"][0]["events"]):
        events[5_000]["attributes"][1]["value"] = None
        events[5_001]["more"] = [1, {"a": 2}]
    document["validator_updates"] = []
    changed = dialect.envelope.json(document)

    found = dialect.decode(BlockResults, changed)

    assert (bool(found.form), bool(found.tx_results[0].form)) == (True, True)
    assert found == dialect.load(BlockResults, document)
    assert dialect.encode(found) == changed


@NODES
@pytest.mark.parametrize("value", [7, {"a": 1}, ["x" * 2_000]])
def test_the_first_wrong_member_of_large_results_is_named(dialect: Dialect, value: Any) -> None:
    document = json.loads(dialect.encode(RESULTS))
    document["txs_results"][0]["events"][5]["attributes"][1]["value"] = value
    with pytest.raises(DecodeError) as error:
        dialect.decode(BlockResults, jsoncodec.encode(document))
    assert "txs_results.0.events.5.attributes.1.value" in str(error.value)


def test_packed_events_behave_like_a_tuple() -> None:
    packed = PackedEvents.of(EVENTS)

    assert (len(packed), hash(packed)) == (len(EVENTS), hash(EVENTS))
    assert packed == EVENTS
    assert tuple(packed) == EVENTS
    assert (packed[3], packed[-1], packed[2:5]) == (EVENTS[3], EVENTS[-1], EVENTS[2:5])
    assert (packed[::-1], tuple(reversed(packed))) == (EVENTS[::-1], EVENTS[::-1])
    assert packed + EVENTS[:2] == EVENTS + EVENTS[:2]
    assert EVENTS[:2] + packed == EVENTS[:2] + EVENTS
    assert packed != EVENTS[:-1]
