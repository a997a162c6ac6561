"""Tests of the event messages of a committed block, in order."""

from __future__ import annotations

import pytest

from flask_noderpc import MemoryChain
from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.domain.abci import Event, EventAttribute
from flask_noderpc.domain.events import RoundState
from flask_noderpc.events.messages import keys_of, messages_at
from flask_noderpc.testing import make_chain
from flask_noderpc.wire.dialects import DOCUMENT

CHAIN = make_chain(8)
BACKEND = ChainBackend(MemoryChain(CHAIN.genesis, CHAIN.blocks, state=CHAIN.state))
ROUND = ["NewRound", "NewRoundStep", "CompleteProposal", "NewRoundStep", "Polka", "ValidBlock"]
ROUND += ["Lock", "NewRoundStep", "Vote", "Vote", "Vote", "NewRoundStep"]


def categories(height: int) -> list[str]:
    return [message.category for message in messages_at(BACKEND.reads, height)]


def test_a_block_emits_its_round_events_before_its_block_events() -> None:
    block = ["NewBlock", "NewBlockHeader", "NewBlockEvents", "Tx", "Tx"]

    assert categories(2) == [*ROUND, *block, "NewRoundStep"]


def test_a_block_has_five_steps_of_which_the_last_is_to_the_next_height() -> None:
    received = [m.value for m in messages_at(BACKEND.reads, 2) if m.category == "NewRoundStep"]

    assert received == [
        RoundState(height, 0, f"RoundStep{step}")
        for height, step in (
            (2, "Propose"),
            (2, "Prevote"),
            (2, "Precommit"),
            (2, "Commit"),
            (3, "NewHeight"),
        )
    ]


def test_evidence_and_validator_updates_are_emitted() -> None:
    received = {name for height in range(1, 9) for name in categories(height)}

    assert {"NewEvidence", "ValidatorSetUpdates"} <= received


def test_positions_count_from_zero_at_each_height() -> None:
    for height in range(1, 9):
        messages = tuple(messages_at(BACKEND.reads, height))

        assert [message.position for message in messages] == list(range(len(messages)))
        assert {message.height for message in messages} == {height}


def test_a_transaction_has_its_hash_its_height_and_its_events_as_keys() -> None:
    *_, message = (m for m in messages_at(BACKEND.reads, 2) if m.category == "Tx")

    assert message.keys["tm.event"] == ["Tx"]
    assert message.keys["tx.height"] == ["2"]
    assert len(message.keys["tx.hash"][0]) == 64
    assert message.keys["tx.hash"][0] == message.keys["tx.hash"][0].upper()
    assert message.keys["app.creator"] == ["Cosmoshi Netowoko", "Cosmoshi"]
    # Attributes that are not indexed are in messages, too; the flag only concerns searches.
    assert message.keys["app.noindex_key"] == ["index is working"] * 2


def test_bytes_that_are_no_text_become_marks_in_a_key() -> None:
    events = (Event("a", (EventAttribute(b"\xff", b"\xe2\x82x"),)), Event("", ()))

    assert keys_of(events) == {"a.\ufffd": ["\ufffd\ufffdx"]}


@pytest.mark.parametrize("height", range(1, 9))
def test_every_message_has_a_shape_in_the_document_dialect(height: int) -> None:
    for message in messages_at(BACKEND.reads, height):
        body = DOCUMENT.encode_event(message)

        assert body.startswith(b'{"type":"tendermint/event/')
