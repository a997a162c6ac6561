"""A message as subscribers read it: encoded once, whoever wants it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .. import json
from ..domain import events as told
from ..events.messages import Message
from .schema import WireSchema, compiled

# CometBFT: names of its event data, behind «tendermint/event/».
_TYPES: dict[type, str] = {
    told.NewBlock: "NewBlock",
    told.NewBlockHeader: "NewBlockHeader",
    told.NewBlockEvents: "NewBlockEvents",
    told.NewEvidence: "NewEvidence",
    told.TxCommitted: "Tx",
    told.ValidatorSetUpdates: "ValidatorSetUpdates",
    told.NewRound: "NewRound",
    told.RoundState: "RoundState",
    told.CompleteProposal: "CompleteProposal",
    told.VoteCast: "Vote",
}


def event_encoder(schemas: Mapping[type, type[WireSchema]]) -> Callable[[Message], bytes]:
    """A function that encodes the part of a notification that all subscribers share."""
    dumps = {
        kind: (
            f'{{"type":"tendermint/event/{_TYPES[kind]}","value":'.encode(),
            compiled(schema),
        )
        for kind, schema in schemas.items()
    }

    def encode(message: Message) -> bytes:
        head, dump = dumps[type(message.value)]
        value = json.encode(dump(message.value))
        return head + value + b'},"events":' + json.encode(message.keys)

    return encode
