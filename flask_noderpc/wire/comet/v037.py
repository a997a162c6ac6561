"""The ``comet-0.37`` dialect: CometBFT 0.37."""

from __future__ import annotations

from dataclasses import replace

from ...domain import abci, rpc_results
from ...domain import events as event_data
from ..consensus_shapes import consensus_dump
from ..event_page import event_page
from ..schema_patch import SchemaPatch
from ..vote_repr import short_vote_repr
from . import shapes, v038_events, v038_shapes
from .v037_events import NewBlock, NewBlockHeader, NewEvidence, as_of_037
from .v037_shapes import BlockResults, CheckTx, CommitResult
from .v038 import COMET_038
from .v038_shapes import ValidatorSet

REPLACED = SchemaPatch(
    {
        # CometBFT 0.37: neither vote extensions nor their parameters.
        v038_shapes.Vote: shapes.Vote,
        v038_shapes.ConsensusParams: shapes.ConsensusParams,
        v038_shapes.BlockResults: BlockResults,
        v038_shapes.BroadcastCommit: CommitResult,
        v038_events.NewBlock: NewBlock,
        v038_events.NewBlockHeader: NewBlockHeader,
        v038_events.NewEvidence: NewEvidence,
    }
)

EVENT_SCHEMAS = {
    event: REPLACED(schema)
    for event, schema in COMET_038.events.items()
    if event is not event_data.NewBlockEvents
}

COMET_037 = replace(
    COMET_038,
    name="comet-0.37",
    # Versions of CometBFT 0.37.18.
    node_version="0.37.16",
    schemas={
        **REPLACED.results(COMET_038.schemas),
        abci.TxResult: CheckTx,
        rpc_results.ConsensusDump: consensus_dump(ValidatorSet, short_vote_repr),
        rpc_results.EventPage: event_page(EVENT_SCHEMAS),
    },
    events=EVENT_SCHEMAS,
    behaviours=replace(COMET_038.behaviours, filter_events=as_of_037),
)
