"""Reader of the node's chain as Ethereum blocks, cached, and the limits of its searches."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from functools import cached_property

from ...backends.base.backend import ChainBackend
from ...backends.base.capabilities import FORWARDED_CALLS
from ...concurrency import next_turn
from ...domain.genesis import Genesis
from ...domain.search import SearchLimits
from ...domain.time import SECOND
from ...errors import (
    BlockNotFound,
    GenesisNotAvailable,
    HeightNotAvailable,
    ResultNotFound,
    SearchTooCostly,
)
from ...jsonrpc.context import Context
from ...lru import CacheMemory, LRUCache
from ...settings import Settings
from ..domain.records import ZERO_HASH, Header, Transaction
from ..protocol.blocks import Block, ethereum_block, genesis_block, pending_block
from ..protocol.execution import ethereum_transactions
from ..settings import CHAIN_ID, EthereumSettings
from ..state import EVM_STATE
from .codec.params import ByHash, Height, Tag
from .errors import PrunedHistory
from .node_blocks import NodeBlocks


class SearchBudget:
    """Limits on the time and the rows of a search, shared by all reads of one call."""

    def __init__(self, settings: Settings) -> None:
        self.limits = SearchLimits.within(settings.search_timeout, settings.max_response_bytes)
        """Limits to pass to the backend's own search."""
        self._deadline = time.monotonic() + self.limits.seconds
        self._rows = self.limits.rows

    def spend(self, rows: int) -> None:
        """Count rows that are read; raise :exc:`~flask_noderpc.errors.SearchTooCostly` at the
        limit."""
        if self._rows < self.limits.rows:
            # Under gevent, let other requests run between two reads.
            next_turn()
        self._rows -= rows
        if self._rows < 0:
            raise SearchTooCostly.by_rows(self.limits.rows)
        if time.monotonic() > self._deadline:
            raise SearchTooCostly.by_time(self.limits.seconds)


_MEMO = "evm reader"
_CACHED_BLOCKS = 128
# Blocks with thousands of logs are large, so fewer than 100 of them are cached.
_CACHED_BYTES = 64 << 20
# Pending transactions are cached because recovering their senders is slow.
_CACHED_PENDING = 8192
_CACHED_PENDING_BYTES = 32 << 20
# Approximate memory of Python objects, in addition to the bytes they hold.
_HEADER_BYTES, _TX_BYTES, _LOG_BYTES = 1024, 2048, 512
# Maximum number of pending transactions to read: 5000, but 100 if the mempool has more than 16
# MB, as each may have a megabyte then.
_SMALL_POOL, _MAX_SMALL, _MAX_PENDING = 16 << 20, 5_000, 100


def reader(ctx: Context) -> Reader:
    """Return the reader of a mount."""
    if _MEMO not in ctx.memo:
        # Two threads may both create a reader; setdefault keeps the first.
        ctx.memo.setdefault(_MEMO, Reader(ctx.backend, ctx.memory))
    found: Reader = ctx.memo[_MEMO]
    return found


def chain_id_of(ctx: Context, height: int | None = None) -> int:
    """Return the chain ID of a block's transactions, or without a height the next block's."""
    evm = EVM_STATE.find(ctx.backend)
    found = evm and evm.chain_id(reader(ctx).latest if height is None else height)
    return found or ctx.settings.of(EthereumSettings).evm_chain_id or CHAIN_ID


class Reader:
    """Reader that builds Ethereum blocks from a backend's blocks, and caches them."""

    def __init__(self, backend: ChainBackend, memory: CacheMemory | None = None) -> None:
        self._backend = backend
        memory = memory or CacheMemory()
        self._blocks = LRUCache[bytes, Block](_CACHED_BLOCKS, _CACHED_BYTES, _weight, memory)
        # Ethereum transactions by the bytes of the node transaction that contains them.
        self._decoded = LRUCache[bytes, tuple[Transaction, ...]](
            _CACHED_PENDING, _CACHED_PENDING_BYTES, _weight_decoded, memory
        )
        self._genesis: Block | None = None
        forward = FORWARDED_CALLS.find(backend)
        self._node = None if forward is None else NodeBlocks(forward)

    @property
    def latest(self) -> int:
        """Height of the newest block; 0 is the genesis."""
        return self._backend.reads.latest_height() or self._before_first

    @property
    def _before_first(self) -> int:
        """Number of the block before the chain's first: 0, or the block of the fork."""
        return self._forked.number if self._forked else 0

    @cached_property
    def _forked(self) -> Header | None:
        """Header of the block after which the chain was forked; ``None`` if it was not."""
        evm = EVM_STATE.find(self._backend)
        return evm.fork.block.header if evm and evm.fork else None

    @property
    def first(self) -> int:
        """Height of the chain's first block; the only block before it is block 0."""
        return self._backend.reads.initial_height()

    def genesis(self) -> Block | None:
        """Return block 0, or the one after which the chain was forked, without its
        transactions; ``None`` if the genesis document is unknown."""
        if self._genesis is None:
            # A chain that is backfilled from its newest block may not have its genesis yet.
            with suppress(GenesisNotAvailable, HeightNotAvailable):
                self._genesis = self._made_genesis()
        return self._genesis

    def height(self, number: Height) -> int:
        """Return the height of a tag; the height of ``pending`` is the latest height."""
        match number:
            case int():
                return number
            case Tag.EARLIEST:
                # A node that pruned its first blocks begins at its lowest block.
                base = self._backend.reads.base_height()
                return base if base > self.first or self.genesis() is None else 0
            case _:
                return self.latest

    def block_at(self, height: int) -> Block | None:
        """Return the block at a height; ``None`` if it is missing."""
        if height == self._before_first:
            return self.genesis()
        if height.bit_length() > 63:
            return None
        try:
            # The cache is keyed by hash: a test chain may replace the block at a height.
            found = self._blocks.get(self._backend.reads.hash_at(height))
            return found or self._keep(self._made(height))
        except (HeightNotAvailable, ResultNotFound):
            return None

    def cached(self, block_hash: bytes) -> Block | None:
        """Return a block from the cache, also if the chain no longer has it; or ``None``."""
        return self._blocks.get(block_hash)

    def parent(self, block: Block) -> Block | None:
        """Return the block before a block of the chain, or ``None``."""
        header = block.partial_header
        # Look in the cache by hash first, which needs no query of the store.
        return self._blocks.get(header.parent_hash) or self.block_at(header.number - 1)

    def _keep(self, made: Block) -> Block:
        if self._node is not None:
            header = made.partial_header
            miner = self._node.account(header.miner or b"", header.number)
            if miner is None:
                # Don't cache the block without its miner, so that the next read asks again.
                return made
            made = replace(made, partial_header=replace(header, miner=miner))
        return self._blocks.put(made.partial_header.hash or b"", made)

    def by_hash(self, block_hash: bytes) -> Block | None:
        """Return the block with a hash; ``None`` if it is unknown."""
        genesis = self.genesis()
        if genesis is not None and block_hash == genesis.header.hash:
            return genesis
        try:
            return self.block_at(self._backend.reads.height_of(block_hash))
        except BlockNotFound:
            return None

    def block(self, number_or_hash: Height | ByHash) -> Block | None:
        """Return the block, or ``None``; a pending block is built from the pending
        transactions.

        Raise :exc:`.errors.PrunedHistory` for a pruned block.
        """
        if isinstance(number_or_hash, ByHash):
            return self.by_hash(number_or_hash.hash)
        if number_or_hash is Tag.PENDING:
            return self.pending()
        height = self.height(number_or_hash)
        found = self.block_at(height)
        if found is None and self.first <= height < self._backend.reads.base_height():
            if number_or_hash is Tag.EARLIEST:
                # The block was pruned since its height was read, so read the height again.
                return self.block(number_or_hash)
            raise PrunedHistory
        return found

    def pending(self) -> Block | None:
        """Return the pending block on the latest; ``None`` if the mempool can't be read."""
        latest = self.block_at(self.latest)
        if latest is None:
            # Another node may store a block's results slightly later than the block.
            return None
        evm = EVM_STATE.find(self._backend)
        return pending_block(
            latest.partial_header,
            self.pending_transactions(),
            self._backend.chain_time() // SECOND,
            evm.next_prev_randao() if evm else ZERO_HASH,
        )

    def pending_transactions(self) -> list[Transaction]:
        """Return the pending Ethereum transactions, oldest first."""
        small = self._backend.mempool.pending_count().total_bytes <= _SMALL_POOL
        raws = self._backend.mempool.pending(_MAX_SMALL if small else _MAX_PENDING).txs
        return [tx for raw in raws for tx in self.decode_pending(raw)]

    def decode_pending(self, raw: bytes) -> tuple[Transaction, ...]:
        """Return the Ethereum transactions in a pending node transaction."""
        found = self._decoded.get(raw)
        return self._decoded.put(raw, ethereum_transactions(raw)) if found is None else found

    def _made_genesis(self) -> Block | None:
        if self._forked is not None:
            return Block(self._forked)
        genesis = self._backend.reads.genesis()
        if self._node is not None:
            return self._node_genesis(genesis)
        evm = EVM_STATE.find(self._backend)
        if evm is None:
            return genesis_block(genesis)
        params = self._backend.reads.consensus_params(genesis.initial_height)
        return genesis_block(genesis, params, evm.root(0), evm.initial_base_fee)

    def _node_genesis(self, genesis: Genesis) -> Block | None:
        """Return block 0 of a followed chain, if its node has it."""
        found = self._node.genesis() if self._node else None
        if found is None:
            return None
        params = self._backend.reads.consensus_params(genesis.initial_height)
        return genesis_block(genesis, params, found.root, found.base_fee)

    def _made(self, height: int) -> Block:
        meta, txs = self._backend.reads.block_txs(height)
        return ethereum_block(
            meta.block_id.hash,
            meta.header,
            txs,
            self._backend.reads.results(height),
            self._backend.reads.consensus_params(height),
            self._genesis_hash() if height == self.first else b"",
        )

    def _genesis_hash(self) -> bytes:
        genesis = self.genesis()
        return (genesis.header.hash if genesis else None) or b""


def _weight(block: Block) -> int:
    """Return the approximate bytes of a block in memory."""
    transactions = sum(_TX_BYTES + len(raw) for raw in block.raws)
    reverts = sum(len(receipt.revert_data or b"") for receipt in block.receipts)
    logs = sum(_LOG_BYTES + len(log.data) for log in block.logs)
    return _HEADER_BYTES + transactions + reverts + logs


def _weight_decoded(txs: tuple[Transaction, ...]) -> int:
    """Return the approximate bytes of pending transactions in memory, including their cache
    key."""
    # Each has its raw bytes, the cache key, and its data, or lists of twice the size.
    return _TX_BYTES + sum(_TX_BYTES + 4 * len(tx.raw) for tx in txs)
