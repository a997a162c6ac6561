"""Encoding of event notifications, once for all subscribers, and pages of the ``events``
method."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

from ..domain import events as event_data
from ..events.messages import Message
from . import common
from .fields import Cursor, Flag, Hex, IntString, Json, Number, Text, WireField
from .schema import ListOf, Nested, WireSchema, compiled

# CometBFT: registered type names of event data.
TYPES: dict[type, str] = {
    event_data.NewBlock: "tendermint/event/NewBlock",
    event_data.NewBlockHeader: "tendermint/event/NewBlockHeader",
    event_data.NewBlockEvents: "tendermint/event/NewBlockEvents",
    event_data.NewEvidence: "tendermint/event/NewEvidence",
    event_data.TxCommitted: "tendermint/event/Tx",
    event_data.ValidatorSetUpdates: "tendermint/event/ValidatorSetUpdates",
    event_data.NewRound: "tendermint/event/NewRound",
    event_data.RoundState: "tendermint/event/RoundState",
    event_data.CompleteProposal: "tendermint/event/CompleteProposal",
    event_data.VoteCast: "tendermint/event/Vote",
}


def event_encoder(
    schemas: Mapping[type, type[WireSchema]], to_json: Callable[[object], bytes]
) -> Callable[[Message], bytes]:
    """Return a function that encodes the data and the event keys of a notification, which are
    the same for all subscribers."""
    heads = {kind: f'{{"type":"{TYPES[kind]}","value":'.encode() for kind in schemas}

    def encode(message: Message) -> bytes:
        kind = type(message.value)
        value = to_json(compiled(schemas[kind])(message.value))
        return heads[kind] + value + b'},"events":' + to_json(message.keys)

    return encode


class EventData(WireField):
    """Event data with its type name."""

    json_type = "object"

    def __init__(self, schemas: Mapping[type, type[WireSchema]], **options: Any) -> None:
        super().__init__(**options)
        self._schemas = schemas

    def encode(self, value: Any) -> Json:
        """Return a JSON object with the type name and the encoded event data."""
        kind = type(value)
        return {"type": TYPES[kind], "value": compiled(self._schemas[kind])(value)}


def event_page(schemas: Mapping[type, type[WireSchema]]) -> type[WireSchema]:
    """Return the schema of ``events``, a method of Tendermint 0.36, for a dialect's event
    data."""

    class EventItem(WireSchema):
        cursor = Cursor(attribute="cursor")
        event = Text(attribute="category")
        data = EventData(schemas, attribute="value")

    class EventPage(WireSchema):
        items = ListOf(EventItem)
        more = Flag()
        oldest = Cursor()
        newest = Cursor()

    return EventPage


class Proposer(WireSchema):
    """Proposer of a round."""

    address = Hex(get=attrgetter("proposer"))
    index = Number(get=attrgetter("proposer_index"))


class RoundState(WireSchema):
    """Data of the events for each step of a round."""

    height = IntString()
    round = Number()
    step = Text()


class NewRound(RoundState):
    """Data of a NewRound event: the first step of a round."""

    proposer = Nested(Proposer, get=lambda event: event)


class CompleteProposal(RoundState):
    """Data of a CompleteProposal event: the complete proposal block of a round."""

    block_id = Nested(common.BlockID)


ROUND_SCHEMAS: dict[type, type[WireSchema]] = {
    event_data.NewRound: NewRound,
    event_data.RoundState: RoundState,
    event_data.CompleteProposal: CompleteProposal,
}
