"""State of the EVM application: a record of each block, trie nodes, and executor processes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple, TypeVar

from ...backends.base.application import AppState
from ...errors import InvalidBlock, ResultNotFound
from ...executors.pool import Executors
from ...executors.process import refuse_questions
from ...lru import CacheMemory, LRUCache
from ...protocol.secp256k1eth import keccak
from ..domain.execution import CODE_SIZE_LIMIT
from ..domain.forks import OSAKA, PRAGUE, Activation, Fork, Schedule, extended, fork_named
from ..domain.records import ZERO_HASH
from ..engine.base import Job
from ..protocol import accounts, rlp
from ..protocol.trie import NodeMissing, Record
from ..protocol.validity import INITIAL_BASE_FEE, next_base_fee
from ..state import EvmState
from . import commands
from .forked import ForkedChain

log = logging.getLogger(__name__)

BLOCKS_NEEDED = 257
"""Minimum number of retained blocks: the latest, and the 256 before it that BLOCKHASH can
read."""


@dataclass(frozen=True, slots=True)
class EvmHead:
    """State root and fee parameters after a block."""

    height: int
    root: bytes
    base_fee: int
    gas_used: int
    gas_limit: int
    coinbase: bytes = b""
    """Account that receives the tips of later blocks, if ``setCoinbase`` was called."""
    chain_id: int = 0
    """Chain ID of later blocks; 0 in a store of a version that did not record it."""
    prev_randao: bytes = b""
    """Value of PREVRANDAO in the next block, if ``setPrevRandao`` was called."""

    @property
    def next_base_fee(self) -> int:
        """Base fee of the next block, in wei per unit of gas."""
        return next_base_fee(self.base_fee, self.gas_used, self.gas_limit)

    def encode(self) -> bytes:
        """Encode the record for the store."""
        items: list[rlp.Item] = [self.height, self.root, self.base_fee]
        items += self.gas_used, self.gas_limit
        items += self.coinbase, self.chain_id, self.prev_randao
        return rlp.encode(items)

    @classmethod
    @lru_cache(128)
    def decode(cls, stored: bytes) -> EvmHead:
        """Decode the result of :meth:`encode`."""
        items = rlp.Reader(stored).list("head")

        def number() -> int:
            return int.from_bytes(items.string("number"))

        values = number(), items.string("root"), number(), number(), number()
        # Earlier versions wrote fewer items.
        coinbase = b"" if items.done else items.string("coinbase")
        if items.done:
            return cls(*values, coinbase)
        return cls(*values, coinbase, number(), items.string("prevRandao"))


@dataclass(frozen=True, slots=True)
class ChainRules:
    """Rules for the blocks of a chain: its forks, and the limits of its transactions."""

    first: Fork = OSAKA
    scheduled: Schedule = ()
    caps_tx_gas: bool = True
    """True if the fork's maximum of a transaction's gas limit applies (EIP-7825)."""
    code_size_limit: int = CODE_SIZE_LIMIT
    """Maximum bytes of a contract's code (EIP-170)."""
    records_calls: bool = False
    """True to record the internal calls of transactions in their events."""


LATEST = b"evm"
_AT = b"evm:%d"


def head(state: AppState) -> EvmHead | None:
    """Return the record of the latest block, or ``None`` before the genesis."""
    stored = state.get(LATEST)
    return None if stored is None else EvmHead.decode(stored)


def head_at(state: AppState, height: int) -> EvmHead | None:
    """Return the record of a block, ``None`` if it is not stored; height 0 is the genesis."""
    stored = state.get(_AT % height)
    return None if stored is None else EvmHead.decode(stored)


_FORKS = b"evm:forks"


def schedule(state: AppState) -> Schedule:
    """Return the chain's forks; a store that is too old to record them has Prague."""
    stored = state.get(_FORKS)
    return (Activation(0, PRAGUE),) if stored is None else _decoded_schedule(stored)


def schedule_record(forks: Schedule) -> dict[bytes, bytes]:
    """Return the key-value record of a chain's forks."""
    items: list[rlp.Item] = [[each.height, each.fork.name.encode()] for each in forks]
    return {_FORKS: rlp.encode(items)}


@lru_cache(4)
def _decoded_schedule(stored: bytes) -> Schedule:
    items, forks = rlp.Reader(stored).list("forks"), list[Activation]()
    while not items.done:
        item = items.list("fork")
        height, name = int.from_bytes(item.string("height")), item.string("name").decode()
        forks.append(Activation(height, fork_named(name)))
    return tuple(forks)


_CALLS = b"evm:calls"


def calls_recorded_since(state: AppState) -> int | None:
    """Return the height from which on each block's results have the internal calls; ``None``
    if the latest block's don't."""
    stored = state.get(_CALLS)
    return None if stored is None else int.from_bytes(stored)


def calls_changes(
    state: AppState, height: int, *, records: bool
) -> Mapping[bytes, bytes | None]:
    """Return the change of the height since which internal calls are recorded, when a block is
    made with or without them."""
    is_known = state.get(_CALLS) is not None
    if is_known == records:
        return {}
    return {_CALLS: height.to_bytes(8) if records else None}


def undo_changes(state: AppState, latest: int, height: int) -> dict[bytes, bytes | None]:
    """Return the records to change, or to delete (``None``), so that the block at ``height``
    becomes the latest; height 0 is the genesis."""
    genesis = head_at(state, 0)
    removed = range(max(height, genesis.height if genesis else 0) + 1, latest + 1)
    changes = {**{_AT % each: None for each in removed}, LATEST: state.get(_AT % height)}
    since = calls_recorded_since(state)
    if since is not None and since > height:
        # The next block records again from when on it has the calls.
        changes[_CALLS] = None
    return changes


def head_records(new_head: EvmHead, *more: int) -> dict[bytes, bytes]:
    """Return the key-value records of a new latest block, for its height and more heights."""
    encoded = new_head.encode()
    return dict.fromkeys([LATEST, *(_AT % each for each in (new_head.height, *more))], encoded)


_FORK = b"evm:fork"


class ForkPoint(NamedTuple):
    """The block after which a chain was forked, as its store has it."""

    hash: bytes
    number: int
    is_proven: bool
    """True if the values of the other chain are proven by the block's state root."""

    def record(self) -> dict[bytes, bytes]:
        """Return the key-value record."""
        return {_FORK: rlp.encode([self.hash, self.number, int(self.is_proven)])}


def fork_point(state: AppState) -> ForkPoint | None:
    """Return the block after which the chain was forked, or ``None``."""
    stored = state.get(_FORK)
    if stored is None:
        return None
    items = rlp.Reader(stored).list("fork")
    block_hash, number, proven = (items.string("fork") for _ in range(3))
    return ForkPoint(block_hash, int.from_bytes(number), bool(proven))


def verify_records(record: Record, height: int, root: bytes) -> None:
    """Raise :exc:`~flask_noderpc.errors.InvalidBlock` unless each trie node and contract code
    of a state is stored under its own hash."""

    def proven(digest: bytes) -> bytes | None:
        found = record(digest)
        return found if found is not None and keccak(found) == digest else None

    try:
        for _ in accounts.records(proven, root):
            pass
    except NodeMissing as error:
        raise InvalidBlock(
            f"app_state: record 0x{error} of the state of block {height} is missing, or has"
            " another hash: restore a backup"
        ) from None


# Limits of the cache; a trie node has some hundred bytes, and code up to 24 thousand.
_MAX_NODES, _MAX_NODE_BYTES = 50_000, 32 << 20
# Memory of a cache entry besides its record: Python's two bytes objects and the hash.
_OBJECT_BYTES = 130


class CachedNodeStore:
    """Read-through cache of immutable records by their hashes."""

    def __init__(
        self, read: Callable[[bytes], bytes | None], memory: CacheMemory | None = None
    ) -> None:
        self._read = read
        self._cache = LRUCache[bytes, bytes](_MAX_NODES, _MAX_NODE_BYTES, _weight, memory)

    def record(self, digest: bytes) -> bytes | None:
        """Return a trie node or contract code by its hash, or ``None``."""
        record = self._cache.get(digest) or self._read(digest)
        return None if record is None else self._cache.put(digest, record)


def _weight(record: bytes) -> int:
    return len(record) + _OBJECT_BYTES


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ExecutionLimits:
    """Number of executor processes and queued calls, and time limits in seconds."""

    executors: int = 2
    waiting: int = 32
    call_s: float = 5.0
    block_s: float = 30.0
    """Maximum seconds for a block; the producer renews its lease while it waits."""


class EvmRuntime(EvmState):
    """The application's records, and the executor processes that run its code.

    ``store`` is the database that the processes open. Blocks have a process of their own, so
    that calls never delay them. With ``keeps_names``, addresses and slots are stored by their
    hashes, so that the state can be dumped. ``fork`` is the chain from whose state this one
    began.
    """

    initial_base_fee = INITIAL_BASE_FEE

    def __init__(
        self,
        state: AppState,
        store: str,
        limits: ExecutionLimits,
        memory: CacheMemory | None = None,
        *,
        keeps_names: bool = False,
        fork: ForkedChain | None = None,
    ) -> None:
        self._state, self._limits, self._fork = state, limits, fork
        self.rules = ChainRules()
        self.memory = memory or CacheMemory()
        is_forked, answer = fork is not None, fork.get if fork else refuse_questions
        calls = commands.for_calls(store, self.memory.limit, is_forked=is_forked)
        self._calls = Executors(calls, limits.executors, limits.waiting, answer)
        blocks = commands.for_blocks(
            store, self.memory.limit, is_forked=is_forked, keeps_names=keeps_names
        )
        self._blocks = Executors(blocks, 1, 1, answer)
        self._node_store = CachedNodeStore(self._read, self.memory)

    def root(self, height: int) -> bytes:
        head = head_at(self._state, height)
        if head is None:
            raise ResultNotFound(
                f"the state of block {height} is not stored; ask for a later block"
            )
        return head.root

    def chain_id(self, height: int) -> int | None:
        # The block that changes the chain ID has no other transactions, so the chain ID after
        # a block is the one of its transactions, too.
        found = head_at(self._state, height) or head(self._state)
        return (found and found.chain_id) or None

    def next_prev_randao(self) -> bytes:
        latest = head(self._state)
        return (latest and latest.prev_randao) or ZERO_HASH

    def forks(self) -> Schedule:
        """Return the recorded forks; from the next height on, the scheduled ones."""
        latest = head(self._state)
        recorded = schedule(self._state)
        try:
            return extended(recorded, self.rules.scheduled, latest.height + 1 if latest else 1)
        except ValueError as error:
            # Another host produced the block at which the fork should have begun.
            log.warning("NODERPC_EVM_FORKS is ignored: %s", error)
            self.rules = replace(self.rules, scheduled=())
            return recorded

    def calls_recorded_since(self) -> int | None:
        return calls_recorded_since(self._state)

    @property
    def fork(self) -> ForkedChain | None:
        return self._fork

    def _read(self, digest: bytes) -> bytes | None:
        found = self._state.get(digest)
        return self._fork.get(digest) if found is None and self._fork else found

    def record(self, digest: bytes) -> bytes | None:
        return self._node_store.record(digest)

    def run(self, job: Job[T], client: str = "") -> T:
        return self._calls.run(job, self._limits.call_s, client)

    def execute(self, job: Job[T]) -> T:
        """Run a job of block production, and return its result."""
        return self._blocks.run(job, self._limits.block_s)

    def start(self, *, calls: bool, blocks: bool) -> None:
        if calls:
            self._calls.start()
        if blocks:
            self._blocks.start()

    def close(self) -> None:
        """Stop the executor processes, and close the connections to a forked chain."""
        self._calls.close()
        self._blocks.close()
        if self._fork is not None:
            self._fork.close()
