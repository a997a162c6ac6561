"""The ``comet-0.38`` dialect: what a CometBFT 0.38 node sends."""

from __future__ import annotations

from http import HTTPStatus

from ...domain import abci, answers, genesis, network
from ...errors import Forbidden, MethodNotFound
from .. import common
from ..consensus_shapes import ConsensusState, consensus_dump
from ..dialect import Dialect, HttpProfile, Rules
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

# CometBFT 0.38: a GET that fails is a 500, of a route that is not there a 404. Refusing
# pages of other sites is ours.
STATUSES = {
    Forbidden: HTTPStatus.FORBIDDEN,
    MethodNotFound: HTTPStatus.NOT_FOUND,
}

COMET_038 = Dialect(
    name="comet-0.38",
    node_version="0.38.25",
    params=with_evidence(COMET_PARAMS, EVIDENCE_038),
    schemas={
        answers.Empty: common.Empty,
        answers.Status: Status,
        network.NetInfo: NetInfo,
        answers.BlockList: BlockList,
        answers.BlockAnswer: BlockAnswer,
        answers.HeaderAnswer: HeaderAnswer,
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
        answers.TxAnswer: TxAnswer,
        answers.TxSearchAnswer: TxSearch,
        answers.BlockSearchAnswer: BlockSearch,
        answers.BroadcastAnswer: Broadcast,
        answers.BroadcastCommitAnswer: BroadcastCommit,
        answers.EvidenceAnswer: EvidenceAnswer,
        answers.DialAnswer: common.DialAnswer,
        abci.TxResult: ExecTxResult,
        answers.EventPage: event_page(EVENT_SCHEMAS),
        answers.InfoAnswer: InfoAnswer,
        answers.QueryAnswer: QueryAnswer,
    },
    events=EVENT_SCHEMAS,
    statuses=STATUSES,
    rules=Rules(unknown_block_is_null=True, proves_each_block=True),
    envelope=CometEnvelope(),
    http=HttpProfile(
        any_method=True,
        posts_may_be_kept=True,
        server_time=True,
        websocket_routes=True,
        # gorilla/websocket: server.go.
        wrong_websocket_version=HTTPStatus.BAD_REQUEST,
        plain_index=True,
    ),
)
