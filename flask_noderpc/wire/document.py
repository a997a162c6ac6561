"""The ``document`` dialect: the interface document's schemas, with its open points decided.

docs/dialects.rst lists the decisions with their reasons.
"""

from __future__ import annotations

from http import HTTPStatus

from ..domain import abci, genesis, network, rpc_results
from ..errors import Forbidden, InvalidParams, MethodNotFound, NotFound, Refused
from . import common
from .consensus_shapes import ConsensusState, consensus_dump
from .dialect import Behaviours, Dialect
from .document_events import EVENT_SCHEMAS
from .document_peers import NetInfo
from .document_shapes import (
    TX_LOOKUP,
    TX_SEARCH,
    BlockAnswer,
    BlockList,
    BlockResults,
    BlockSearch,
    Broadcast,
    BroadcastCommit,
    CommitAnswer,
    EvidenceAnswer,
    Genesis,
    GenesisAnswer,
    GenesisChunk,
    InfoAnswer,
    ParamsAnswer,
    PendingCount,
    QueryAnswer,
    Status,
    TxExecResult,
    ValidatorPage,
    ValidatorSet,
)
from .event_page import event_page

# document: results with a top-level ``error``, empty in all examples.
ERROR_MEMBER = (rpc_results.ResultBroadcastTx, abci.TxResult, rpc_results.ResultABCIQuery)

# document: silent; 400 for errors of the client, 404 for what does not exist, 500 for
# errors of the node.
STATUSES = {
    Forbidden: HTTPStatus.FORBIDDEN,
    InvalidParams: HTTPStatus.BAD_REQUEST,
    Refused: HTTPStatus.BAD_REQUEST,
    NotFound: HTTPStatus.NOT_FOUND,
    MethodNotFound: HTTPStatus.NOT_FOUND,
}

DOCUMENT = Dialect(
    name="document",
    node_version="0.38.25",
    schemas={
        rpc_results.Empty: common.Empty,
        rpc_results.Status: Status,
        network.NetInfo: NetInfo,
        rpc_results.BlockList: BlockList,
        rpc_results.ResultBlock: BlockAnswer,
        rpc_results.ResultHeader: common.HeaderAnswer,
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
        rpc_results.ResultTx: TX_LOOKUP,
        rpc_results.ResultTxSearch: TX_SEARCH,
        rpc_results.ResultBlockSearch: BlockSearch,
        rpc_results.ResultBroadcastTx: Broadcast,
        rpc_results.ResultBroadcastTxCommit: BroadcastCommit,
        rpc_results.ResultBroadcastEvidence: EvidenceAnswer,
        rpc_results.ResultDial: common.DialAnswer,
        abci.TxResult: TxExecResult,
        rpc_results.EventPage: event_page(EVENT_SCHEMAS),
        rpc_results.ResultABCIInfo: InfoAnswer,
        rpc_results.ResultABCIQuery: QueryAnswer,
    },
    events=EVENT_SCHEMAS,
    statuses=STATUSES,
    error_member=ERROR_MEMBER,
    behaviours=Behaviours(),
)
