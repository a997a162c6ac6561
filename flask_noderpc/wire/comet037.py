"""The ``comet-0.37`` dialect: what a CometBFT 0.37 node sends."""

from __future__ import annotations

from dataclasses import replace

from ..domain import abci, answers
from ..domain import events as told
from . import comet038_events, comet038_shapes, comet_shapes
from .comet037_events import NewBlock, NewBlockHeader, NewEvidence, as_of_037
from .comet037_shapes import BlockResults, CheckTx, CommitResult
from .comet038 import COMET_038
from .event_page import event_page
from .replacing import Replacing

REPLACED = Replacing(
    {
        # CometBFT 0.37: neither vote extensions nor their parameters.
        comet038_shapes.Vote: comet_shapes.Vote,
        comet038_shapes.ConsensusParams: comet_shapes.ConsensusParams,
        comet038_shapes.BlockResults: BlockResults,
        comet038_shapes.BroadcastCommit: CommitResult,
        comet038_events.NewBlock: NewBlock,
        comet038_events.NewBlockHeader: NewBlockHeader,
        comet038_events.NewEvidence: NewEvidence,
    }
)

EVENT_SCHEMAS = {
    event: REPLACED(schema)
    for event, schema in COMET_038.events.items()
    if event is not told.NewBlockEvents
}

COMET_037 = replace(
    COMET_038,
    name="comet-0.37",
    # What nodes of 0.37.18 say.
    node_version="0.37.16",
    schemas={
        **REPLACED.results(COMET_038.schemas),
        abci.TxResult: CheckTx,
        answers.EventPage: event_page(EVENT_SCHEMAS),
    },
    events=EVENT_SCHEMAS,
    rules=replace(COMET_038.rules, tells=as_of_037),
)
