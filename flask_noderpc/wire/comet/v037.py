"""The dialects ``comet-0.37``, with its differences from 0.38, and ``comet-0.34``, with its
differences from 0.37.

CometBFT 0.37: types/events.go. A block's results have two parts, one of BeginBlock and one of
EndBlock. The messages NewBlock and NewBlockHeader contain both, and NewBlockHeader also has the
keys of its events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from operator import attrgetter

from ...domain import abci, responses
from ...domain import events as event_data
from ...events.messages import Message, keys_of
from .. import builders, common
from ..consensus_schemas import consensus_dump, short_vote_repr
from ..dialect import SchemaPatch
from ..events import event_page
from ..fields import Base64OrNull, Flag, IntString, Text
from ..schema import ListOf, Nested, WireSchema
from . import v038, v038_schemas
from .v038 import COMET_038
from .v038_schemas import (
    Block,
    BlockParamsUpdate,
    BroadcastCommit,
    CompactEvent,
    Evidence,
    EvidenceParamsUpdate,
    ExecTxResult,
    Header,
    OlderParamsUpdate,
    ValidatorParamsUpdate,
    ValidatorSet,
    ValidatorUpdate,
)


class CheckTx(ExecTxResult):
    """Result of CheckTx; CometBFT 0.37: abci/types/types.pb.go.

    The last three fields belong to the priority mempool, which is not the default.
    """

    sender = Text(get=lambda _: "", dump_only=True)
    priority = IntString(get=lambda _: 0, dump_only=True)
    mempool_error = Text(data_key="mempoolError", get=lambda _: "", dump_only=True)


class CommitResult(BroadcastCommit):
    """Result of ``broadcast_tx_commit``; CometBFT 0.37: rpc/core/types/responses.go."""

    check_tx = Nested(CheckTx)
    tx_result = Nested(ExecTxResult, data_key="deliver_tx")


class BlockResults(WireSchema):
    """Result of ``block_results``; CometBFT 0.37 has the events of BeginBlock and of
    EndBlock."""

    domain = builders.results_before_038
    height = IntString()
    tx_results = ListOf(ExecTxResult, data_key="txs_results", null_when_empty=True)
    begin_block_events = ListOf(
        CompactEvent, null_when_empty=True, may_be_missing=True, load_default=None
    )
    end_block_events = ListOf(
        CompactEvent, null_when_empty=True, may_be_missing=True, load_default=None
    )
    finalize_block_events = ListOf(CompactEvent, may_be_missing=True, load_only=True)
    total_gas_used = IntString(may_be_missing=True, load_default=None, load_only=True)
    validator_updates = ListOf(ValidatorUpdate, null_when_empty=True)
    consensus_param_updates = Nested(OlderParamsUpdate, nullable=True)


class BeginBlock(WireSchema):
    """Results of BeginBlock."""

    events = ListOf(CompactEvent, attribute="begin_block_events", omit_empty=True)


class EndBlock(WireSchema):
    """Results of EndBlock."""

    validator_updates = ListOf(ValidatorUpdate, null_when_empty=True)
    consensus_param_updates = Nested(OlderParamsUpdate, omit_empty=True)
    events = ListOf(CompactEvent, attribute="end_block_events", omit_empty=True)


class NewBlock(WireSchema):
    """Data of a NewBlock event: a block and its results."""

    block = Nested(Block, get=attrgetter("result_block.block"))
    result_begin_block = Nested(BeginBlock, get=attrgetter("results"))
    result_end_block = Nested(EndBlock, get=attrgetter("results"))


class NewBlockHeader(WireSchema):
    """Data of a NewBlockHeader event: a header and its block's results."""

    header = Nested(Header)
    tx_count = IntString(data_key="num_txs")
    result_begin_block = Nested(BeginBlock, get=attrgetter("results"))
    result_end_block = Nested(EndBlock, get=attrgetter("results"))


class NewEvidence(WireSchema):
    """Data of a NewEvidence event."""

    evidence = Nested(Evidence)
    height = IntString()


def as_of_037(messages: Iterable[Message]) -> Iterator[Message]:
    """Yield the messages of a block as CometBFT 0.37 publishes them: types/event_bus.go."""
    for message in messages:
        match message.value:
            case event_data.NewBlockEvents():
                # This event is new in CometBFT 0.38.
                pass
            case event_data.NewBlockHeader(results=results):
                keys = keys_of(results.begin_block_events + results.end_block_events)
                yield message._replace(keys={**message.keys, **keys})
            case _:
                yield message


REPLACED = SchemaPatch(
    {
        # CometBFT 0.37 has neither vote extensions nor parameters for them.
        v038_schemas.Vote: common.Vote,
        v038_schemas.ConsensusParams: common.ConsensusParams,
        v038_schemas.BlockResults: BlockResults,
        v038_schemas.BroadcastCommit: CommitResult,
        v038.NewBlock: NewBlock,
        v038.NewBlockHeader: NewBlockHeader,
        v038.NewEvidence: NewEvidence,
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
    # CometBFT 0.37.18 reports these versions.
    node_version="0.37.16",
    schemas={
        **REPLACED.results(COMET_038.schemas),
        abci.ExecTxResult: CheckTx,
        responses.ResultDumpConsensusState: consensus_dump(ValidatorSet, short_vote_repr),
        responses.ResultEvents: event_page(EVENT_SCHEMAS),
    },
    events=EVENT_SCHEMAS,
    behaviours=replace(COMET_038.behaviours, filter_events=as_of_037),
)


class EventAttribute(WireSchema):
    """Event attribute; CometBFT 0.34: abci/types/types.pb.go has bytes for key and value."""

    domain = abci.EventAttribute
    key = Base64OrNull()
    value = Base64OrNull()
    index = Flag()


class VersionParams(WireSchema):
    """ConsensusParams.version in all parameters and in updates."""

    app_version = IntString(omit_empty=True)


class BlockParams(BlockParamsUpdate):
    """ConsensusParams.block; updates don't have ``time_iota_ms``."""

    time_iota_ms = IntString(omit_empty=True)


class ConsensusParams(WireSchema):
    """All consensus parameters at a height."""

    domain = builders.consensus_params
    block = Nested(BlockParams)
    evidence = Nested(EvidenceParamsUpdate)
    validator = Nested(ValidatorParamsUpdate)
    version = Nested(VersionParams, get=lambda params: params)


# CometBFT 0.34: results contain the structs of types/params.pb.go, so that zero fields of
# parameters are omitted everywhere.
REPLACED_034 = SchemaPatch(
    {
        v038_schemas.EventAttribute: EventAttribute,
        v038_schemas.VersionParamsUpdate: VersionParams,
        common.ConsensusParams: ConsensusParams,
    }
)

EVENT_SCHEMAS_034 = {event: REPLACED_034(schema) for event, schema in COMET_037.events.items()}

COMET_034 = replace(
    COMET_037,
    name="comet-0.34",
    node_version="0.34.35",
    schemas={
        **REPLACED_034.results(COMET_037.schemas),
        responses.ResultEvents: event_page(EVENT_SCHEMAS_034),
    },
    events=EVENT_SCHEMAS_034,
    # CometBFT 0.34: rpc/core/routes.go.
    omits_routes=frozenset({"header", "header_by_hash"}),
    ignored={"tx_search": ("match_events",), "block_search": ("match_events",)},
)
