"""What the handlers answer with, one class per route that needs its own."""

from __future__ import annotations

from dataclasses import dataclass

from .abci import AppInfo, QueryResult, TxResult
from .block import Block, BlockID, BlockMeta, Header, SignedHeader, TxProof
from .consensus import RoundState
from .genesis import Genesis
from .network import NodeInfo
from .params import ConsensusParams
from .validator import PublicKey, Validator


@dataclass(frozen=True, slots=True)
class Empty:
    """Nothing to say beyond "it worked"."""


@dataclass(frozen=True, slots=True)
class SyncInfo:
    """The first and the latest block of the store."""

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
    """The node's own validator key; power 0 when it is not in the set."""

    address: bytes
    pub_key: PublicKey
    voting_power: int


@dataclass(frozen=True, slots=True)
class Status:
    """The node, its chain and its key."""

    node_info: NodeInfo
    sync_info: SyncInfo
    validator_info: ValidatorInfo


@dataclass(frozen=True, slots=True)
class BlockList:
    """Block metas from high to low."""

    last_height: int
    block_metas: tuple[BlockMeta, ...]


@dataclass(frozen=True, slots=True)
class ResultBlock:
    """A block, or ``None`` where no block is known."""

    block_id: BlockID
    block: Block | None
    byzantine_validators: tuple[tuple[Validator, ...], ...] = ()
    """Per piece of evidence, the validators it accuses."""


@dataclass(frozen=True, slots=True)
class ResultHeader:
    """A header, or ``None`` where no block is known."""

    header: Header | None


@dataclass(frozen=True, slots=True)
class ResultCommit:
    """A header with its commit."""

    signed_header: SignedHeader
    canonical: bool
    """False for the latest height: its commit is the one seen here, and the next
    block may carry another."""


@dataclass(frozen=True, slots=True)
class ValidatorPage:
    """One page of a validator set."""

    block_height: int
    validators: tuple[Validator, ...]
    total: int


@dataclass(frozen=True, slots=True)
class ConsensusState:
    """Where consensus stands, in short."""

    round_state: RoundState


@dataclass(frozen=True, slots=True)
class ConsensusDump:
    """Where consensus stands, in full."""

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
    """Transactions that wait for a block, oldest first."""

    total: int
    total_bytes: int
    txs: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class PendingCount:
    """How many transactions wait for a block, and their bytes."""

    total: int
    total_bytes: int


@dataclass(frozen=True, slots=True)
class ResultTx:
    """A committed transaction."""

    hash: bytes
    height: int
    index: int
    tx_result: TxResult
    tx: bytes
    proof: TxProof | None = None


@dataclass(frozen=True, slots=True)
class ResultTxSearch:
    """A page of the transactions found, and how many there are."""

    total: int
    txs: tuple[ResultTx, ...]


@dataclass(frozen=True, slots=True)
class ResultBlockSearch:
    """A page of the blocks found, and how many there are."""

    total: int
    blocks: tuple[ResultBlock, ...]


@dataclass(frozen=True, slots=True)
class EventItem:
    """One message of a block, and its place: height and position."""

    place: tuple[int, int]
    category: str
    value: object


@dataclass(frozen=True, slots=True)
class EventPage:
    """Some of the events, newest first; the ends are those of all that can be asked for."""

    items: tuple[EventItem, ...]
    more: bool
    oldest: tuple[int, int] | None
    newest: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class ResultBroadcastTx:
    """What the mempool said of a transaction."""

    code: int
    data: bytes
    log: str
    codespace: str
    hash: bytes


@dataclass(frozen=True, slots=True)
class ResultBroadcastTxCommit:
    """What the check and the execution of a transaction gave."""

    check_tx: TxResult
    tx_result: TxResult
    hash: bytes
    height: int
    """0 when the check refused it."""


@dataclass(frozen=True, slots=True)
class ResultBroadcastEvidence:
    """The hash by which a piece of evidence is known."""

    hash: bytes


@dataclass(frozen=True, slots=True)
class ResultDial:
    """What was begun."""

    log: str


@dataclass(frozen=True, slots=True)
class ResultABCIInfo:
    """The application's introduction."""

    response: AppInfo


@dataclass(frozen=True, slots=True)
class ResultABCIQuery:
    """The application's answer to a query."""

    response: QueryResult
