"""Schemas that all dialects share, and base schemas of all CometBFT versions."""

from __future__ import annotations

from ..domain import block as blocks
from ..domain import genesis, network, responses
from . import builders
from .fields import (
    Base64,
    Base64OrNull,
    Flag,
    Hex,
    IntString,
    LowerHex,
    Number,
    Text,
    Timestamp,
)
from .schema import ListOf, Nested, WireSchema


class PartSetHeader(WireSchema):
    """BlockID.parts."""

    domain = blocks.PartSetHeader
    total = Number()
    hash = Hex()


class BlockID(WireSchema):
    """BlockID."""

    domain = blocks.BlockID
    hash = Hex()
    parts = Nested(PartSetHeader)


class Version(WireSchema):
    """Header.version."""

    domain = blocks.Version
    block = IntString()
    app = IntString()


class Header(WireSchema):
    """Header."""

    domain = blocks.Header
    version = Nested(Version)
    chain_id = Text()
    height = IntString()
    time = Timestamp()
    last_block_id = Nested(BlockID)
    last_commit_hash = Hex()
    data_hash = Hex()
    validators_hash = Hex()
    next_validators_hash = Hex()
    consensus_hash = Hex()
    app_hash = Hex()
    last_results_hash = Hex()
    evidence_hash = Hex()
    proposer_address = Hex()


class HeaderAnswer(WireSchema):
    """Result of ``header`` and ``header_by_hash``."""

    domain = responses.ResultHeader
    header = Nested(Header, nullable=True)


class CommitSignature(WireSchema):
    """CommitSignature; the signature of an absent validator is null."""

    domain = blocks.CommitSig
    block_id_flag = Number()
    validator_address = Hex()
    timestamp = Timestamp()
    signature = Base64OrNull()


class Commit(WireSchema):
    """The commit of a signed header."""

    domain = blocks.Commit
    height = IntString()
    round = Number()
    block_id = Nested(BlockID)
    signatures = ListOf(CommitSignature)


class SignedHeader(WireSchema):
    """SignedHeader."""

    domain = blocks.SignedHeader
    header = Nested(Header)
    commit = Nested(Commit)


class CommitAnswer(WireSchema):
    """Result of ``commit``."""

    domain = responses.ResultCommit
    signed_header = Nested(SignedHeader)
    canonical = Flag()


class MerkleProof(WireSchema):
    """The Merkle branch of a transaction."""

    domain = blocks.MerkleProof
    total = IntString()
    index = IntString()
    leaf_hash = Base64()
    aunts = ListOf(Base64())


class TxProof(WireSchema):
    """``proof`` of ``tx``."""

    domain = blocks.TxProof
    root_hash = Hex()
    tx = Base64(data_key="data")
    proof = Nested(MerkleProof)


class Empty(WireSchema):
    """An empty object."""

    domain = responses.Empty


class ProtocolVersion(WireSchema):
    """NodeInfo.protocol_version."""

    domain = network.ProtocolVersion
    p2p = IntString()
    block = IntString()
    app = IntString()


class NodeOther(WireSchema):
    """NodeInfo.other."""

    domain = network.NodeOther
    tx_index = Text()
    rpc_address = Text()


class NodeInfo(WireSchema):
    """NodeInfo."""

    domain = network.NodeInfo
    protocol_version = Nested(ProtocolVersion)
    id = LowerHex()
    listen_addr = Text()
    network = Text()
    version = Text()
    channels = Hex()
    moniker = Text()
    other = Nested(NodeOther)


class SyncInfo(WireSchema):
    """SyncInfo."""

    domain = responses.SyncInfo
    latest_block_hash = Hex()
    latest_app_hash = Hex()
    latest_block_height = IntString()
    latest_block_time = Timestamp()
    earliest_block_hash = Hex()
    earliest_app_hash = Hex()
    earliest_block_height = IntString()
    earliest_block_time = Timestamp()
    catching_up = Flag()


class Monitor(WireSchema):
    """Monitor."""

    domain = network.Monitor
    start = Timestamp(data_key="Start")
    bytes = IntString(data_key="Bytes")
    samples = IntString(data_key="Samples")
    inst_rate = IntString(data_key="InstRate")
    cur_rate = IntString(data_key="CurRate")
    avg_rate = IntString(data_key="AvgRate")
    peak_rate = IntString(data_key="PeakRate")
    bytes_rem = IntString(data_key="BytesRem")
    duration = IntString(data_key="Duration")
    idle = IntString(data_key="Idle")
    time_rem = IntString(data_key="TimeRem")
    progress = Number(data_key="Progress")
    active = Flag(data_key="Active")


class ChannelStatus(WireSchema):
    """ChannelStatus."""

    domain = network.ChannelStatus
    id = Number(data_key="ID")
    send_queue_capacity = IntString(data_key="SendQueueCapacity")
    send_queue_size = IntString(data_key="SendQueueSize")
    priority = IntString(data_key="Priority")
    recently_sent = IntString(data_key="RecentlySent")


class ConnectionStatus(WireSchema):
    """Peer.connection_status."""

    domain = network.ConnectionStatus
    duration = IntString(data_key="Duration")
    send_monitor = Nested(Monitor, data_key="SendMonitor")
    recv_monitor = Nested(Monitor, data_key="RecvMonitor")
    channels = ListOf(ChannelStatus, data_key="Channels")


class Peer(WireSchema):
    """Peer."""

    domain = network.Peer
    node_info = Nested(NodeInfo)
    is_outbound = Flag()
    connection_status = Nested(ConnectionStatus)
    remote_ip = Text()


class NetInfo(WireSchema):
    """Result of ``net_info``."""

    domain = network.NetInfo
    listening = Flag()
    listeners = ListOf(Text())
    n_peers = IntString(get=lambda result: len(result.peers), dump_only=True)
    peers = ListOf(Peer)


class PendingTxs(WireSchema):
    """Result of ``unconfirmed_txs``."""

    domain = responses.PendingTxs
    n_txs = IntString(get=lambda result: len(result.txs), dump_only=True)
    total = IntString()
    total_bytes = IntString()
    txs = ListOf(Base64())


class DialAnswer(WireSchema):
    """Result of ``dial_seeds`` and ``dial_peers``."""

    domain = responses.ResultDial
    log = Text()


class Vote(WireSchema):
    """A vote."""

    domain = blocks.Vote
    type = Number()
    height = IntString()
    round = Number()
    block_id = Nested(BlockID)
    timestamp = Timestamp()
    validator_address = Hex()
    validator_index = Number()
    signature = Base64OrNull()


class BlockParams(WireSchema):
    """ConsensusParams.block."""

    domain = genesis.BlockParams
    max_bytes = IntString()
    max_gas = IntString()


class EvidenceParams(WireSchema):
    """ConsensusParams.evidence."""

    domain = genesis.EvidenceParams
    max_age_num_blocks = IntString()
    max_age_duration = IntString()
    max_bytes = IntString()


class ValidatorParams(WireSchema):
    """ConsensusParams.validator."""

    domain = genesis.ValidatorParams
    pub_key_types = ListOf(Text())


class VersionParams(WireSchema):
    """ConsensusParams.version."""

    app_version = IntString(data_key="app")


class ConsensusParams(WireSchema):
    """All consensus parameters at a height."""

    domain = builders.consensus_params
    block = Nested(BlockParams)
    evidence = Nested(EvidenceParams)
    validator = Nested(ValidatorParams)
    version = Nested(VersionParams, get=lambda params: params)
