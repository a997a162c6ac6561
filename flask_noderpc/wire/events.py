"""Event notifications: the part that all subscribers share, encoded once."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .. import jsoncodec
from ..domain import events as event_data
from ..events.messages import Message
from .schema import WireSchema, compiled

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


def event_encoder(schemas: Mapping[type, type[WireSchema]]) -> Callable[[Message], bytes]:
    """Return a function that encodes the part of a notification that all subscribers share."""
    dumps = {
        kind: (
            f'{{"type":"{TYPES[kind]}","value":'.encode(),
            compiled(schema),
        )
        for kind, schema in schemas.items()
    }

    def encode(message: Message) -> bytes:
        head, dump = dumps[type(message.value)]
        value = jsoncodec.encode(dump(message.value))
        return head + value + b'},"events":' + jsoncodec.encode(message.keys)

    return encode
