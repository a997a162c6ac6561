"""Event data of CometBFT 0.38.

CometBFT 0.38: types/events.go. Events contain results by value, so that libs/json omits
their zero fields, except in lists of pointers.
"""

from __future__ import annotations

from ...domain import events as event_data
from .. import common
from ..fields import Base64, IntString, Number, Text
from ..round_events import ROUND_SCHEMAS
from ..schema import ListOf, Nested, WireSchema
from .v038_shapes import (
    BareEvent,
    Block,
    ConsensusParamsUpdate,
    Evidence,
    ExecTxResult,
    Header,
    Validator,
    ValidatorUpdate,
    Vote,
)


class FinalizeBlock(WireSchema):
    """Results of executing a block."""

    events = ListOf(
        BareEvent, get=lambda r: r.begin_block_events + r.end_block_events, omit_empty=True
    )
    tx_results = ListOf(ExecTxResult, omit_empty=True)
    # CometBFT 0.38: an empty list from an application in the node's process.
    validator_updates = ListOf(ValidatorUpdate)
    consensus_param_updates = Nested(ConsensusParamsUpdate, omit_empty=True)
    app_hash = Base64(omit_empty=True)


class NewBlock(WireSchema):
    """A block, its id, and its results."""

    block = Nested(Block, get=lambda event: event.answer.block)
    block_id = Nested(common.BlockID, get=lambda event: event.answer.block_id)
    result_finalize_block = Nested(FinalizeBlock, get=lambda event: event.results)


class NewBlockHeader(WireSchema):
    """A header."""

    header = Nested(Header)


class NewBlockEvents(WireSchema):
    """Events of a block."""

    height = IntString()
    events = ListOf(BareEvent, null_when_empty=True)
    tx_count = IntString(data_key="num_txs")


class NewEvidence(WireSchema):
    """A piece of evidence."""

    height = IntString()
    evidence = Nested(Evidence)


class BareTxResult(WireSchema):
    """Result of a transaction, without empty fields."""

    code = Number(omit_empty=True)
    data = Base64(omit_empty=True)
    log = Text(omit_empty=True)
    info = Text(omit_empty=True)
    gas_wanted = IntString(omit_empty=True)
    gas_used = IntString(omit_empty=True)
    events = ListOf(BareEvent, omit_empty=True)
    codespace = Text(omit_empty=True)


class TxResult(WireSchema):
    """Transaction and its result; index 0 is omitted."""

    height = IntString(omit_empty=True)
    index = Number(omit_empty=True)
    tx = Base64(omit_empty=True)
    result = Nested(BareTxResult)


class Tx(WireSchema):
    """A transaction, in its wrapper."""

    result = Nested(TxResult, data_key="TxResult", get=lambda event: event)


class ValidatorSetUpdates(WireSchema):
    """Validators that a block updated."""

    validators = ListOf(Validator, data_key="validator_updates")


class VoteCast(WireSchema):
    """A vote, in its wrapper."""

    vote = Nested(Vote, data_key="Vote")


EVENT_SCHEMAS: dict[type, type[WireSchema]] = {
    event_data.NewBlock: NewBlock,
    event_data.NewBlockHeader: NewBlockHeader,
    event_data.NewBlockEvents: NewBlockEvents,
    event_data.NewEvidence: NewEvidence,
    event_data.TxCommitted: Tx,
    event_data.ValidatorSetUpdates: ValidatorSetUpdates,
    **ROUND_SCHEMAS,
    event_data.VoteCast: VoteCast,
}
