"""Event data of the ``document`` dialect.

document: the format of notifications is not specified; CometBFT 0.38's, with the document's
blocks, results and encodings, and with every field present.
"""

from __future__ import annotations

from ..domain import events as event_data
from ..domain.block import Evidence as Piece
from ..domain.validator import ED25519, PublicKey
from ..domain.validator import Validator as Member
from . import common
from .document_shapes import (
    Block,
    BlockSignature,
    Event,
    Evidence,
    TxExecResult,
    Validator,
    ValidatorUpdate,
)
from .fields import Base64, Hex, IntString, Number
from .round_events import ROUND_SCHEMAS
from .schema import ListOf, Nested, WireSchema

# Placeholder for a light client attack without known byzantine validators.
NOBODY = Member(b"", PublicKey(ED25519, b""), 0)


class FinalizeBlock(WireSchema):
    """Results of executing a block."""

    events = ListOf(Event, get=lambda r: r.begin_block_events + r.end_block_events)
    tx_results = ListOf(TxExecResult)
    validator_updates = ListOf(ValidatorUpdate)
    app_hash = Hex()


class NewBlock(WireSchema):
    """A block, its id, and its results."""

    block = Nested(Block, get=lambda event: event.answer)
    block_id = Nested(common.BlockID, get=lambda event: event.answer.block_id)
    result_finalize_block = Nested(FinalizeBlock, get=lambda event: event.results)


class NewBlockHeader(WireSchema):
    """A header."""

    header = Nested(common.Header)


class NewBlockEvents(WireSchema):
    """Events of a block."""

    height = IntString()
    events = ListOf(Event)
    tx_count = IntString(data_key="num_txs")


def _accusation(event: event_data.NewEvidence) -> tuple[Piece, Member]:
    # document: Evidence has one validator; for several, an event contains the most powerful.
    return event.evidence, next(iter(event.byzantine_validators), NOBODY)


class NewEvidence(WireSchema):
    """A piece of evidence."""

    height = IntString()
    evidence = Nested(Evidence, get=_accusation)


class TxResult(WireSchema):
    """A transaction and its result."""

    height = IntString()
    index = Number()
    tx = Base64()
    result = Nested(TxExecResult)


class Tx(WireSchema):
    """A transaction, in CometBFT's wrapper."""

    result = Nested(TxResult, data_key="TxResult", get=lambda event: event)


class ValidatorSetUpdates(WireSchema):
    """Validators that a block updated."""

    validators = ListOf(Validator, data_key="validator_updates")


class Vote(WireSchema):
    """A vote, in CometBFT's wrapper."""

    vote = Nested(BlockSignature, data_key="Vote")


EVENT_SCHEMAS: dict[type, type[WireSchema]] = {
    event_data.NewBlock: NewBlock,
    event_data.NewBlockHeader: NewBlockHeader,
    event_data.NewBlockEvents: NewBlockEvents,
    event_data.NewEvidence: NewEvidence,
    event_data.TxCommitted: Tx,
    event_data.ValidatorSetUpdates: ValidatorSetUpdates,
    **ROUND_SCHEMAS,
    event_data.VoteCast: Vote,
}
