"""The roles of a backend, each a few methods.

The required ones only read: blocks, state, transactions, and the wait for new heights. The
mempool, the application and the network have defaults that refuse or know nothing.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from ...domain.abci import AppInfo, BlockResults, QueryResult, TxResult
from ...domain.block import Block, BlockID, BlockMeta, Commit, Evidence
from ...domain.genesis import Genesis
from ...domain.network import NetInfo, NodeInfo
from ...domain.params import ConsensusParams
from ...domain.rpc_results import PendingCount, PendingTxs
from ...domain.search import TxRecord
from ...domain.validator import ED25519, PublicKey, ValidatorSet
from ...errors import NotSupported
from .version import ChainVersion

NO_NODE_ID = bytes(20)
NO_VALIDATOR_KEY = PublicKey(ED25519, bytes(32))


class BlockStore(ABC):
    """Role: the blocks, their commits and their results."""

    @abstractmethod
    def latest_height(self) -> int:
        """Height of the newest block; 0 while there is none."""

    @abstractmethod
    def base_height(self) -> int:
        """Height of the oldest block stored; 0 while there is none."""

    @abstractmethod
    def block(self, height: int) -> tuple[BlockID, Block]:
        """The block; raise :exc:`~flask_noderpc.errors.HeightNotAvailable`."""

    @abstractmethod
    def block_meta(self, height: int) -> BlockMeta:
        """The block without its content; raise ``HeightNotAvailable``."""

    def base_meta(self) -> BlockMeta:
        """The oldest stored block, without its content; raise ``HeightNotAvailable``.

        One that forgets blocks reads both at once: between two looks it may be gone.
        """
        return self.block_meta(self.base_height())

    @abstractmethod
    def height_of(self, block_hash: bytes) -> int:
        """Return the height of this block; raise :exc:`~flask_noderpc.errors.BlockNotFound`."""

    def hash_at(self, height: int) -> bytes:
        """The hash of the block at a height; raise ``HeightNotAvailable``."""
        return self.block_meta(height).block_id.hash

    @abstractmethod
    def commit(self, height: int) -> Commit:
        """The precommits for the block: those that the next block carries, or, at the
        latest height, those seen here. Raise ``HeightNotAvailable``."""

    @abstractmethod
    def results(self, height: int) -> BlockResults:
        """Return the results of the block; raise ``HeightNotAvailable`` or
        :exc:`~flask_noderpc.errors.ResultNotFound`."""

    def version(self) -> ChainVersion | None:
        """Return the chain's version, by which answers are cached; ``None`` if it is unknown
        and nothing is cached."""
        return None

    def read_view(self) -> AbstractContextManager[ChainVersion | None]:
        """Give all reads of this thread one snapshot, where the store can; yield its version.
        Hold it briefly; :meth:`version` still returns the current version."""
        return nullcontext(self.version())

    def block_metas(self, low: int, high: int) -> tuple[BlockMeta, ...]:
        """The metas of a range, both ends included, highest first."""
        return tuple(self.block_meta(height) for height in range(high, low - 1, -1))


class StateStore(ABC):
    """Role: what consensus knows at a height."""

    @abstractmethod
    def genesis(self) -> Genesis:
        """The document the chain started from."""

    @abstractmethod
    def validators(self, height: int) -> ValidatorSet:
        """The set that signs this height, known up to two above the latest; raise
        :exc:`~flask_noderpc.errors.ResultNotFound`."""

    @abstractmethod
    def consensus_params(self, height: int) -> ConsensusParams:
        """The parameters in force, known up to one above the latest; raise
        ``ResultNotFound``."""


class TxIndex(ABC):
    """Role: transactions by their hash."""

    @abstractmethod
    def tx(self, tx_hash: bytes) -> TxRecord:
        """The transaction; raise :exc:`~flask_noderpc.errors.TxNotFound`.

        A hash committed more than once gives the latest that succeeded, or the latest.
        """

    def latest_txs(self, limit: int) -> tuple[TxRecord, ...]:
        """The newest transactions, newest first; the default knows none."""
        return ()


class EventSource(ABC):
    """Role: events are cursors over heights, not callbacks."""

    @abstractmethod
    def wait_for_height(self, after: int, timeout: float) -> int:
        """The latest height, as soon as it is above ``after`` or ``timeout`` seconds on."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A transaction on its way to where it waits for a block."""

    check: TxResult
    """The result of the application's check."""
    wait: Callable[[], TxResult]
    """Returns the check once the transaction is pending; raises if it can't be. To be called
    once."""
    is_stored: Callable[[float], bool] = lambda seconds: True
    """Returns true as soon as :attr:`wait` would not wait, or false so many seconds on."""


class Mempool:
    """Role: transactions that wait for a block. The default has none and takes none."""

    def submit(self, tx: bytes) -> TxResult:
        """The application's check; when its code is 0 the transaction now waits.

        Raise :exc:`~flask_noderpc.errors.TxRejected` or
        :exc:`~flask_noderpc.errors.MempoolFull`.
        """
        raise NotSupported("this backend does not take transactions")

    def begin_submit(self, tx: bytes) -> Submission:
        """Check a transaction as :meth:`submit` does, and have it stored meanwhile; raise what
        is known at once. The default stores it first."""
        check = self.submit(tx)
        return Submission(check, lambda: check)

    def submit_local(self, tx: bytes, *, replaces: bool) -> TxResult:
        """Submit a transaction that this node made, which its application may accept unsigned
        and as large as fits a block.

        Unless it ``replaces``, it must be the first in its place; raise
        :exc:`~flask_noderpc.errors.PlaceTaken`.
        """
        raise NotSupported("this backend takes no transactions of its own")

    def pending(self, limit: int) -> PendingTxs:
        """At most ``limit`` waiting transactions, oldest first."""
        return PendingTxs(0, 0, ())

    def pending_by_eth_hash(self, other_hash: bytes) -> bytes | None:
        """The waiting transaction that Ethereum's clients know by a hash, where that can be
        looked up; the default can't."""
        return None

    def pending_by_sender(self, sender: bytes, limit: int) -> tuple[bytes, ...]:
        """At most ``limit`` waiting transactions of a sender who can use each place once, in
        the order of the places; the default knows no senders."""
        return ()

    def pending_count(self) -> PendingCount:
        """Return the number of pending transactions, and their bytes."""
        return PendingCount(0, 0)

    def latest_pending(self) -> int:
        """The cursor of the newest transaction that has waited; 0 before the first."""
        return 0

    def pending_after(self, cursor: int, limit: int) -> tuple[tuple[int, bytes], ...]:
        """At most ``limit`` waiting transactions that came after a cursor, each with its
        own cursor, oldest first; 0 is before all."""
        return ()

    def arrived_after(self, cursor: int, limit: int) -> tuple[tuple[int, bytes], ...]:
        """The same with those that are in a block by now, where the backend remembers them;
        the default knows what still waits alone."""
        return self.pending_after(cursor, limit)

    def wait_for_pending_after(self, cursor: int, timeout: float) -> bool:
        """Wait for one after a cursor, ``timeout`` seconds at most; return true if there is."""
        threading.Event().wait(timeout)
        return False

    def flush(self) -> None:
        """Forget all that waits, and what was seen before."""
        raise NotSupported("this backend has no mempool")


class EvidencePool:
    """Role: evidence that waits for a block. The default takes none."""

    def submit_evidence(self, piece: Evidence) -> bytes:
        """The hash of a piece of evidence, which now waits, or is in a block already.

        Raise :exc:`~flask_noderpc.errors.InvalidEvidence` or
        :exc:`~flask_noderpc.errors.EvidencePoolFull`.
        """
        raise NotSupported("this backend does not take evidence")


class ApplicationAccess:
    """Role: the application behind the chain. The default has none."""

    def app_info(self) -> AppInfo:
        """Return the application's info."""
        raise NotSupported("this backend has no application")

    def check_tx(self, tx: bytes) -> TxResult:
        """Return the application's check of a transaction, without the mempool's."""
        raise NotSupported("this backend has no application")

    def query(self, path: str, data: bytes, height: int, prove: bool) -> QueryResult:
        """The application's answer."""
        raise NotSupported("this backend has no application")

    def application_is_chain_only(self) -> bool:
        """Return true if :meth:`app_info` and :meth:`query` may be cached while :meth:`version`
        is the same."""
        return False


class Network:
    """Role: the node and its peers. The default is a node alone."""

    def node_info(self) -> NodeInfo:
        """Return the node info."""
        return NodeInfo(id=NO_NODE_ID, network=self._chain_id())

    def net_info(self) -> NetInfo:
        """Return the peers."""
        return NetInfo()

    def validator_key(self) -> PublicKey:
        """The node's own validator key; 32 zero bytes when it has none."""
        return NO_VALIDATOR_KEY

    def catching_up(self) -> bool:
        """Return true while blocks are fetched from peers."""
        return False

    def dial_seeds(self, addresses: Sequence[str]) -> None:
        """Begin to ask these nodes, each ``id@host:port``, for others."""
        raise NotSupported("this node stands alone, it dials nobody")

    def dial_peers(
        self, addresses: Sequence[str], *, persistent: bool, unconditional: bool, private: bool
    ) -> None:
        """Begin to connect to these nodes, each ``id@host:port``."""
        raise NotSupported("this node stands alone, it dials nobody")

    def _chain_id(self) -> str:
        return ""
