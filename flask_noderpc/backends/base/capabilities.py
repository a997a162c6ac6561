"""Optional capabilities of a backend, such as mempool, network and development control."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from ... import jsoncodec
from ...concurrency import Pending
from ...domain.abci import ExecTxResult
from ...domain.genesis import GenesisChunk
from ...domain.network import NetInfo, NodeInfo
from ...domain.responses import PendingCount, PendingTxs
from ...domain.validator import ED25519, PublicKey
from ...errors import NotSupported

T = TypeVar("T")


class HasCapabilities(Protocol):
    """A backend, store or application with capabilities."""

    @property
    def capabilities(self) -> Mapping[Capability[Any], Any]:
        """Further capabilities, by key."""


@dataclass(frozen=True, eq=False)
class Capability(Generic[T]):
    """Key of an ability that only some backends have; features define their own keys.

    ``missing`` is the error of a backend that lacks the capability, ``cure`` a hint how to get
    it.
    """

    missing: str
    cure: str = ""

    def find(self, backend: HasCapabilities) -> T | None:
        """Return the capability, or ``None`` if the backend lacks it."""
        return backend.capabilities.get(self)

    def of(self, backend: HasCapabilities) -> T:
        """Return the capability; raise :exc:`~flask_noderpc.errors.NotSupported` if the backend
        lacks it."""
        found = self.find(backend)
        if found is None:
            raise NotSupported(self.missing, self.cure)
        return found


@dataclass(frozen=True, slots=True)
class MempoolLimits:
    """Limits of a store's mempool; the defaults are CometBFT's."""

    max_tx_bytes: int = 1_048_576
    max_txs: int = 5_000
    max_bytes: int = 1_073_741_824
    cache_size: int = 10_000


class Mempool:
    """Pending transactions. The default is empty and refuses all transactions."""

    def submit(self, tx: bytes) -> ExecTxResult:
        """Check a transaction, and add it to the mempool if the application returns code 0;
        return the application's result.

        Raise :exc:`~flask_noderpc.errors.TxRejected` or
        :exc:`~flask_noderpc.errors.MempoolFull`.
        """
        raise NotSupported("this backend accepts no transactions")

    def check_limits(self, tx: bytes) -> None:
        """Raise the error of :meth:`submit` if the mempool is full, or if the transaction is
        too large or was seen before. The default leaves these checks to :meth:`submit`."""

    def begin_submit(self, tx: bytes) -> tuple[ExecTxResult, Pending[ExecTxResult]]:
        """Check a transaction and begin to store it; return the application's result, and an
        object to wait with until it is stored. Raise errors that are known immediately. The
        default stores the transaction before it returns."""
        check = self.submit(tx)
        return check, Pending(lambda: check)

    def submit_local(self, tx: bytes, *, replaces: bool) -> ExecTxResult:
        """Submit a transaction that this node created. The application may accept it unsigned,
        and it may be as large as a block allows.

        Without ``replaces`` no transaction with the same sender and nonce may be pending; raise
        :exc:`~flask_noderpc.errors.NonceTaken` otherwise.
        """
        raise NotSupported("this backend accepts no transactions")

    def pending(self, limit: int) -> PendingTxs:
        """Return at most ``limit`` pending transactions, oldest first."""
        return PendingTxs(0, 0, ())

    def pending_by_other_hash(self, other_hash: bytes) -> bytes | None:
        """Return the pending transaction whose alternative hash (such as its Ethereum hash) is
        ``other_hash``, if the backend can look it up; the default can't."""
        return None

    def pending_by_sender(self, sender: bytes, limit: int) -> tuple[bytes, ...]:
        """Return at most ``limit`` pending transactions of a sender, in the order of their
        nonces; empty by default, as the default mempool knows no senders."""
        return ()

    def pending_count(self) -> PendingCount:
        """Return the number of pending transactions, and their total bytes."""
        return PendingCount(0, 0)

    def latest_pending(self) -> int:
        """Return the cursor of the newest transaction that was ever pending; 0 if none ever
        was."""
        return 0

    def pending_after(self, cursor: int, limit: int) -> tuple[tuple[int, bytes], ...]:
        """Return at most ``limit`` pending transactions after a cursor, each with its own
        cursor, oldest first; cursor 0 starts at the oldest."""
        return ()

    def arrived_after(self, cursor: int, limit: int) -> tuple[tuple[int, bytes], ...]:
        """Return the transactions that arrived after a cursor, like :meth:`pending_after`, but
        including committed ones that the backend remembers; the default only has pending
        ones."""
        return self.pending_after(cursor, limit)

    def wait_for_pending_after(self, cursor: int, timeout: float) -> bool:
        """Wait up to ``timeout`` seconds for a pending transaction after a cursor; return true
        if one exists."""
        threading.Event().wait(timeout)
        return False

    def flush(self) -> None:
        """Remove all pending transactions, and clear the cache of seen transactions."""
        raise NotSupported("this backend has no mempool")


NO_NODE_ID = bytes(20)
NO_VALIDATOR_KEY = PublicKey(ED25519, bytes(32))


class Network:
    """Data of the node and its peers; the default is a node without peers."""

    def __init__(self, chain_id: Callable[[], str]) -> None:
        self._chain_id = chain_id
        self.info: NodeInfo | None = None
        """Node info that ``status`` shows; if it is ``None``, one that only has the chain
        ID."""
        self.key: PublicKey | None = None
        """Validator key of the node, or ``None``."""

    def node_info(self) -> NodeInfo:
        """Return the node info."""
        return self.info or NodeInfo(id=NO_NODE_ID, network=self._chain_id())

    def net_info(self) -> NetInfo:
        """Return the peers."""
        return NetInfo()

    def validator_key(self) -> PublicKey:
        """Return the node's own validator key; 32 zero bytes if it has no key."""
        return self.key or NO_VALIDATOR_KEY

    def catching_up(self) -> bool:
        """Return true while the node fetches blocks from peers."""
        return False

    def genesis_chunk(self, number: int) -> GenesisChunk | None:
        """Return a chunk of a genesis document that is not stored; ``None`` if the chunk does
        not exist."""
        return None

    def upstream_height(self) -> int | None:
        """Return the latest height of the upstream nodes; ``None`` without upstream nodes, or
        if it is unknown."""
        return None

    def upstreams(self) -> Mapping[str, str]:
        """Return the state of each upstream node by its address: ``up``, ``failing`` or
        ``refused``."""
        return {}

    def live_round(self, dialect: str, *, dump: bool) -> jsoncodec.Raw | None:
        """Return the state of the current consensus round as JSON of a dialect: that of
        ``consensus_state`` or, with ``dump``, of ``dump_consensus_state``; ``None`` if no
        round is running or the dialect has no such JSON."""
        return None

    def dial_seeds(self, addresses: Sequence[str]) -> None:
        """Ask these seed nodes, each ``id@host:port``, for peers in the background."""
        raise NotSupported("this node has no P2P network")

    def dial_peers(
        self, addresses: Sequence[str], *, persistent: bool, unconditional: bool, private: bool
    ) -> None:
        """Connect to these nodes, each ``id@host:port``, in the background."""
        raise NotSupported("this node has no P2P network")


MAX_MINED = 100_000
"""Maximum number of blocks that one call of :meth:`Control.mine` produces, as each takes
time."""


class Control(ABC):
    """Control of a development chain; times are in seconds since 1970.

    Methods raise :exc:`~flask_noderpc.errors.ValueNotAllowed` for a time that a block can't
    have.
    """

    @abstractmethod
    def mine(self, count: int = 1, time: int | None = None, step: int | None = None) -> int:
        """Produce ``count`` blocks with times ``step`` seconds apart, the first at ``time``;
        return the last height.

        Raise :exc:`~flask_noderpc.errors.ValueNotAllowed` for more than :data:`MAX_MINED`
        blocks.
        """

    @abstractmethod
    def snapshot(self) -> int:
        """Save the chain's current state; return the number of the snapshot."""

    @abstractmethod
    def revert(self, number: int) -> bool:
        """Revert the chain to a snapshot, and delete this snapshot and all later ones; return
        false if it does not exist."""

    @abstractmethod
    def reset(self) -> None:
        """Revert the chain to its genesis."""

    @abstractmethod
    def rollback(self, depth: int) -> None:
        """Remove the newest ``depth`` blocks, or all blocks if there are fewer."""

    @abstractmethod
    def manual_mining(self) -> AbstractContextManager[None]:
        """In this context, blocks are only produced when this thread calls :meth:`mine`;
        control calls of other threads wait."""

    @abstractmethod
    def interval(self) -> float | None:
        """Return the interval in seconds at which blocks are produced even without
        transactions; ``None`` if there is no such interval."""

    @abstractmethod
    def shift(self, seconds: int) -> int:
        """Advance the clock; return the seconds by which it is ahead of the machine's
        clock."""

    @abstractmethod
    def set_time(self, time: int) -> int:
        """Set the clock; return the seconds by which it is ahead of the machine's clock."""

    @abstractmethod
    def set_next_time(self, time: int) -> None:
        """Set the next block's time, from which the clock continues; raise
        :exc:`~flask_noderpc.errors.ValueNotAllowed` for a time in the past."""

    @abstractmethod
    def set_step(self, seconds: int | None) -> bool:
        """Set a fixed step between block times; ``None`` follows the clock. Return true if a
        fixed step was set before."""

    @abstractmethod
    def set_interval(self, seconds: float | None) -> None:
        """Produce blocks at this interval; ``None`` produces blocks only when :meth:`mine` is
        called."""

    @abstractmethod
    def set_automine(self, on: bool) -> None:
        """Produce a block as soon as a transaction is pending, or (``on`` false) only when
        :meth:`mine` is called."""

    @abstractmethod
    def automines(self) -> bool:
        """Return true if blocks are produced as soon as a transaction is pending, as far as
        this process knows. Return at once, even during :meth:`manual_mining`."""

    @abstractmethod
    def include(self, tx: bytes) -> None:
        """Produce a block with a transaction that this node created; raise
        :exc:`~flask_noderpc.errors.TxRejected`."""

    @abstractmethod
    def drop(self, txs: tuple[bytes, ...]) -> None:
        """Remove pending transactions."""

    @abstractmethod
    def freeze(self, on: bool) -> None:
        """While ``on``, leave transactions pending and produce empty blocks."""

    @abstractmethod
    def fail_next_tx(self, result: ExecTxResult, *, in_check: bool = False) -> None:
        """Make the next transaction fail with a result, in its block or in its check; raise
        :exc:`~flask_noderpc.errors.NotSupported` if the application can't."""


def no_control() -> NotSupported:
    """Return the error of a chain without development control."""
    return NotSupported(
        "this chain has no development control", "set NODERPC_DEV for a chain that has it"
    )


class ForwardedCalls(ABC):
    """Forwarding of JSON-RPC calls to other nodes, for methods that need data the backend
    lacks."""

    @abstractmethod
    def call(self, method: str, params: bytes) -> bytes:
        """Call another node with ``params``, the JSON of a list; return the JSON of the
        result.

        Raise :exc:`~flask_noderpc.errors.ForwardedCallFailed` with the node's error object.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the connections."""


FORWARDED_CALLS: Capability[ForwardedCalls] = Capability("the backend asks no other nodes")
