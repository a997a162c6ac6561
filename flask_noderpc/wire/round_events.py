"""Event data of the steps of a round, the same in every dialect."""

from __future__ import annotations

from ..domain import events as event_data
from . import common
from .fields import Hex, IntString, Number, Text
from .schema import Nested, WireSchema


class Proposer(WireSchema):
    """Proposer of a round."""

    address = Hex(get=lambda event: event.proposer)
    index = Number(get=lambda event: event.proposer_index)


class RoundState(WireSchema):
    """A step of a round."""

    height = IntString()
    round = Number()
    step = Text()


class NewRound(RoundState):
    """The first step of a round."""

    proposer = Nested(Proposer, get=lambda event: event)


class CompleteProposal(RoundState):
    """Complete proposal block of a round."""

    block_id = Nested(common.BlockID)


ROUND_SCHEMAS: dict[type, type[WireSchema]] = {
    event_data.NewRound: NewRound,
    event_data.RoundState: RoundState,
    event_data.CompleteProposal: CompleteProposal,
}
