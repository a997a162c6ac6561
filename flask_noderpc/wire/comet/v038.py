"""The ``comet-0.38`` dialect: CometBFT 0.38."""

from __future__ import annotations

from http import HTTPStatus

from ...domain import abci, genesis, network, rpc_results
from ...errors import Forbidden, MethodNotFound
from .. import common
from ..consensus_shapes import ConsensusState, consensus_dump
from ..dialect import Behaviours, Dialect, HttpProfile
from ..event_page import event_page
from .envelope import CometEnvelope
from .evidence import EVIDENCE_038, with_evidence
from .params import COMET_PARAMS
from .v038_events import EVENT_SCHEMAS
from .v038_shapes import (
    BlockAnswer,
    BlockList,
    BlockResults,
    BlockSearch,
    Broadcast,
    BroadcastCommit,
    CommitAnswer,
    EvidenceAnswer,
    ExecTxResult,
    Genesis,
    GenesisAnswer,
    GenesisChunk,
    HeaderAnswer,
    InfoAnswer,
    NetInfo,
    ParamsAnswer,
    PendingCount,
    QueryAnswer,
    Status,
    TxAnswer,
    TxSearch,
    ValidatorPage,
    ValidatorSet,
)

# CometBFT 0.38: a failed GET is a 500, an unknown route a 404. Denying
# other origins is an addition.
STATUSES = {
    Forbidden: HTTPStatus.FORBIDDEN,
    MethodNotFound: HTTPStatus.NOT_FOUND,
}

COMET_038 = Dialect(
    name="comet-0.38",
    node_version="0.38.25",
    params=with_evidence(COMET_PARAMS, EVIDENCE_038),
    schemas={
        rpc_results.Empty: common.Empty,
        rpc_results.Status: Status,
        network.NetInfo: NetInfo,
        rpc_results.BlockList: BlockList,
        rpc_results.ResultBlock: BlockAnswer,
        rpc_results.ResultHeader: HeaderAnswer,
        abci.BlockResults: BlockResults,
        rpc_results.ResultCommit: CommitAnswer,
        rpc_results.ValidatorPage: ValidatorPage,
        rpc_results.ConsensusState: ConsensusState,
        rpc_results.ConsensusDump: consensus_dump(ValidatorSet),
        genesis.Genesis: Genesis,
        rpc_results.ResultGenesis: GenesisAnswer,
        genesis.GenesisChunk: GenesisChunk,
        rpc_results.ResultConsensusParams: ParamsAnswer,
        rpc_results.PendingTxs: common.PendingTxs,
        rpc_results.PendingCount: PendingCount,
        rpc_results.ResultTx: TxAnswer,
        rpc_results.ResultTxSearch: TxSearch,
        rpc_results.ResultBlockSearch: BlockSearch,
        rpc_results.ResultBroadcastTx: Broadcast,
        rpc_results.ResultBroadcastTxCommit: BroadcastCommit,
        rpc_results.ResultBroadcastEvidence: EvidenceAnswer,
        rpc_results.ResultDial: common.DialAnswer,
        abci.TxResult: ExecTxResult,
        rpc_results.EventPage: event_page(EVENT_SCHEMAS),
        rpc_results.ResultABCIInfo: InfoAnswer,
        rpc_results.ResultABCIQuery: QueryAnswer,
    },
    events=EVENT_SCHEMAS,
    statuses=STATUSES,
    behaviours=Behaviours(unknown_block_is_null=True, proves_each_block=True),
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
