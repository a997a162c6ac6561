"""``SQLBackend``: a store and backend in a database that several processes share."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any

from ...domain.block import Block, Commit, Evidence, Header
from ...domain.genesis import ConsensusParams, Genesis
from ...domain.validator import ValidatorSet
from ...errors import InvalidBlock, NotSupported, StoreError
from ...protocol.comet.chain_state import ChainState
from ..base.application import (
    Application,
    ApplicationAccess,
    AppState,
    BlockLimits,
    Changes,
    InitChain,
    Waiting,
)
from ..base.capabilities import Capability, Mempool, MempoolLimits
from ..base.evidence import EvidencePool
from ..base.filters import Filters
from ..base.location import Location
from ..base.store import (
    BlockWithoutResults,
    CommittedBlock,
    Lease,
    LeaseState,
    OlderBlock,
)
from . import app_state, chain, evidence, ledger, lookups, mempool, metadata, prune
from . import lease as leases
from .capabilities import HITS, SQLEvidencePool, SQLFilters, SQLHits
from .connection import Connection
from .prepared import prepare
from .reads import SQLReads
from .tx_pool import SQLMempool

# Of a block that does not fit those that are stored.
_CURE = (
    "what is stored stays: add the blocks of its own chain, or begin another store for these"
)

# Between two steps of a large block.
_YIELD_S = 0.005


class _NoApplication(ApplicationAccess):
    refusal = "this backend has no application; give it one"


_NO_APPLICATION = _NoApplication()


class SQLBackend(SQLReads):
    """A chain in a database: blocks, results, state, index and mempool."""

    def __init__(
        self,
        location: Location,
        application: Callable[[AppState], Application] | None,
        limits: MempoolLimits | None,
    ) -> None:
        super().__init__(location)
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
        return SQLMempool(self._open, self._app, self._limits)

    @cached_property
    def evidence(self) -> EvidencePool:
        return SQLEvidencePool(self._open, self._app, self)

    @property
    def capabilities(self) -> Mapping[Capability[Any], Any]:
        of_application = {} if self.abci is None else self.abci.capabilities
        return {HITS: self._hits, **of_application}

    @cached_property
    def _hits(self) -> SQLHits:
        return SQLHits(self._open)

    @property
    def filters(self) -> Filters:
        if self.read_only:
            return super().filters
        return SQLFilters(self._open(), self.filter_clock)

    # Events.

    def wait_for_height(self, after: int, timeout: float) -> int:
        latest = after

        def is_higher() -> bool:
            nonlocal latest
            latest = self.latest_height()
            return latest > after

        self._open().changes.wait_until(is_higher, timeout)
        return latest

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
        self._open().mempool_writer.run(lambda at: mempool.drop(at, txs))

    def reap_evidence(self, max_bytes: int) -> tuple[Evidence, ...]:
        with self._open().readers.snapshot() as at:
            return evidence.reap(at, max_bytes)

    # Writing.

    def init_chain(self, genesis: Genesis, state: InitChain) -> None:
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
        trusted = header, commit, validators, params
        self._open().writer.run(
            lambda at: chain.init_at(at, chain_id, initial_height, *trusted)
        )

    def set_genesis(self, genesis: Genesis) -> None:
        self._open().writer.run(lambda at: chain.set_genesis(at, genesis))

    def set_dialect(self, dialect: str) -> None:
        self._open().writer.run(
            lambda at: at.execute("UPDATE chain SET dialect = ?", (dialect,))
        )

    def set_metadata(self, name: str, value: bytes) -> None:
        self._open().writer.run(lambda at: metadata.write(at, name, value))

    def append_block(self, *blocks: CommittedBlock, lease: Lease | None = None) -> None:
        files, prepared = self._open(), prepare(blocks)

        def work(at: Connection) -> ChainState:
            if lease is not None:
                leases.fence(at, lease)
            head = files.ledger.append(at, prepared)
            ledger.forget(at, prepared, self._limits.cache_size)
            evidence.settle(at, [item.block for item in blocks])
            if any(item.results.consensus_param_updates for item in blocks):
                mempool.drop_unfit(at)
            at.engine.announce(at)
            return head

        with self._adding(item.block for item in blocks):
            files.ledger.committed(files.writer.run(work))
        files.changes.notify()

    def append_without_results(self, item: BlockWithoutResults, lease: Lease) -> None:
        files, (prepared,) = self._open(), prepare([item])

        def work(at: Connection) -> ChainState:
            leases.fence(at, lease)
            head = files.ledger.append_without_results(at, prepared)
            ledger.forget(at, [prepared], self._limits.cache_size)
            evidence.settle(at, [item.block])
            at.engine.announce(at)
            return head

        with self._adding([item.block]):
            files.ledger.committed(files.writer.run(work))
        files.changes.notify()

    def replace_head(self, item: CommittedBlock) -> None:
        files, (prepared,) = self._open(), prepare([item])

        def work(at: Connection) -> None:
            files.ledger.replace_head(at, prepared)
            ledger.forget(at, [prepared], self._limits.cache_size)
            at.engine.announce(at)

        with self._adding([item.block]):
            files.writer.run(work)
        files.changes.notify()

    def backfill(self, *blocks: OlderBlock) -> None:
        files, prepared = self._open(), prepare(blocks)
        while prepared:
            left = prepared
            with self._adding(item.block for item, *_ in left):
                added = files.writer.run(lambda at: files.ledger.backfill(at, left))  # noqa: B023
            prepared = prepared[added:]
            files.changes.notify()

    @contextmanager
    def _adding(self, blocks: Iterable[Block]) -> Iterator[None]:
        """Name the file in errors, and the first of the blocks that are not added."""
        try:
            yield
        except InvalidBlock as error:
            raise InvalidBlock(
                f"{self._location.shown}: {error.text}", _CURE
            ) from error.__cause__
        except StoreError as error:
            first = [f"; block {block.header.height} was not added" for block in blocks][:1]
            reason = error.reason + "".join(first)
            raise StoreError(reason, self._location.shown) from error.__cause__

    def rewind(self, height: int, changes: Changes, lease: Lease) -> None:
        files = self._open()

        def work(at: Connection) -> None:
            leases.fence(at, lease)
            prune.rewind(at, height, changes)
            at.engine.announce(at)

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

    def waiting(self, cursor: int = 0, limit: int = 1000) -> Waiting:
        """Transactions that wait for a block."""
        files = self._open()
        # First, so that none is missed that is stored meanwhile.
        incoming = files.incoming.txs()
        with files.readers.snapshot() as at:
            stored = mempool.after(at, cursor, limit)
            return Waiting(stored, incoming, mempool.count(at).total)

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
        while True:
            removed = self._open().writer.run(lambda at: prune.prune_some(at, base))
            if removed is not None:
                return removed
            # A large block; those who wait for the lock may have to poll it.
            time.sleep(_YIELD_S)

    def verify(self, progress: Callable[[int], None] | None = None, first: int = 0) -> int:
        def check_lookups(height: int) -> None:
            with self._open().readers.snapshot() as at:
                lookups.check_block(at, height)
            if progress is not None:
                progress(height)

        checked = super().verify(check_lookups, first)
        with self._open().readers.snapshot() as at:
            lookups.check_counts(at)
            lookups.check_waiting(at)
            metadata.check(at)
        self._check_state()
        return checked

    def _check_state(self) -> None:
        files = self._open()
        last = files.read(partial(app_state.check_some, after=None))
        while last is not None:
            last = files.read(partial(app_state.check_some, after=last))
