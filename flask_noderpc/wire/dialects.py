"""All dialects by name. The default is ``document``, which the interface document describes."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from http import HTTPStatus
from importlib import import_module
from operator import attrgetter

from ..domain import abci, genesis, network, responses
from ..domain import events as event_data
from ..domain.block import Evidence as Piece
from ..domain.validator import ED25519, PublicKey
from ..domain.validator import Validator as Member
from ..errors import Forbidden, InvalidParams, InvalidSetting, MethodNotFound, NotFound, Refused
from . import common
from .consensus_schemas import ConsensusState, consensus_dump
from .dialect import Behaviours, Dialect
from .document_schemas import (
    TX_LOOKUP,
    TX_SEARCH,
    Block,
    BlockAnswer,
    BlockList,
    BlockResults,
    BlockSearch,
    BlockSignature,
    Broadcast,
    BroadcastCommit,
    CommitAnswer,
    Event,
    Evidence,
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
    Validator,
    ValidatorPage,
    ValidatorSet,
    ValidatorUpdate,
)
from .events import ROUND_SCHEMAS, event_page
from .fields import Base64, Flag, Hex, IntString, Number, Text, Timestamp
from .schema import ListOf, Nested, WireSchema


class Monitor(WireSchema):
    """Monitor."""

    domain = network.Monitor
    active = Flag(data_key="Active")
    start = Timestamp(data_key="Start")
    duration = IntString(data_key="Duration")
    idle = IntString(data_key="Idle")
    bytes = IntString(data_key="Bytes")
    samples = IntString(data_key="Samples")
    inst_rate = IntString(data_key="InstRate")
    cur_rate = IntString(data_key="CurRate")
    avg_rate = IntString(data_key="AvgRate")
    peak_rate = IntString(data_key="PeakRate")
    bytes_rem = IntString(data_key="BytesRem")
    time_rem = IntString(data_key="TimeRem")
    progress = Number(data_key="Progress")


class ConnectionStatus(WireSchema):
    """Peer.connection_status."""

    domain = network.ConnectionStatus
    duration = IntString(data_key="Duration")
    send_monitor = Nested(Monitor, data_key="SendMonitor")
    recv_monitor = Nested(Monitor, data_key="RecvMonitor")
    channels = ListOf(common.ChannelStatus, data_key="Channels")


class Peer(WireSchema):
    """Peer."""

    domain = network.Peer
    node_info = Nested(common.NodeInfo)
    is_outbound = Flag()
    remote_ip = Text()
    connection_status = Nested(ConnectionStatus)


class NetInfo(WireSchema):
    """Result of ``net_info``."""

    domain = network.NetInfo
    listening = Flag()
    listeners = ListOf(Text())
    n_peers = IntString(get=lambda result: len(result.peers), dump_only=True)
    peers = ListOf(Peer)


# Validator that is shown for a light client attack whose byzantine validators are unknown.
UNKNOWN_VALIDATOR = Member(b"", PublicKey(ED25519, b""), 0)


class FinalizeBlock(WireSchema):
    """Results of executing a block."""

    events = ListOf(Event, get=lambda r: r.begin_block_events + r.end_block_events)
    tx_results = ListOf(TxExecResult)
    validator_updates = ListOf(ValidatorUpdate)
    app_hash = Hex()


class NewBlock(WireSchema):
    """Data of a NewBlock event: a block, its ID and its results."""

    block = Nested(Block, get=attrgetter("result_block"))
    block_id = Nested(common.BlockID, get=attrgetter("result_block.block_id"))
    result_finalize_block = Nested(FinalizeBlock, get=attrgetter("results"))


class NewBlockHeader(WireSchema):
    """Data of a NewBlockHeader event."""

    header = Nested(common.Header)


class NewBlockEvents(WireSchema):
    """Data of a NewBlockEvents event: the events of a block."""

    height = IntString()
    events = ListOf(Event)
    tx_count = IntString(data_key="num_txs")


def _accusation(event: event_data.NewEvidence) -> tuple[Piece, Member]:
    # document: Evidence has one validator; if several are accused, the event names the one
    # with the most voting power, which is the first.
    return event.evidence, next(iter(event.byzantine_validators), UNKNOWN_VALIDATOR)


class NewEvidence(WireSchema):
    """Data of a NewEvidence event."""

    height = IntString()
    evidence = Nested(Evidence, get=_accusation)


class TxResult(WireSchema):
    """Transaction and its result."""

    height = IntString()
    index = Number()
    tx = Base64()
    result = Nested(TxExecResult)


class Tx(WireSchema):
    """Data of a Tx event: the result in CometBFT's ``TxResult`` object."""

    result = Nested(TxResult, data_key="TxResult", get=lambda event: event)


class ValidatorSetUpdates(WireSchema):
    """Data of a ValidatorSetUpdates event: the validators that a block updated."""

    validators = ListOf(Validator, data_key="validator_updates")


class Vote(WireSchema):
    """Data of a Vote event: the vote in CometBFT's ``Vote`` object."""

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


# document: results whose response also has a top-level ``error``, which is empty in all
# examples.
ERROR_MEMBER = (responses.ResultBroadcastTx, abci.ExecTxResult, responses.ResultABCIQuery)

# document: does not specify status codes. The status is 400 for errors of the client, 404 for
# objects that don't exist, and 500 for errors of the node.
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
        responses.Empty: common.Empty,
        responses.ResultStatus: Status,
        network.NetInfo: NetInfo,
        responses.ResultBlockchainInfo: BlockList,
        responses.ResultBlock: BlockAnswer,
        responses.ResultHeader: common.HeaderAnswer,
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
        responses.ResultTx: TX_LOOKUP,
        responses.ResultTxSearch: TX_SEARCH,
        responses.ResultBlockSearch: BlockSearch,
        responses.ResultBroadcastTx: Broadcast,
        responses.ResultBroadcastTxCommit: BroadcastCommit,
        responses.ResultBroadcastEvidence: EvidenceAnswer,
        responses.ResultDial: common.DialAnswer,
        abci.ExecTxResult: TxExecResult,
        responses.ResultEvents: event_page(EVENT_SCHEMAS),
        responses.ResultABCIInfo: InfoAnswer,
        responses.ResultABCIQuery: QueryAnswer,
    },
    events=EVENT_SCHEMAS,
    statuses=STATUSES,
    error_member=ERROR_MEMBER,
    behaviours=Behaviours(),
)


class _Dialects(MutableMapping[str, Dialect]):
    """Dialects by name, each of which is imported when it is first used: a mount has one."""

    def __init__(self) -> None:
        self._items: dict[str, Dialect | tuple[str, str]] = {
            "document": DOCUMENT,
            "comet-0.34": ("v037", "COMET_034"),
            "comet-0.37": ("v037", "COMET_037"),
            "comet-0.38": ("v038", "COMET_038"),
            "comet-0.39": ("v039", "COMET_039"),
            "comet-0.40": ("v039", "COMET_040"),
            "comet-1.0": ("v1", "COMET_1"),
        }
        """A dialect, or its module in :mod:`.comet` and its name there."""

    def __getitem__(self, name: str) -> Dialect:
        found = self._items[name]
        if isinstance(found, Dialect):
            return found
        module, member = found
        dialect: Dialect = getattr(import_module(f"{__package__}.comet.{module}"), member)
        self._items[name] = dialect
        return dialect

    def __setitem__(self, name: str, dialect: Dialect) -> None:
        self._items[name] = dialect

    def __delitem__(self, name: str) -> None:
        del self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)


DIALECTS = _Dialects()


def dialect_named(name: str, setting: str = "NODERPC_DIALECT") -> Dialect:
    """Return the dialect that a setting names; raise
    :exc:`~flask_noderpc.errors.ConfigurationError` if the name is unknown."""
    try:
        return DIALECTS[name]
    except KeyError:
        known = ", ".join(DIALECTS)
        raise InvalidSetting(f"{setting}: expected one of {known}, got {name!r}") from None
