"""The ``comet-0.38`` dialect: CometBFT 0.38 and its event data.

CometBFT 0.38: types/events.go. Events contain results by value, so libs/json omits their zero
fields, except in lists of pointers.
"""

from __future__ import annotations

from http import HTTPStatus
from operator import attrgetter

from ...domain import abci, genesis, network, responses
from ...domain import events as event_data
from ...errors import Forbidden, MethodNotFound
from .. import common
from ..consensus_schemas import ConsensusState, consensus_dump
from ..dialect import Behaviours, Dialect, HttpProfile
from ..events import ROUND_SCHEMAS, event_page
from ..fields import Base64, IntString, Number, Text
from ..schema import ListOf, Nested, WireSchema
from .envelope import CometEnvelope
from .evidence import EVIDENCE_038, with_evidence
from .params import COMET_PARAMS
from .v038_schemas import (
    Block,
    BlockAnswer,
    BlockList,
    BlockResults,
    BlockSearch,
    Broadcast,
    BroadcastCommit,
    CommitAnswer,
    CompactEvent,
    ConsensusParamsUpdate,
    Evidence,
    EvidenceAnswer,
    ExecTxResult,
    Genesis,
    GenesisAnswer,
    GenesisChunk,
    Header,
    HeaderAnswer,
    InfoAnswer,
    NetInfo,
    ParamsAnswer,
    PendingCount,
    QueryAnswer,
    Status,
    TxAnswer,
    TxSearch,
    Validator,
    ValidatorPage,
    ValidatorSet,
    ValidatorUpdate,
    Vote,
)


class FinalizeBlock(WireSchema):
    """Results of executing a block."""

    events = ListOf(
        CompactEvent, get=lambda r: r.begin_block_events + r.end_block_events, omit_empty=True
    )
    tx_results = ListOf(ExecTxResult, omit_empty=True)
    # CometBFT 0.38: an application in the node's process returns an empty list, not null.
    validator_updates = ListOf(ValidatorUpdate)
    consensus_param_updates = Nested(ConsensusParamsUpdate, omit_empty=True)
    app_hash = Base64(omit_empty=True)


class NewBlock(WireSchema):
    """Data of a NewBlock event: a block, its ID and its results."""

    block = Nested(Block, get=attrgetter("result_block.block"))
    block_id = Nested(common.BlockID, get=attrgetter("result_block.block_id"))
    result_finalize_block = Nested(FinalizeBlock, get=attrgetter("results"))


class NewBlockHeader(WireSchema):
    """Data of a NewBlockHeader event."""

    header = Nested(Header)


class NewBlockEvents(WireSchema):
    """Data of a NewBlockEvents event: the events of a block."""

    height = IntString()
    events = ListOf(CompactEvent, null_when_empty=True)
    tx_count = IntString(data_key="num_txs")


class NewEvidence(WireSchema):
    """Data of a NewEvidence event."""

    height = IntString()
    evidence = Nested(Evidence)


class CompactTxResult(WireSchema):
    """Result of a transaction; zero fields are omitted."""

    code = Number(omit_empty=True)
    data = Base64(omit_empty=True)
    log = Text(omit_empty=True)
    info = Text(omit_empty=True)
    gas_wanted = IntString(omit_empty=True)
    gas_used = IntString(omit_empty=True)
    events = ListOf(CompactEvent, omit_empty=True)
    codespace = Text(omit_empty=True)


class TxResult(WireSchema):
    """Transaction and its result; an index of 0 is omitted."""

    height = IntString(omit_empty=True)
    index = Number(omit_empty=True)
    tx = Base64(omit_empty=True)
    result = Nested(CompactTxResult)


class Tx(WireSchema):
    """Data of a Tx event: the result in a ``TxResult`` object."""

    result = Nested(TxResult, data_key="TxResult", get=lambda event: event)


class ValidatorSetUpdates(WireSchema):
    """Data of a ValidatorSetUpdates event: the validators that a block updated."""

    validators = ListOf(Validator, data_key="validator_updates")


class VoteCast(WireSchema):
    """Data of a Vote event: the vote in a ``Vote`` object."""

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


# CometBFT 0.38: the status of a failed GET is 500, the status of an unknown route 404.
# Rejecting other origins is an addition of this package.
STATUSES = {
    Forbidden: HTTPStatus.FORBIDDEN,
    MethodNotFound: HTTPStatus.NOT_FOUND,
}

COMET_038 = Dialect(
    name="comet-0.38",
    node_version="0.38.25",
    params=with_evidence(COMET_PARAMS, EVIDENCE_038),
    schemas={
        responses.Empty: common.Empty,
        responses.ResultStatus: Status,
        network.NetInfo: NetInfo,
        responses.ResultBlockchainInfo: BlockList,
        responses.ResultBlock: BlockAnswer,
        responses.ResultHeader: HeaderAnswer,
        abci.BlockResults: BlockResults,
        responses.ResultCommit: CommitAnswer,
        responses.ResultValidators: ValidatorPage,
        responses.ResultConsensusState: ConsensusState,
        responses.ResultDumpConsensusState: consensus_dump(ValidatorSet),
        genesis.Genesis: Genesis,
        responses.ResultGenesis: GenesisAnswer,
        genesis.GenesisChunk: GenesisChunk,
        responses.ResultConsensusParams: ParamsAnswer,
        responses.PendingTxs: common.PendingTxs,
        responses.PendingCount: PendingCount,
        responses.ResultTx: TxAnswer,
        responses.ResultTxSearch: TxSearch,
        responses.ResultBlockSearch: BlockSearch,
        responses.ResultBroadcastTx: Broadcast,
        responses.ResultBroadcastTxCommit: BroadcastCommit,
        responses.ResultBroadcastEvidence: EvidenceAnswer,
        responses.ResultDial: common.DialAnswer,
        abci.ExecTxResult: ExecTxResult,
        responses.ResultEvents: event_page(EVENT_SCHEMAS),
        responses.ResultABCIInfo: InfoAnswer,
        responses.ResultABCIQuery: QueryAnswer,
    },
    events=EVENT_SCHEMAS,
    statuses=STATUSES,
    behaviours=Behaviours(unknown_block_is_null=True, proves_each_block=True, keeps_form=True),
    envelope=CometEnvelope(),
    http=HttpProfile(
        any_method=True,
        posts_cacheable=True,
        server_time=True,
        websocket_routes=True,
        # gorilla/websocket: server.go.
        wrong_websocket_version=HTTPStatus.BAD_REQUEST,
        plain_index=True,
    ),
)
