"""Results of the RPC routes, with the names of CometBFT's rpc/core/types."""

from __future__ import annotations

from dataclasses import dataclass

from .abci import AppInfo, ExecTxResult, QueryResult
from .block import Block, BlockID, BlockMeta, Header, RoundState, SignedHeader, TxProof
from .genesis import ConsensusParams, Genesis
from .network import NodeInfo
from .validator import PublicKey, Validator


@dataclass(frozen=True, slots=True)
class Empty:
    """Empty result of a successful call."""


@dataclass(frozen=True, slots=True)
class SyncInfo:
    """Earliest and latest stored block, and whether the node is catching up."""

    latest_block_hash: bytes
    latest_app_hash: bytes
    latest_block_height: int
    latest_block_time: int
    earliest_block_hash: bytes
    earliest_app_hash: bytes
    earliest_block_height: int
    earliest_block_time: int
    catching_up: bool


@dataclass(frozen=True, slots=True)
class ValidatorInfo:
    """The node's validator key; power 0 if it is not in the validator set."""

    address: bytes
    pub_key: PublicKey
    voting_power: int


@dataclass(frozen=True, slots=True)
class ResultStatus:
    """Result of ``status``: node info, sync info and validator key."""

    node_info: NodeInfo
    sync_info: SyncInfo
    validator_info: ValidatorInfo


@dataclass(frozen=True, slots=True)
class ResultBlockchainInfo:
    """Metadata of a range of blocks, highest first."""

    last_height: int
    block_metas: tuple[BlockMeta, ...]


@dataclass(frozen=True, slots=True)
class ResultBlock:
    """A block; ``None`` if it is unknown."""

    block_id: BlockID
    block: Block | None
    byzantine_validators: tuple[tuple[Validator, ...], ...] = ()
    """Accused validators of each piece of evidence."""


@dataclass(frozen=True, slots=True)
class ResultHeader:
    """A header; ``None`` if the block is unknown."""

    header: Header | None
    form: bytes = b""
    """How the block's JSON differs from the usual JSON; see :attr:`.Block.form`."""


@dataclass(frozen=True, slots=True)
class ResultCommit:
    """A header with its commit."""

    signed_header: SignedHeader
    canonical: bool
    """False for the latest height, whose commit is the one that this node has seen; the next
    block may contain another."""


@dataclass(frozen=True, slots=True)
class ResultValidators:
    """A page of a validator set."""

    block_height: int
    validators: tuple[Validator, ...]
    total: int


@dataclass(frozen=True, slots=True)
class ResultConsensusState:
    """Round state, encoded with few members for ``consensus_state``."""

    round_state: RoundState


@dataclass(frozen=True, slots=True)
class ResultDumpConsensusState:
    """Round state, encoded with all members for ``dump_consensus_state``."""

    round_state: RoundState


@dataclass(frozen=True, slots=True)
class ResultGenesis:
    """The genesis document."""

    genesis: Genesis


@dataclass(frozen=True, slots=True)
class ResultConsensusParams:
    """The consensus parameters at a height."""

    block_height: int
    consensus_params: ConsensusParams


@dataclass(frozen=True, slots=True)
class PendingTxs:
    """Mempool transactions, oldest first."""

    total: int
    total_bytes: int
    txs: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class PendingCount:
    """Number and total bytes of the mempool's transactions."""

    total: int
    total_bytes: int


@dataclass(frozen=True, slots=True)
class ResultTx:
    """A committed transaction."""

    hash: bytes
    height: int
    index: int
    tx_result: ExecTxResult
    tx: bytes
    proof: TxProof | None = None


@dataclass(frozen=True, slots=True)
class ResultTxSearch:
    """A page of matching transactions, and the total number of matches."""

    total: int
    txs: tuple[ResultTx, ...]


@dataclass(frozen=True, slots=True)
class ResultBlockSearch:
    """A page of matching blocks, and the total number of matches."""

    total: int
    blocks: tuple[ResultBlock, ...]


@dataclass(frozen=True, slots=True)
class EventItem:
    """An event message of a block with its cursor: the height, and the index among its
    messages."""

    cursor: tuple[int, int]
    category: str
    value: object


@dataclass(frozen=True, slots=True)
class ResultEvents:
    """A page of events, newest first; ``oldest`` and ``newest`` are the cursors of all stored
    events."""

    items: tuple[EventItem, ...]
    more: bool
    oldest: tuple[int, int] | None
    newest: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class ResultBroadcastTx:
    """CheckTx result of a transaction that was broadcast."""

    code: int
    data: bytes
    log: str
    codespace: str
    hash: bytes


@dataclass(frozen=True, slots=True)
class ResultBroadcastTxCommit:
    """Results of CheckTx and of executing a transaction."""

    check_tx: ExecTxResult
    tx_result: ExecTxResult
    hash: bytes
    height: int
    """Height of the transaction's block; 0 if CheckTx rejected the transaction."""


@dataclass(frozen=True, slots=True)
class ResultBroadcastEvidence:
    """Hash of the evidence that was broadcast."""

    hash: bytes


@dataclass(frozen=True, slots=True)
class ResultDial:
    """Log text of a dial request."""

    log: str


@dataclass(frozen=True, slots=True)
class ResultABCIInfo:
    """Application info."""

    response: AppInfo


@dataclass(frozen=True, slots=True)
class ResultABCIQuery:
    """The application's response to a query."""

    response: QueryResult
