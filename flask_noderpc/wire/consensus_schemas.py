"""Schemas of ``consensus_state`` and ``dump_consensus_state``.

CometBFT: consensus/types/round_state.go. Fields that only have values during a round are null,
and the list of peers is empty.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from ..domain.block import RoundState, Vote, VoteSet, VoteType
from ..domain.time import ZERO_TIME, to_text
from . import common
from .fields import Flag, Hex, IntString, Json, Number, Text, Timestamp, WireField
from .schema import ListOf, Nested, WireSchema

# CometBFT: types/vote.go, the name of each vote type and its short name.
_TYPES: dict[int, str] = {
    VoteType.PREVOTE: "SIGNED_MSG_TYPE_PREVOTE(Prevote)",
    VoteType.PRECOMMIT: "SIGNED_MSG_TYPE_PRECOMMIT(Precommit)",
}


def vote_repr(vote: Vote | None) -> str:
    """Return CometBFT's text of a vote, or of an absent vote, in version 0.38 and later."""
    return _text(vote, (vote.extension,) if vote else ())


def short_vote_repr(vote: Vote | None) -> str:
    """Return CometBFT's text of a vote in versions 0.34 and 0.37, without vote extensions."""
    return _text(vote, ())


def _text(vote: Vote | None, extension: tuple[bytes, ...]) -> str:
    if vote is None:
        return "nil-Vote"
    if vote.type not in _TYPES:
        raise ValueError("Unknown vote type")
    prints = " ".join(map(fingerprint, (vote.block_id.hash, vote.signature, *extension)))
    return (
        f"Vote{{{vote.validator_index}:{fingerprint(vote.validator_address)}"
        f" {vote.height}/{vote.round:02}/{_TYPES[vote.type]} {prints}"
        f" @ {to_text(vote.timestamp)}}}"
    )


def fingerprint(value: bytes) -> str:
    """Return the first six bytes, padded with zeros."""
    # CometBFT: libs/bytes/byteslice.go.
    return value[:6].ljust(6, b"\0").hex().upper()


def bit_array_text(votes: VoteSet) -> str:
    """Return the bit array of the votes, and their share of the voting power."""
    # CometBFT: types/vote_set.go, bitArrayString.
    bits = "".join("_" if vote is None else "x" for vote in votes.votes)
    voted, total = votes.voted_power, votes.total_power
    share = f"{float(voted) / float(total):.2f}" if total else "NaN"
    return f"BA{{{len(bits)}:{bits}}} {voted}/{total} = {share}"


# CometBFT: consensus/types/round_state.go, RoundStepNewHeight.
STEP_NEW_HEIGHT = 1

_NO_ROUND = -1


class AlwaysNull(WireField):
    """Field that is null between two blocks."""

    json_type = "null"

    def __init__(self) -> None:
        super().__init__(nullable=True, get=lambda _: None)

    def encode(self, value: Any) -> Json:
        """Return null."""
        return None


class VoteText(WireField):
    """Vote in its short text form, which can't be decoded to a vote."""

    def __init__(self, text: Callable[[Vote | None], str]) -> None:
        super().__init__()
        self._text = text

    def encode(self, value: Vote | str | None) -> Json:
        """Return the text of a vote, or of an absent vote."""
        return value if isinstance(value, str) else self._text(value)

    def decode(self, value: Json) -> str:
        """Return the text."""
        return str(value)


class Proposer(WireSchema):
    """Proposer of the round."""

    address = Hex(get=attrgetter("proposer"))
    # CometBFT: types/validator_set.go, GetByAddress returns -1 for an unknown address.
    index = Number(get=lambda members: members.by_address.get(members.proposer, (-1,))[0])


def _rounds(state: RoundState) -> tuple[VoteSet, ...]:
    return (state.empty_votes,)


class RoundVotes(WireSchema):
    """Vote sets of the round, which are still empty."""

    round = Number(get=lambda _: 0)
    prevotes = ListOf(VoteText(vote_repr), get=attrgetter("votes"))
    prevotes_bit_array = Text(get=bit_array_text)
    precommits = ListOf(VoteText(vote_repr), get=attrgetter("votes"))
    precommits_bit_array = Text(get=bit_array_text)


class RoundStateInShort(WireSchema):
    """``round_state`` of ``consensus_state``."""

    place = Text(data_key="height/round/step", get=lambda s: f"{s.height}/0/{STEP_NEW_HEIGHT}")
    start_time = Timestamp()
    proposal_block_hash = Hex(get=lambda _: b"")
    locked_block_hash = Hex(get=lambda _: b"")
    valid_block_hash = Hex(get=lambda _: b"")
    height_vote_set = ListOf(RoundVotes, get=_rounds)
    proposer = Nested(Proposer, get=attrgetter("validators"))


class ConsensusState(WireSchema):
    """Result of ``consensus_state``."""

    round_state = Nested(RoundStateInShort)


def consensus_dump(
    validator_set: type[WireSchema],
    text: Callable[[Vote | None], str] = vote_repr,
    *,
    receive_time: bool = False,
) -> type[WireSchema]:
    """Return the schema of ``dump_consensus_state`` for a dialect's validators and vote texts.

    ``receive_time`` adds the member for the time at which the node received the proposal.
    """

    class LastCommit(WireSchema):
        votes = ListOf(VoteText(text))
        votes_bit_array = Text(get=bit_array_text)
        peer_maj_23s = Nested(common.Empty, get=lambda votes: votes)

    class WholeRoundState(WireSchema):
        height = IntString()
        round = Number(get=lambda _: 0)
        step = Number(get=lambda _: STEP_NEW_HEIGHT)
        start_time = Timestamp()
        commit_time = Timestamp()
        validators = Nested(validator_set)
        proposal = AlwaysNull()
        if receive_time:
            proposal_receive_time = Timestamp(get=lambda _: ZERO_TIME)
        proposal_block = AlwaysNull()
        proposal_block_parts = AlwaysNull()
        locked_round = Number(get=lambda _: _NO_ROUND)
        locked_block = AlwaysNull()
        locked_block_parts = AlwaysNull()
        valid_round = Number(get=lambda _: _NO_ROUND)
        valid_block = AlwaysNull()
        valid_block_parts = AlwaysNull()
        votes = ListOf(RoundVotes, get=_rounds)
        commit_round = Number(get=lambda _: _NO_ROUND)
        last_commit = Nested(LastCommit, nullable=True)
        last_validators = Nested(validator_set)
        triggered_timeout_precommit = Flag(get=lambda _: False)

    class ConsensusDump(WireSchema):
        round_state = Nested(WholeRoundState)
        peers = ListOf(common.Empty, get=lambda _: ())

    return ConsensusDump
