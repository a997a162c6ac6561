"""``ChainStore``: a backend whose chain is in a database that several processes share."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any

from ... import jsoncodec
from ...domain.block import Block, Commit, Evidence, Header
from ...domain.genesis import ConsensusParams, Genesis, GenesisSource
from ...domain.validator import ValidatorSet
from ...errors import InvalidBlock, NotSupported, StoreError, ValueNotAllowed
from ...protocol.comet.chain_state import ChainState
from ..base.application import (
    Application,
    ApplicationAccess,
    AppState,
    BlockLimits,
    Changes,
    InitChain,
)
from ..base.backend import ChainBackend
from ..base.capabilities import Capability, Mempool, MempoolLimits
from ..base.evidence import EvidencePool
from ..base.filters import Filters
from ..base.location import Identity, Location
from ..base.new_blocks import BlockWithoutResults, CommittedBlock, OlderBlock
from ..base.verify import Scope, verify_chain
from . import blocks as blocks_table
from . import chain, evidence, hits, ledger, lookups, mempool, prune, values
from . import lease as leases
from .backfill import BULK, GENTLE
from .block_writes import prepare
from .blocks import Range
from .capabilities import HITS, SQLAppState, SQLEvidencePool, SQLFilters, SQLHits
from .connection import Connection, Engine
from .handles import ProcessHandles, StoreHandles
from .lease import Lease, LeaseState
from .mempool import SQLMempool
from .reads import SQLReads

# Hint in errors if a block does not follow the stored ones.
_CURE = "stored blocks are unchanged: add blocks of this chain, or use another store for these"

# Minimum pause, in seconds, between two steps of a long write, so that other writers get the
# lock.
_YIELD_S = 0.005
# Pause, in seconds, between long transactions: SQLite's writers poll every 100 ms after a
# while, and give up after five seconds.
_BULK_YIELD_S = 0.15
# A backfill in bulk pauses at least each time that it has written for so many seconds.
_BULK_S = 2.0


class _NoApplication(ApplicationAccess):
    refusal = "this backend has no application; pass one as its application"


_NO_APPLICATION = _NoApplication()


class ChainStore(ChainBackend):
    """A chain in a database: blocks, results, state, index and mempool.

    A subclass for a database passes its ``engine``, and ``new_handles``, a function that
    creates the connections of a process. ``application`` is a function that creates the
    application of an embedded chain from its committed state.
    """

    reads: SQLReads

    def __init__(
        self,
        location: Location,
        engine: Engine,
        new_handles: Callable[[], ProcessHandles],
        application: Callable[[AppState], Application] | None,
        limits: MempoolLimits | None,
    ) -> None:
        self.location = location
        """File or URL of the store, as given by the user."""
        self._open = StoreHandles(location, new_handles)
        self._limits = limits or MempoolLimits()
        super().__init__(SQLReads(self._open, engine))
        self.app_state = SQLAppState(self._open, engine)
        """Committed state of the application."""
        self.abci = application(self.app_state) if application else None
        """Application of an embedded chain, which checks pending transactions; ``None``
        otherwise."""
        self._hits = SQLHits(self._open)
        self._filters = None if location.read_only else SQLFilters(self._open)
        # Create both now, as two threads that make the first calls could create two of each.
        self._made = self.mempool, self.evidence
        self._paused_at = time.monotonic()

    @property
    def read_only(self) -> bool:
        """True if the store can't be written to."""
        return self.location.read_only

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
        return SQLMempool(self._open, self._app, self._limits)

    @cached_property
    def evidence(self) -> EvidencePool:
        return SQLEvidencePool(self._open, self._app, self.reads)

    @property
    def filters(self) -> Filters:
        return self._filters or super().filters

    @property
    def capabilities(self) -> Mapping[Capability[Any], Any]:
        of_application = {} if self.abci is None else self.abci.capabilities
        return {STORE: self, HITS: self._hits, **of_application}

    # Reads of the store itself.

    def is_made(self) -> bool:
        """Return true if the store exists already; any other first call would create it."""
        return self.location.may_have_chain()

    def has_chain(self) -> bool:
        """Return true after :meth:`init_chain`."""
        return self._open().readers.one("SELECT 1 FROM chain") is not None

    def identity(self) -> Identity | None:
        """Return the chain ID, the application and the dialect of the store; ``None`` without a
        chain."""
        with self._open().readers.snapshot() as at:
            return chain.identity(at)

    def metadata(self, name: str) -> bytes | None:
        """Return the value that :meth:`set_metadata` stored, or ``None``."""
        with self._open().readers.snapshot() as at:
            return values.read_metadata(at, name)

    def all_unchecked(self) -> dict[str, Range]:
        """Return the fields that this chain computes differently from CometBFT; for each one
        the number of such blocks, and their lowest and highest height."""
        with self._open().readers.snapshot() as at:
            return blocks_table.all_unchecked(at)

    def unread_indexes(self) -> tuple[str, ...]:
        """Return the names of indexes that can't be verified, because the feature that
        declares them or its packages are missing."""
        with self._open().readers.snapshot() as at:
            return hits.unreadable_indexes(at)

    def all_unverified(self) -> dict[str, Range]:
        """Return the fields that were not verified when blocks were stored; for each one the
        number of such blocks, and their lowest and highest height."""
        with self._open().readers.snapshot() as at:
            return blocks_table.all_unverified(at)

    def sources(self) -> dict[str, Range]:
        """Return the nodes that blocks were read from; for each one the number of blocks, and
        their lowest and highest height."""
        with self._open().readers.snapshot() as at:
            return blocks_table.sources(at)

    def has_free_space(self) -> bool:
        """Return true if the disk has space for a block, as far as can be determined."""
        return True

    def size_bytes(self) -> int:
        """Return the disk space of the store in bytes, including its write-ahead log if it is
        the store's own."""
        raise NotImplementedError

    def risk_of_loss(self) -> str:
        """Return why a failover to another database server may lose stored blocks; an empty
        string if it can't."""
        return ""

    # Pending transactions and evidence.

    def wait_for_pending(self, timeout: float) -> bool:
        """Wait until transactions or evidence are pending, at most ``timeout`` seconds; return
        true if any are."""
        return self._open().changes.wait_until(self._has_pending, timeout)

    def _has_pending(self) -> bool:
        with self._open().readers.snapshot() as at:
            return mempool.count(at).total > 0 or evidence.has_pending(at)

    def wait_until_stored(self) -> None:
        """Wait until the transactions that this process has received are stored or refused."""
        self._open().unstored_txs.wait()

    def reap(self, limits: BlockLimits) -> tuple[bytes, ...]:
        """Return pending transactions that fit a block, oldest first."""
        with self._open().readers.snapshot() as at:
            return mempool.reap(at, limits)

    def drop_pending(self, txs: Sequence[bytes]) -> None:
        """Remove pending transactions, so that they may be sent again."""
        self._open().mempool_writer.run(lambda at: mempool.drop(at, txs))

    def reap_evidence(self, max_bytes: int) -> tuple[Evidence, ...]:
        """Return pending evidence that fits a block, earliest offences first."""
        with self._open().readers.snapshot() as at:
            return evidence.reap(at, max_bytes)

    # Writing.

    def init_chain(self, genesis: Genesis, state: InitChain) -> None:
        """Store the genesis in an empty store; storing an equal genesis again changes
        nothing."""
        name = self.abci.name if self.abci else ""
        self._open().writer.run(lambda at: chain.init_chain(at, genesis, state, name))

    def init_at(
        self,
        chain_id: str,
        initial_height: int,
        header: Header,
        commit: Commit,
        validators: tuple[ValidatorSet, ValidatorSet, ValidatorSet],
        params: ConsensusParams,
    ) -> None:
        """Begin an empty store above a trusted block, without a genesis; calling it again with
        equal values changes nothing.

        ``commit`` contains the signatures for the block of ``header``, which are checked.
        ``validators`` are the sets of its height and of the two following heights, ``params``
        the parameters of the following height. The first appended block must follow it. The
        trusted block itself and older ones can be added by :meth:`backfill`. Raise
        :exc:`~flask_noderpc.errors.InvalidBlock` if the parts do not match.
        """
        trusted = header, commit, validators, params
        self._open().writer.run(
            lambda at: chain.init_at(at, chain_id, initial_height, *trusted)
        )

    def set_genesis(self, genesis: Genesis) -> None:
        """Store the genesis document of a chain that began at a trusted block."""
        self._open().writer.run(lambda at: chain.set_genesis(at, genesis))

    def set_dialect(self, dialect: str) -> None:
        """Store the dialect of the nodes that the chain is copied from."""
        self._open().writer.run(
            lambda at: at.execute("UPDATE chain SET dialect = ?", (dialect,))
        )

    def set_metadata(self, name: str, value: bytes) -> None:
        """Store a named value beside the chain for other processes."""
        self._open().writer.run(lambda at: values.write_metadata(at, name, value))

    def set_genesis_chunks(self, source: GenesisSource, chunks: Sequence[bytes]) -> None:
        """Store the genesis document's chunks as a node sent them; nothing proves them."""
        for number, chunk in enumerate(chunks):
            self.set_metadata(values.chunk_name(number), chunk)
        # Write this last, because it marks the chunks as complete.
        self.set_metadata(values.GENESIS, jsoncodec.encode(source))

    def append_block(self, *blocks: CommittedBlock, lease: Lease | None = None) -> None:
        """Store blocks that follow the head, either all of them or none.

        Raise :exc:`~flask_noderpc.errors.InvalidBlock` for a block that does not follow its
        parent or does not match its own hashes, and with a lease
        :exc:`~flask_noderpc.errors.LeaseLost` if another producer has taken over.
        """
        files, prepared = self._open(), prepare(blocks)

        def work(at: Connection) -> ChainState:
            if lease is not None:
                leases.fence(at, lease)
            head = files.ledger.append(at, prepared)
            ledger.remove_from_mempool(at, prepared, self._limits.cache_size)
            evidence.remove_settled(at, [item.block for item in blocks])
            if any(item.results.consensus_param_updates for item in blocks):
                mempool.drop_unfit(at)
            at.engine.announce(at)
            return head

        with self._adding(item.block for item in blocks):
            files.ledger.set_head(files.writer.run(work))
        files.changes.notify()

    def append_without_results(self, item: BlockWithoutResults, lease: Lease) -> None:
        """Store the next block without results, which :meth:`backfill` may add later.

        The caller must have checked its validators and parameters against the next header.
        Raise the same errors as :meth:`append_block`.
        """
        files, (prepared,) = self._open(), prepare([item])

        def work(at: Connection) -> ChainState:
            leases.fence(at, lease)
            head = files.ledger.append_without_results(at, prepared)
            ledger.remove_from_mempool(at, [prepared], self._limits.cache_size)
            evidence.remove_settled(at, [item.block])
            at.engine.announce(at)
            return head

        with self._adding([item.block]):
            files.ledger.set_head(files.writer.run(work))
        files.changes.notify()

    def replace_head(self, item: CommittedBlock) -> None:
        """Replace results and commit of the latest block, whose stored results were refuted,
        and count it for ``reads.refuted_since``. Raise
        :exc:`~flask_noderpc.errors.InvalidBlock` if ``item`` is another block."""
        files, (prepared,) = self._open(), prepare([item])

        def work(at: Connection) -> None:
            files.ledger.replace_head(at, prepared)
            ledger.remove_from_mempool(at, [prepared], self._limits.cache_size)
            at.engine.announce(at)

        with self._adding([item.block]):
            files.writer.run(work)
        files.changes.notify()

    def backfill(self, *blocks: OlderBlock, in_bulk: bool = False) -> None:
        """Store blocks below the lowest one, highest first, in several short transactions, or
        ``in_bulk`` in long ones, for which other writers have to wait.

        Blocks that are already stored are left unchanged. Raise
        :exc:`~flask_noderpc.errors.InvalidBlock` for a block that does not match the one above
        it; the blocks before it are stored by then.
        """
        files, prepared = self._open(), prepare(blocks)
        pace = BULK if in_bulk else GENTLE
        while prepared:
            left = prepared
            with self._adding(item.block for item, *_ in left):
                added = files.writer.run(lambda at: files.ledger.backfill(at, left, pace))  # noqa: B023
            prepared = prepared[added:]
            files.changes.notify()
            if in_bulk and time.monotonic() > self._paused_at + _BULK_S:
                time.sleep(_BULK_YIELD_S)
                self._paused_at = time.monotonic()

    @contextmanager
    def _adding(self, blocks: Iterable[Block]) -> Iterator[None]:
        """Add the store's name to errors, and the height of the first block that was not
        added."""
        try:
            yield
        except InvalidBlock as error:
            raise InvalidBlock(
                f"{self.location.display_name}: {error.text}", _CURE
            ) from error.__cause__
        except StoreError as error:
            first = [f"; block {block.header.height} was not added" for block in blocks][:1]
            reason = error.reason + "".join(first)
            raise StoreError(reason, self.location.display_name) from error.__cause__

    def rewind(self, height: int, changes: Changes, lease: Lease) -> None:
        """Remove the blocks above a height; ``changes`` revert their writes to the
        application's state. Raise :exc:`~flask_noderpc.errors.LeaseLost`."""
        files = self._open()

        def work(at: Connection) -> None:
            leases.fence(at, lease)
            prune.rewind(at, height, changes)
            at.engine.announce(at)

        files.writer.run(work)
        files.changes.notify()

    def head(self) -> ChainState:
        """Return the chain's state; raise ``StoreError`` before :meth:`init_chain`."""
        files = self._open()
        return files.writer.run(files.ledger.head)

    def acquire_lease(self, owner: str, seconds: float) -> Lease | None:
        """Take and return the lease if it is free, expired or already owned by ``owner``;
        otherwise return ``None``."""
        return self._open().writer.run(lambda at: leases.acquire(at, owner, seconds))

    def renew_lease(self, lease: Lease, seconds: float) -> bool:
        """Extend the lease by ``seconds``; return false if it was lost."""
        return self._open().writer.run(lambda at: leases.renew(at, lease, seconds))

    def release_lease(self, lease: Lease, last_error: str = "") -> None:
        """Release the lease; ``last_error`` is the reason why no block could be produced."""
        self._open().writer.run(lambda at: leases.release(at, lease, last_error))

    def lease_state(self) -> LeaseState:
        """Return the owner, expiry and last error of the lease."""
        row = self._open().readers.one("SELECT owner, expires, last_error FROM lease")
        return LeaseState(*row) if row else LeaseState()

    # Pruning, copies and verification.

    def prune(
        self,
        retain: int,
        progress: Callable[[int], None] | None = None,
        *,
        in_bulk: bool = False,
    ) -> int:
        """Prune all blocks except the latest ``retain``; return the number pruned.

        Pruning uses many short transactions, between which other writers can write, or
        ``in_bulk`` transactions of about a second. ``progress`` is called with the number of
        blocks that each one pruned.
        """
        self._check_retain(retain)
        base, pruned = self.reads.latest_height() - retain + 1, 0
        while True:
            began = time.monotonic()
            few = self.prune_some(base, in_bulk=in_bulk)
            if not few:
                return pruned
            pruned += few
            if progress is not None:
                progress(few)
            # Pause, because other writers may have to poll for the lock.
            time.sleep(_BULK_YIELD_S if in_bulk else max(_YIELD_S, time.monotonic() - began))

    def _check_retain(self, retain: int) -> None:
        minimum = self.abci.needs_blocks if self.abci else 1
        if retain < minimum:
            raise ValueNotAllowed(
                f"retain: expected at least {minimum} blocks, as the chain needs, got {retain}"
            )

    def backup(
        self,
        target: str | os.PathLike[str],
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """Copy the store to a new file while it is in use.

        ``progress`` is called with the number of remaining pages and the total number.
        """
        raise NotSupported("this store can't be copied to a file")

    def compact(self, progress: Callable[[int, int], None] | None = None) -> tuple[int, int]:
        """Make the store as small as possible; return its size in bytes before and after.

        No other process may have it open. ``progress`` is called with the number of bytes
        copied and the total number.
        """
        raise NotSupported("this store can't be compacted")

    def migrate(self, progress: Callable[[int], None] | None = None) -> int:
        """Migrate a store of an earlier version; return the number of copied blocks.

        No other process may have it open. An interrupted migration continues with the next
        call. ``progress`` is called with the number of remaining blocks.
        """
        raise NotSupported("this store has no earlier versions")

    def prune_some(self, base: int, *, in_bulk: bool = False) -> int:
        """Remove a few of the oldest blocks below a height, never the latest block; return the
        number removed.

        The work is bounded, so that other writers wait only briefly, or ``in_bulk`` for about a
        second.
        """
        while True:
            removed = self._open().writer.run(
                lambda at: prune.prune_some(at, base, in_bulk=in_bulk)
            )
            if removed is not None:
                return removed
            # A large block was only partly removed; pause, because other writers may have to
            # poll for the lock.
            time.sleep(_YIELD_S)

    def verify(
        self, progress: Callable[[int], None] | None = None, scope: Scope | None = None
    ) -> int:
        """Check the file, the hashes and signatures of blocks, and the index; return the number
        of blocks checked.

        Raise :exc:`~flask_noderpc.errors.InvalidBlock` or ``StoreError``.
        """
        self.check_file()
        checked = self.verify_blocks(progress, scope)
        self.verify_state()
        return checked

    def check_file(self) -> None:
        """Check the structure of the store's files; the default does nothing."""

    def verify_blocks(
        self, progress: Callable[[int], None] | None = None, scope: Scope | None = None
    ) -> int:
        """Check the hashes, signatures and index entries of blocks, by default of all; return
        their number."""

        def check_lookups(height: int) -> None:
            with self._open().readers.snapshot() as at:
                lookups.check_block(at, height)
            if progress is not None:
                progress(height)

        return verify_chain(self.reads, check_lookups, scope or Scope())

    def verify_state(self) -> None:
        """Check what belongs to no single block: the application's state, the mempool, and the
        counts of the index."""
        if self.abci is not None:
            # Use one snapshot: a block that is committed meanwhile would change the state.
            with self.reads.read_view():
                self.abci.verify_state(self.reads)
        with self._open().readers.snapshot() as at:
            lookups.check_counts(at)
            lookups.check_waiting(at)
            values.check_metadata(at)
        self._check_state()

    def _check_state(self) -> None:
        files = self._open()
        last = files.read(partial(values.check_app_state, after=None))
        while last is not None:
            last = files.read(partial(values.check_app_state, after=last))

    def close(self) -> None:
        if self.abci is not None:
            self.abci.close()
        super().close()


STORE: Capability[ChainStore] = Capability("the backend has no store")
"""Store of a backend."""
