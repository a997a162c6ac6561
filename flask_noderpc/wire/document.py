"""The ``document`` dialect: the interface document's shapes, and its open points decided.

docs/dialects.rst lists the decisions with their reasons.
"""

from __future__ import annotations

from http import HTTPStatus

from ..domain import abci, answers, genesis, network
from ..errors import Forbidden, InvalidParams, MethodNotFound, NotFound, Refused
from . import common
from .consensus_shapes import ConsensusState, consensus_dump
from .dialect import Dialect, Rules
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
ERROR_MEMBER = (answers.BroadcastAnswer, abci.TxResult, answers.QueryAnswer)

# document: silent; 400 for what the caller can mend, 404 for what does not exist, 500 for
# what is our fault.
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
        answers.Empty: common.Empty,
        answers.Status: Status,
        network.NetInfo: NetInfo,
        answers.BlockList: BlockList,
        answers.BlockAnswer: BlockAnswer,
        answers.HeaderAnswer: common.HeaderAnswer,
        abci.BlockResults: BlockResults,
        answers.CommitAnswer: CommitAnswer,
        answers.ValidatorPage: ValidatorPage,
        answers.ConsensusState: ConsensusState,
        answers.ConsensusDump: consensus_dump(ValidatorSet),
        genesis.Genesis: Genesis,
        answers.GenesisAnswer: GenesisAnswer,
        genesis.GenesisChunk: GenesisChunk,
        answers.ParamsAnswer: ParamsAnswer,
        answers.PendingTxs: common.PendingTxs,
        answers.PendingCount: PendingCount,
        answers.TxAnswer: TX_LOOKUP,
        answers.TxSearchAnswer: TX_SEARCH,
        answers.BlockSearchAnswer: BlockSearch,
        answers.BroadcastAnswer: Broadcast,
        answers.BroadcastCommitAnswer: BroadcastCommit,
        answers.EvidenceAnswer: EvidenceAnswer,
        answers.DialAnswer: common.DialAnswer,
        abci.TxResult: TxExecResult,
        answers.EventPage: event_page(EVENT_SCHEMAS),
        answers.InfoAnswer: InfoAnswer,
        answers.QueryAnswer: QueryAnswer,
    },
    events=EVENT_SCHEMAS,
    statuses=STATUSES,
    error_member=ERROR_MEMBER,
    rules=Rules(),
)
