"""Makes the blocks of an embedded chain, each under the fenced lease."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import replace

from ..backends.base.application import Application, BlockLimits
from ..backends.base.store import ChainStore, CommittedBlock
from ..domain.block import Evidence
from ..domain.time import SECOND
from ..errors import LeaseLost, StoreError
from ..protocol.comet import hashes
from ..protocol.comet.blocksize import evidence_bytes, max_data_bytes
from ..protocol.comet.chain_state import ChainState
from ..protocol.comet.keys import PrivateKey
from ..signals import block_committed, emit
from . import proposal
from .clock import Clock
from .producer_lease import ProducerLease
from .replay import replay

log = logging.getLogger("flask_noderpc.producer")

# How long a block may take before its producer counts as hung.
_MAX_BLOCK_S = 60.0

_ALL = BlockLimits(-1, -1)

# How many waiting transactions are looked at in one go.
_RECHECK_SLICE = 20


class Producer:
    """Makes a block with each :meth:`produce`, whichever thread asks."""

    def __init__(
        self,
        store: ChainStore,
        application: Application,
        keys: Sequence[PrivateKey],
        clock: Clock,
        lease_s: float,
        *,
        timely: bool = False,
        retain: int | None = None,
    ) -> None:
        """With ``timely`` a block has the time at which it is made, a second after the last
        at least, and not that of the votes for the last. ``retain`` is how many of the latest
        blocks are kept, at least; all, unless the application needs less."""
        self._timely = timely
        self._retain = retain
        # The lowest block that the application may need, where it said so.
        self._needed: int | None = None
        self.next_time: int | None = None
        """The time of the next block, where it is to be this one."""
        self.step: int | None = None
        """Seconds from one block to the next, where the clock is not to say."""
        self._store = store
        self._app = application
        self._keys = {key.address: key for key in keys}
        self._clock = clock
        self._producer_lease = ProducerLease(store, lease_s)
        # Whether the last block took nothing of what waited, and what that was.
        self._synced_height = -1
        # One at a time makes a block or touches the lease, by hand or from the thread.
        self._lock = threading.Lock()
        self._block_started_at: float | None = None

    @property
    def owner(self) -> str:
        """Its name on the lease."""
        return self._producer_lease.owner

    def produce(self, evidence: Sequence[Evidence] = ()) -> int:
        """Make one block now; its height.

        Raise :exc:`~flask_noderpc.errors.LeaseLost` when another producer is at work,
        and :exc:`~flask_noderpc.errors.ChainHalted` when our keys are too weak.
        """
        with self._lock:
            self._producer_lease.acquire()
            self._block_started_at = time.monotonic()
            try:
                height = self._produce(evidence)
            except LeaseLost:
                self._producer_lease.lease = None
                raise
            finally:
                self._block_started_at = None
        emit(block_committed, self._store, height=height)
        self._prune(height)
        return height

    def _prune(self, height: int) -> None:
        """Forget a few blocks that nobody needs; this one stands, whatever happens."""
        # ABCI: an application that names no height, or 0, has no opinion.
        lowest = [self._needed] if self._needed else []
        if self._retain:
            lowest.append(height - self._retain + 1)
        try:
            if lowest and self._store.base_height() < min(lowest):
                self._store.prune_some(min(lowest))
        except Exception:
            log.exception("the block is made; old ones could not be removed")

    def _produce(self, evidence: Sequence[Evidence]) -> int:
        head = self._store.head()
        self._sync_application(head)
        if self._timely and not head.is_genesis:
            head = self._with_block_time(head)
        round_number, proposer = proposal.first_signable_round(head.validators, self._keys)
        evidence = self._evidence(head, evidence)
        room = _room(head, evidence)
        reaped = self._store.reap(_ALL if self._app.selects_txs else room)
        txs = self._app.prepare_proposal(reaped, room)
        block = proposal.next_block(head, txs, proposer, self._app.info().app_version, evidence)
        block_id, _ = hashes.block_id(block)
        proposal.check_size(txs, room.max_bytes)
        execution = self._app.finalize_block(
            proposal.request(block, block_id.hash, head.validators, head.next_validators)
        )
        commit = proposal.precommits(
            head, block, block_id, round_number, self._keys, self._clock.now()
        )
        height = block.header.height
        self._store.append_block(
            CommittedBlock(
                block,
                commit,
                proposal.results(height, execution),
                execution.changes,
                consumed=proposal.consumed_txs(reaped, txs),
            ),
            lease=self._producer_lease.lease,
        )
        self._needed = self._app.commit(height)
        self._synced_height = height
        if self._app.rechecks:
            self._recheck()
        return height

    def has_includable_txs(self) -> bool:
        """Whether the next block would have any of what waits."""
        if not self._app.selects_txs:
            return True
        with self._lock:
            head = self._store.head()
            self._sync_application(head)
            evidence = self._evidence(head, ())
            room = _room(head, evidence)
            return bool(evidence or self._app.prepare_proposal(self._store.reap(_ALL), room))

    def _with_block_time(self, head: ChainState) -> ChainState:
        time, self.next_time = self.next_time, None
        if time is None:
            soonest = (head.time // SECOND + (self.step or 1)) * SECOND
            time = soonest if self.step else max(self._clock.now(), soonest)
        return replace(head, commit=proposal.commit_at_time(head, self._keys, time))

    def acquire_lease(self) -> None:
        """Be the one that makes blocks; raise :exc:`~flask_noderpc.errors.LeaseLost`."""
        with self._lock:
            self._producer_lease.acquire()

    def acquire_or_renew_lease(self) -> bool:
        """Whether this one makes blocks; raise :exc:`~flask_noderpc.errors.LeaseLost` once
        where it no longer does."""
        with self._lock:
            return self._producer_lease.acquire_or_renew()

    def renew_lease(self) -> None:
        """Renew the lease beside a block that takes long, though not beside one that hangs."""
        since = self._block_started_at
        if since is not None and time.monotonic() - since < _MAX_BLOCK_S:
            self._producer_lease.renew()

    def release_lease(self, complaint: str) -> None:
        """Finish the block at hand, and let another process make the next."""
        with self._lock:
            self._producer_lease.release(complaint)

    def rewind(self, height: int) -> None:
        """Take back the blocks above a height; raise as :meth:`produce` does."""
        with self._lock:
            lease = self._producer_lease.acquire()
            self._store.rewind(height, self._app.undo_changes(height), lease)
            self._synced_height = -1
            # The block that it was for is none of this past's.
            self.next_time = None
            self._recheck()

    def _evidence(self, head: ChainState, given: Sequence[Evidence]) -> tuple[Evidence, ...]:
        """What was given by hand, and what waits and fits beside it."""
        room = head.params.evidence.max_bytes - sum(map(evidence_bytes, given))
        known = set(map(hashes.evidence_hash_of, given))
        waiting = self._store.reap_evidence(room)
        return (
            *given,
            *(piece for piece in waiting if hashes.evidence_hash_of(piece) not in known),
        )

    def _sync_application(self, head: ChainState) -> None:
        # Another process made blocks meanwhile, or the application failed to keep one.
        if self._synced_height != head.height:
            replay(self._store, self._app)
            self._check_state(head)
            self._synced_height = head.height

    def _check_state(self, head: ChainState) -> None:
        """Raise :exc:`~flask_noderpc.errors.StoreError` where the application has another
        state than the chain, as one has that was given the store of another."""
        own = self._app.info().last_block_app_hash
        if not head.is_genesis and own and own != head.app_hash:
            raise StoreError(
                f"the application's state is not that of block {head.height}: was the chain"
                " made with another NODERPC_APPLICATION?"
            )

    def _recheck(self) -> None:
        """Drop what the application no longer wants; the block stands, whatever happens."""
        cursor = 0
        try:
            while waiting := self._store.pending_after(cursor, _RECHECK_SLICE):
                cursor = waiting[-1][0]
                refused = [tx for _, tx in waiting if self._app.recheck_tx(tx).code != 0]
                if refused:
                    self._store.drop_pending(refused)
        except Exception:
            log.exception("the block is made; waiting transactions could not be checked again")


def _room(head: ChainState, evidence: Sequence[Evidence]) -> BlockLimits:
    """What a block has room for beside the evidence."""
    limits = head.params.block
    size = max_data_bytes(limits, len(head.validators.validators), evidence)
    return BlockLimits(size, limits.max_gas)
