"""Optional capabilities of a backend: mempool, network, development control and others."""

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
    """A backend, a store or an application."""

    @property
    def capabilities(self) -> Mapping[Capability[Any], Any]:
        """Further capabilities, by their keys."""


@dataclass(frozen=True, eq=False)
class Capability(Generic[T]):
    """Key of something that only some backends can do; features define keys of their own.

    Clients of a backend without it are told ``missing``, and ``cure``, which says what helps.
    """

    missing: str
    cure: str = ""

    def find(self, backend: HasCapabilities) -> T | None:
        """Return the capability; ``None`` where the backend has not got it."""
        return backend.capabilities.get(self)

    def of(self, backend: HasCapabilities) -> T:
        """Return the capability; raise :exc:`~flask_noderpc.errors.NotSupported`."""
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
    """Pending transactions. The default is empty and accepts none."""

    def submit(self, tx: bytes) -> ExecTxResult:
        """The application's check; when its code is 0 the transaction now waits.

        Raise :exc:`~flask_noderpc.errors.TxRejected` or
        :exc:`~flask_noderpc.errors.MempoolFull`.
        """
        raise NotSupported("this backend does not take transactions")

    def check_limits(self, tx: bytes) -> None:
        """Raise as :meth:`submit` does for a full mempool, a transaction that is too large or
        one that was seen before. The default leaves that to :meth:`submit`."""

    def begin_submit(self, tx: bytes) -> tuple[ExecTxResult, Pending[ExecTxResult]]:
        """Return the application's check, and the same once the transaction waits for a block;
        raise what is known at once. The default stores it first."""
        check = self.submit(tx)
        return check, Pending(lambda: check)

    def submit_local(self, tx: bytes, *, replaces: bool) -> ExecTxResult:
        """Submit a transaction that this node made, which its application may accept unsigned
        and as large as fits a block.

        Unless it ``replaces``, it must be the first in its place; raise
        :exc:`~flask_noderpc.errors.NonceTaken`.
        """
        raise NotSupported("this backend takes no transactions of its own")

    def pending(self, limit: int) -> PendingTxs:
        """At most ``limit`` waiting transactions, oldest first."""
        return PendingTxs(0, 0, ())

    def pending_by_other_hash(self, other_hash: bytes) -> bytes | None:
        """The waiting transaction that clients know by another hash than the node's, where that
        can be looked up; the default can't."""
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
        """Remove all pending transactions, and the cache of those seen before."""
        raise NotSupported("this backend has no mempool")


NO_NODE_ID = bytes(20)
NO_VALIDATOR_KEY = PublicKey(ED25519, bytes(32))


class Network:
    """The node and its peers. The default is a node without peers."""

    def __init__(self, chain_id: Callable[[], str]) -> None:
        self._chain_id = chain_id
        self.info: NodeInfo | None = None
        """Node info of ``status``; one with the chain id alone if not set."""
        self.key: PublicKey | None = None
        """The node's validator key, if it has one."""

    def node_info(self) -> NodeInfo:
        """Return the node info."""
        return self.info or NodeInfo(id=NO_NODE_ID, network=self._chain_id())

    def net_info(self) -> NetInfo:
        """Return the peers."""
        return NetInfo()

    def validator_key(self) -> PublicKey:
        """The node's own validator key; 32 zero bytes when it has none."""
        return self.key or NO_VALIDATOR_KEY

    def catching_up(self) -> bool:
        """Return true while blocks are fetched from peers."""
        return False

    def genesis_chunk(self, number: int) -> GenesisChunk | None:
        """Return a chunk of a genesis document that is too large to be stored; ``None`` if
        nothing is cached."""
        return None

    def upstream_height(self) -> int | None:
        """Return the latest height of the nodes that a chain is followed from, or ``None``."""
        return None

    def upstreams(self) -> Mapping[str, str]:
        """Return the state of each node that is asked, by its address: ``up``, ``failing`` or
        ``refused``."""
        return {}

    def live_round(self, dialect: str, *, dump: bool) -> jsoncodec.Raw | None:
        """Return the state of the round that is going on, as a node of a dialect answers
        ``consensus_state`` or, as a ``dump``, ``dump_consensus_state``; ``None`` where there
        is none, or none in that dialect."""
        return None

    def dial_seeds(self, addresses: Sequence[str]) -> None:
        """Begin to ask these nodes, each ``id@host:port``, for others."""
        raise NotSupported("this node has no P2P network")

    def dial_peers(
        self, addresses: Sequence[str], *, persistent: bool, unconditional: bool, private: bool
    ) -> None:
        """Begin to connect to these nodes, each ``id@host:port``."""
        raise NotSupported("this node has no P2P network")


MAX_MINED = 100_000
"""Blocks that one call makes at most: each holds the hash of the one before, so the time that
they take grows with their number."""


class Control(ABC):
    """Control of a development chain; times are in seconds.

    Those that no chain has raise :exc:`~flask_noderpc.errors.ValueNotAllowed`.
    """

    @abstractmethod
    def mine(self, count: int = 1, time: int | None = None, step: int | None = None) -> int:
        """Produce blocks ``step`` apart, the first at ``time``; return the last height.

        Raise :exc:`~flask_noderpc.errors.ValueNotAllowed` for more than :data:`MAX_MINED`.
        """

    @abstractmethod
    def snapshot(self) -> int:
        """Remember where the chain stands, under a number."""

    @abstractmethod
    def revert(self, number: int) -> bool:
        """Take the chain back to a snapshot, which is gone then as are those after it;
        whether there was one."""

    @abstractmethod
    def reset(self) -> None:
        """Revert the chain to its genesis."""

    @abstractmethod
    def rollback(self, depth: int) -> None:
        """Remove the newest blocks, as many as ``depth`` and at most all."""

    @abstractmethod
    def manual_mining(self) -> AbstractContextManager[None]:
        """Make no block but by :meth:`mine` of this thread until the context ends; calls of
        other threads wait."""

    @abstractmethod
    def interval(self) -> float | None:
        """Return the seconds between blocks that are made whether transactions wait or not;
        ``None`` where they aren't."""

    @abstractmethod
    def shift(self, seconds: int) -> int:
        """Advance the clock; return how far it is ahead of the machine's."""

    @abstractmethod
    def set_time(self, time: int) -> int:
        """Set the clock; return how far it is ahead of the machine's."""

    @abstractmethod
    def set_next_time(self, time: int) -> None:
        """Set the next block's time, from which the clock continues; raise
        :exc:`~flask_noderpc.errors.ValueNotAllowed` for one that has passed."""

    @abstractmethod
    def set_step(self, seconds: int | None) -> bool:
        """Set a fixed step between blocks; ``None`` follows the clock. Return true if there was
        one before."""

    @abstractmethod
    def set_interval(self, seconds: float | None) -> None:
        """Make blocks so often; ``None`` makes none but by :meth:`mine`."""

    @abstractmethod
    def set_automine(self, on: bool) -> None:
        """Make a block as soon as a transaction waits, or none but by :meth:`mine`."""

    @abstractmethod
    def automines(self) -> bool:
        """Return true if blocks are made as soon as a transaction is pending, as far as this
        process knows; does not block."""

    @abstractmethod
    def include(self, tx: bytes) -> None:
        """Make a block with a transaction that this node made itself; raise
        :exc:`~flask_noderpc.errors.TxRejected`."""

    @abstractmethod
    def drop(self, txs: tuple[bytes, ...]) -> None:
        """Remove pending transactions."""

    @abstractmethod
    def freeze(self, on: bool) -> None:
        """Let pending transactions wait and blocks be empty, until it is false."""

    @abstractmethod
    def fail_next_tx(self, result: ExecTxResult, *, in_check: bool = False) -> None:
        """Let the next transaction fail with a result, in its block or in its check; raise
        :exc:`~flask_noderpc.errors.NotSupported` where the application can't."""


def no_control() -> NotSupported:
    """Return the error of a chain without development control."""
    return NotSupported(
        "this chain is not driven by hand", "NODERPC_DEV makes one that is, for tests"
    )


class ForwardedCalls(ABC):
    """JSON-RPC of other nodes of the chain, for calls that need what the backend lacks."""

    @abstractmethod
    def call(self, method: str, params: bytes) -> bytes:
        """Return the JSON of a result, from the JSON of a list of parameters.

        Raise :exc:`~flask_noderpc.errors.ForwardedCallFailed` with the node's error object.
        """


FORWARDED_CALLS: Capability[ForwardedCalls] = Capability("the backend asks no other nodes")
