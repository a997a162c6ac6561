"""A message as subscribers read it: encoded once, whoever wants it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .. import jsoncodec
from ..domain import events as told
from ..events.messages import Message
from .schema import WireSchema, compiled

# CometBFT: names of its event data.
TYPES: dict[type, str] = {
    told.NewBlock: "tendermint/event/NewBlock",
    told.NewBlockHeader: "tendermint/event/NewBlockHeader",
    told.NewBlockEvents: "tendermint/event/NewBlockEvents",
    told.NewEvidence: "tendermint/event/NewEvidence",
    told.TxCommitted: "tendermint/event/Tx",
    told.ValidatorSetUpdates: "tendermint/event/ValidatorSetUpdates",
    told.NewRound: "tendermint/event/NewRound",
    told.RoundState: "tendermint/event/RoundState",
    told.CompleteProposal: "tendermint/event/CompleteProposal",
    told.VoteCast: "tendermint/event/Vote",
}


def event_encoder(schemas: Mapping[type, type[WireSchema]]) -> Callable[[Message], bytes]:
    """A function that encodes the part of a notification that all subscribers share."""
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
