"""The reference backend: one SQLite file that several processes share."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path

from ...concurrency import NativeThread
from ...domain.abci import BlockResults
from ...domain.block import Block, BlockID, BlockMeta, Commit, Evidence
from ...domain.genesis import ConsensusParams, Genesis
from ...domain.search import FoundHeights, FoundTxs, Page, Search, SearchLimits, TxRecord
from ...domain.validator import ValidatorSet
from ...errors import (
    BlockNotFound,
    HeightNotAvailable,
    InvalidBlock,
    NotSupported,
    ResultNotFound,
    StoreError,
    TxNotFound,
)
from ...protocol.comet.chain_state import ChainState
from ..base.application import (
    Application,
    ApplicationAccess,
    AppState,
    BlockLimits,
    Changes,
    InitChain,
)
from ..base.capabilities import EvmIndex, EvmState, Mempool, MempoolLimits
from ..base.evidence import EvidencePool
from ..base.filters import Filters
from ..base.reads import ChainVersion
from ..base.store import ChainStore, CommittedBlock, Identity, Lease, LeaseState, Location
from . import blocks, evidence, ledger, mempool, prune, state
from . import lease as leases
from . import search as index_search
from .capabilities import SQLiteEvidencePool, SQLiteEvmIndex, SQLiteFilters
from .connection import Store
from .identity import read_identity
from .process_handles import ProcessHandles
from .tx_pool import SQLiteMempool

# The transaction of a block needs some pages at least.
_MIN_FREE_BYTES = 1 << 16


class _NoApplication(ApplicationAccess):
    refusal = "this backend has no application; give SQLiteBackend one"


_NO_APPLICATION = _NoApplication()


class SQLiteBackend(ChainStore):
    """A chain in one SQLite file: blocks, results, state, index and mempool.

    ``path`` is a file name or a ``file:`` URI. The file is opened, and made when it is
    missing, at the first use in each process. ``application`` makes the application of
    an embedded chain from its committed state; without one the backend is fed by
    :meth:`append_block` and takes no transactions. ``poll_s`` is how often those who wait
    look for what other processes wrote. Above ``max_log_bytes`` the log of what was written
    is emptied, as soon as nobody reads from it. Whatever goes wrong with the file is
    a :exc:`~flask_noderpc.errors.StoreError`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        application: Callable[[AppState], Application] | None = None,
        limits: MempoolLimits | None = None,
        max_pages: int | None = None,
        max_log_bytes: int = 64 << 20,
        poll_s: float = 0.05,
    ) -> None:
        self._store = Store(path, max_pages, max_log_bytes)
        self._poll_s = poll_s
        self._opening = threading.Lock()
        self._files: ProcessHandles | None = None
        self._genesis: Genesis | None = None
        self._limits = limits or MempoolLimits()
        self.abci = application(self) if application else None
        """The application of an embedded chain."""

    # Capabilities.

    @property
    def application(self) -> ApplicationAccess:
        return _NO_APPLICATION if self.abci is None else self.abci

    def _app(self) -> Application:
        if self.abci is None:
            raise NotSupported(_NO_APPLICATION.refusal)
        return self.abci

    @cached_property
    def mempool(self) -> Mempool:
        return SQLiteMempool(self._open, self._app, self._limits)

    @cached_property
    def evidence(self) -> EvidencePool:
        return SQLiteEvidencePool(self._open, self._app, self)

    @cached_property
    def evm_index(self) -> EvmIndex:
        return SQLiteEvmIndex(self._open, self)

    @property
    def evm_state(self) -> EvmState:
        return super().evm_state if self.abci is None else self.abci.evm_state

    @property
    def filters(self) -> Filters:
        if self._store.read_only:
            return super().filters
        return SQLiteFilters(self._open(), self.filter_clock)

    # Opening and closing.

    @property
    def path(self) -> str:
        """The file's name or URI, as given."""
        return self._store.path

    @property
    def location(self) -> Location:
        return self._store

    @property
    def read_only(self) -> bool:
        return self._store.read_only

    def has_free_space(self) -> bool:
        return shutil.disk_usage(self._store.folder).free >= _MIN_FREE_BYTES

    def _open(self) -> ProcessHandles:
        files = self._files
        if files is not None and files.process == os.getpid():
            return files
        with self._opening:
            if self._files is None or self._files.process != os.getpid():
                if files is not None and not files.quiet:
                    raise StoreError(
                        "this process was forked while the store was being read; fork before"
                        " the first call, or between calls",
                        self._store.shown,
                    )
                files = ProcessHandles(self._store, self._poll_s)
                # The writer recovers the log of a process that was killed, so that
                # readers, which never wait, find the store ready.
                try:
                    files.writer.open()
                except BaseException:
                    # A store that can't be opened is tried at each call: leave no thread.
                    files.close()
                    raise
                self._files = files
            return self._files

    def close(self) -> None:
        self._genesis = None
        if self.abci is not None:
            self.abci.close()
        files, self._files = self._files, None
        if files is not None and files.process == os.getpid():
            files.close()

    # Blocks.

    def latest_height(self) -> int:
        row = self._open().readers.one("SELECT max(height) FROM blocks")
        return row[0] or 0

    def base_height(self) -> int:
        row = self._open().readers.one("SELECT min(height) FROM blocks")
        return row[0] or 0

    def base_meta(self) -> BlockMeta:
        chain_id = self.genesis().chain_id
        with self._open().readers.snapshot() as at:
            found = blocks.lowest_meta(at, chain_id)
        if found is None:
            raise self._missing(0)
        return found

    def version(self) -> ChainVersion | None:
        return self._open().readers.version()

    def read_view(self) -> AbstractContextManager[ChainVersion | None]:
        return self._open().readers.shared_read_view()

    def _missing(self, height: int) -> HeightNotAvailable:
        return HeightNotAvailable(height, self.base_height(), self.latest_height())

    def block(self, height: int) -> tuple[BlockID, Block]:
        chain_id = self.genesis().chain_id
        with self._open().readers.snapshot() as at:
            found = blocks.block(at, height, chain_id)
        if found is None:
            raise self._missing(height)
        return found

    def block_meta(self, height: int) -> BlockMeta:
        for meta in self.block_metas(height, height):
            return meta
        raise self._missing(height)

    def block_metas(self, low: int, high: int) -> tuple[BlockMeta, ...]:
        chain_id = self.genesis().chain_id
        with self._open().readers.snapshot() as at:
            return blocks.metas(at, low, high, chain_id)

    def hash_at(self, height: int) -> bytes:
        row = self._open().readers.one("SELECT hash FROM blocks WHERE height = ?", height)
        if row is None:
            raise self._missing(height)
        return bytes(row[0])

    def height_of(self, block_hash: bytes) -> int:
        row = self._open().readers.one("SELECT height FROM blocks WHERE hash = ?", block_hash)
        if row is None:
            raise BlockNotFound(block_hash)
        return int(row[0])

    def commit(self, height: int) -> Commit:
        with self._open().readers.snapshot() as at:
            if not blocks.is_there(at, height):
                raise self._missing(height)
            commit = state.commit(at, height)
        if commit is None:
            raise ResultNotFound(f"could not find commit for height #{height}")
        return commit

    def results(self, height: int) -> BlockResults:
        with self._open().readers.snapshot() as at:
            found = blocks.results(at, height)
        if found is None:
            raise self._missing(height)
        return found

    def tx(self, tx_hash: bytes) -> TxRecord:
        with self._open().readers.snapshot() as at:
            found = blocks.tx(at, tx_hash)
        if found is None:
            raise TxNotFound(tx_hash)
        return found

    def latest_txs(self, limit: int) -> tuple[TxRecord, ...]:
        with self._open().readers.snapshot() as at:
            return blocks.latest_txs(at, limit)

    # Searching.

    def search_txs(
        self, search: Search, page: Page, limits: SearchLimits, prove: bool = False
    ) -> FoundTxs:
        files = self._open()
        if search.is_one_height:
            with files.readers.snapshot() as at:
                return index_search.txs(at, search, page, limits, prove)
        return files.search_pool.run(
            lambda at: index_search.txs(at, search, page, limits, prove), limits
        )

    def search_blocks(self, search: Search, page: Page, limits: SearchLimits) -> FoundHeights:
        files = self._open()
        if search.is_one_height:
            with files.readers.snapshot() as at:
                return index_search.heights(at, search, page)
        return files.search_pool.run(lambda at: index_search.heights(at, search, page), limits)

    # State.

    def genesis(self) -> Genesis:
        # A local name: another thread may close the backend, which clears the attribute.
        found = self._genesis
        if found is None:
            with self._open().readers.snapshot() as at:
                found = ledger.stored_genesis(at)
            if found is None:
                raise StoreError("no chain here yet, init_chain comes first", self._store.shown)
            self._genesis = found
        return found

    def has_chain(self) -> bool:
        """Return true after :meth:`init_chain`."""
        return self._open().readers.one("SELECT 1 FROM chain") is not None

    def identity(self) -> Identity | None:
        """Return the chain id and the application of the store."""
        with self._open().readers.snapshot() as at:
            return read_identity(at)

    def validators(self, height: int) -> ValidatorSet:
        with self._open().readers.snapshot() as at:
            found = state.validators(at, height)
        if found is None:
            raise ResultNotFound(f"could not find validator set for height #{height}")
        return found

    def consensus_params(self, height: int) -> ConsensusParams:
        first = self.genesis().initial_height
        # Those of the genesis are retained when the first blocks are pruned.
        known = height == first or max(first, self.base_height()) <= height
        known = known and height <= self._next_height()
        with self._open().readers.snapshot() as at:
            found = state.params(at, height) if known else None
        if found is None:
            raise ResultNotFound(f"could not find consensus params for height #{height}")
        return found

    def _next_height(self) -> int:
        return (self.latest_height() or self.genesis().initial_height - 1) + 1

    # Events.

    def wait_for_height(self, after: int, timeout: float) -> int:
        self._open().changes.wait_until(lambda: self.latest_height() > after, timeout)
        return self.latest_height()

    def wait_for_pending(self, timeout: float) -> bool:
        return self._open().changes.wait_until(self._has_pending, timeout)

    def _has_pending(self) -> bool:
        with self._open().readers.snapshot() as at:
            return mempool.count(at).total > 0 or evidence.waits(at)

    def settle(self) -> None:
        """Wait until what this process was sent is stored, or refused."""
        self._open().incoming.wait()

    def reap(self, limits: BlockLimits) -> tuple[bytes, ...]:
        with self._open().readers.snapshot() as at:
            return mempool.reap(at, limits)

    def drop_pending(self, txs: Sequence[bytes]) -> None:
        self._open().writer.run(lambda at: mempool.drop(at, txs))

    def reap_evidence(self, max_bytes: int) -> tuple[Evidence, ...]:
        with self._open().readers.snapshot() as at:
            return evidence.reap(at, max_bytes)

    def get(self, key: bytes) -> bytes | None:
        """A value of the application's committed state."""
        row = self._open().readers.one("SELECT value FROM app_state WHERE key = ?", key)
        return None if row is None else bytes(row[0])

    # Writing.

    def init_chain(self, genesis: Genesis, state: InitChain) -> None:
        name = self.abci.name if self.abci else ""
        self._open().writer.run(lambda at: ledger.init_chain(at, genesis, state, name))

    def append_block(self, *blocks: CommittedBlock, lease: Lease | None = None) -> None:
        files = self._open()

        def work(at: sqlite3.Connection) -> None:
            if lease is not None:
                leases.fence(at, lease)
            files.ledger.append(at, blocks)
            ledger.forget(at, blocks, self._limits.cache_size)
            evidence.settle(at, [item.block for item in blocks])
            if any(item.results.consensus_param_updates for item in blocks):
                mempool.drop_unfit(at)

        files.writer.run(work)
        files.changes.notify()

    def rewind(self, height: int, changes: Changes, lease: Lease) -> None:
        files = self._open()

        def work(at: sqlite3.Connection) -> None:
            leases.fence(at, lease)
            prune.rewind(at, height, changes)

        files.writer.run(work)
        files.changes.notify()

    def reorgs_since(self, number: int) -> tuple[int, int | None]:
        found = self._open().readers.one(
            "SELECT max(number), min(height) FROM rewinds WHERE number > ?", number
        )
        latest, lowest = found or (None, None)
        return latest or number, lowest

    def app_state(self) -> AppState:
        return self

    def head(self) -> ChainState:
        files = self._open()
        return files.writer.run(files.ledger.head)

    def acquire_lease(self, owner: str, seconds: float) -> Lease | None:
        return self._open().writer.run(lambda at: leases.acquire(at, owner, seconds))

    def renew_lease(self, lease: Lease, seconds: float) -> bool:
        return self._open().writer.run(lambda at: leases.renew(at, lease, seconds))

    def release_lease(self, lease: Lease, last_error: str = "") -> None:
        self._open().writer.run(lambda at: leases.release(at, lease, last_error))

    def lease_state(self) -> LeaseState:
        row = self._open().readers.one("SELECT owner, expires, last_error FROM lease")
        return LeaseState(*row) if row else LeaseState()

    # Keeping.

    def prune_some(self, base: int) -> int:
        return self._open().writer.run(lambda at: prune.prune_some(at, base))

    def backup(
        self,
        target: str | os.PathLike[str],
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """Copy the store to a new file while it is in use.

        ``progress`` is called with the number of remaining pages, and of all.
        """
        if os.path.exists(target):
            raise StoreError("is there already, a backup needs a new file", os.fspath(target))

        self._open()
        thread = NativeThread("noderpc-backup")
        try:
            # Not the writer's thread: blocks are made while a large store is copied.
            thread.run(lambda: self._store.copy_to(Path(target), progress))
        finally:
            thread.stop()

    def verify(self, progress: Callable[[int], None] | None = None) -> int:
        """Check the file and every block's hashes and signatures; return the number of blocks.

        Raise :exc:`~flask_noderpc.errors.InvalidBlock` or ``StoreError``.
        """
        found = self._open().readers.one("PRAGMA integrity_check")
        if found != ("ok",):
            raise InvalidBlock(f"{self._store.shown}: {found[0]}")
        return super().verify(progress)
