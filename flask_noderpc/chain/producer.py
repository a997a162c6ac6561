"""Block producer of an embedded chain, which stores each block while it owns the lease."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import replace

from .. import block_log
from ..backends.base.application import Application, BlockLimits
from ..backends.base.new_blocks import CommittedBlock
from ..backends.sql.store import ChainStore
from ..concurrency import next_turn
from ..domain.block import Block, BlockID, Evidence
from ..domain.time import SECOND, to_text
from ..errors import LeaseLost, NotReady, StoreError
from ..protocol.comet import hashes
from ..protocol.comet.chain_state import ChainState, evidence_bytes, max_data_bytes
from ..signals import block_committed, emit
from . import proposal
from .batch_state import BatchState
from .clock import Clock
from .lease import OwnedLease
from .proposal import replay
from .signer import Signer

log = logging.getLogger("flask_noderpc.producer")


# If a block takes more seconds than this, the producer counts as hung and loses the lease.
_MAX_BLOCK_S = 60.0

_ALL = BlockLimits(-1, -1)

# Number of empty blocks that are stored together: subscribers get all their events at once,
# into a buffer of 200 events. After 20 blocks, other greenlets get a turn.
_EMPTY_TOGETHER, _EMPTY_BEFORE_TURN = 50, 20
# Seconds between two groups of empty blocks, for subscribers to read the events.
_EMPTY_PAUSE_S = 0.01

# Number of transactions that a recheck reads from the mempool at once.
_RECHECK_BATCH = 20


class Producer:
    """Produces a block with each call of :meth:`produce`; may be used by any thread."""

    def __init__(  # noqa: PLR0913  # the last three are keywords
        self,
        store: ChainStore,
        application: Application,
        signer: Signer,
        clock: Clock,
        lease_s: float,
        *,
        sender: object,
        genesis_time: int = 0,
        uses_clock_time: bool = False,
        retain: int | None = None,
        batch_state: BatchState | None = None,
    ) -> None:
        """Create a producer that signs with ``signer`` and holds the lease for ``lease_s``
        seconds.

        ``sender`` is the sender of the signal ``block_committed``. No block is produced before
        ``genesis_time``. With ``uses_clock_time``, a block has the clock's time, but at least
        a second after the last block's time; otherwise it has the median time of the votes for
        the last block. ``retain`` is the number of latest blocks that pruning leaves; with
        ``None`` the application decides. ``batch_state`` is the application's state that
        includes blocks not stored yet, to store several blocks together.
        """
        self._batch_state = batch_state
        self._sender = sender
        self._genesis_time = genesis_time
        self._uses_clock_time = uses_clock_time
        self._retain = retain
        # Retain height that the application's last Commit returned (ABCI).
        self._retain_height: int | None = None
        self.next_time: int | None = None
        """Time of the next block, in nanoseconds; ``None`` for the default."""
        self.step: int | None = None
        """Seconds between the times of two blocks; ``None`` to use the clock."""
        self.is_frozen = False
        """True if blocks are empty and transactions stay pending."""
        self._store = store
        self._app = application
        self._signer = signer
        self._clock = clock
        self._lease = OwnedLease(store, lease_s)
        # Height up to which the application has executed the stored blocks; -1 if unknown.
        self._synced_height = -1
        # One thread at a time produces a block or changes the lease.
        self._lock = threading.Lock()
        self._block_started_at: float | None = None
        self._log = block_log.BlockLog()

    def reason_not_begun(self) -> str:
        """Return the reason why the first block is not due yet, or an empty string if it is
        due."""
        # Wait for the genesis time, as CometBFT does (node.go). Read the clock at each call,
        # because it may be changed.
        left = self._genesis_time - self._clock.now()
        if left <= 0 or self._store.reads.latest_height():
            return ""
        return (
            f"the chain begins at its genesis_time {to_text(self._genesis_time)}, in"
            f" {-(-left // SECOND)} seconds"
        )

    @property
    def owner(self) -> str:
        """Name of the lease's owner, which is stored with the lease."""
        return self._lease.owner

    def produce(self, evidence: Sequence[Evidence] = ()) -> int:
        """Produce one block now and return its height.

        Raise :exc:`~flask_noderpc.errors.LeaseLost` if another process owns the lease,
        :exc:`~flask_noderpc.errors.NotReady` before the genesis time, and
        :exc:`~flask_noderpc.errors.ChainHalted` if the keys can't commit a block.
        """
        with self._lock:
            self._lease.acquire()
            if reason := self.reason_not_begun():
                raise NotReady(reason)
            began = self._block_started_at = time.monotonic()
            try:
                committed = self._produce(evidence)
            except LeaseLost:
                self._lease.lease = None
                raise
            finally:
                self._block_started_at = None
        height = committed.block.header.height
        took = (time.monotonic() - began) * 1000
        emit(block_committed, self._sender, height=height)
        self._prune(height)
        if block_log.is_enabled():
            gas = sum(result.gas_used for result in committed.results.tx_results)
            txs = len(committed.block.txs)
            self._log.add(height, height, {"txs": txs, "gas": gas, "milliseconds": took})
        return height

    def produce_many(self, count: int, step: int | None = None) -> int:
        """Produce ``count`` blocks and return the last height.

        The first block has the current time, each following one is ``step`` seconds later.
        Empty blocks are stored together if the keys are development keys. Raise the errors of
        :meth:`produce`.
        """
        height, left = self.produce(), count - 1
        while left:
            if heights := self._produce_empty(min(left, _EMPTY_TOGETHER), step):
                height, left = heights[-1], left - len(heights)
                if left:
                    time.sleep(_EMPTY_PAUSE_S)
                continue
            if step:
                self.next_time = (self._store.head().time // SECOND + step) * SECOND
            height, left = self.produce(), left - 1
        return height

    def _produce_empty(self, count: int, step: int | None) -> range:
        """Produce ``count`` empty blocks, store them together and return their heights; return
        an empty range if blocks must be produced one by one."""
        if not (
            self._batch_state
            and self._uses_clock_time
            and self._app.makes_empty_blocks_together
        ):
            return range(0)
        with self._lock:
            lease = self._lease.acquire()
            head = self._store.head()
            self._sync_application(head)
            if head.is_genesis or self._reap(_ALL) or self._evidence(head, ()):
                return range(0)
            began = self._block_started_at = time.monotonic()
            try:
                with self._batch_state.pending():
                    blocks = self._empty_blocks(head, count, step, self._batch_state)
                self._store.append_block(*blocks, lease=lease)
            except LeaseLost:
                self._lease.lease = None
                raise
            finally:
                self._block_started_at = None
            heights = range(head.height + 1, head.height + count + 1)
            for height in heights:
                self._retain_height = self._app.commit(height)
            self._synced_height = heights[-1]
        took = (time.monotonic() - began) * 1000
        for height in heights:
            emit(block_committed, self._sender, height=height)
            self._prune(height)
        self._log.add(heights[0], heights[-1], {"txs": 0, "gas": 0, "milliseconds": took})
        return heights

    def _empty_blocks(
        self, head: ChainState, count: int, step: int | None, state: BatchState
    ) -> list[CommittedBlock]:
        """Return ``count`` empty blocks that follow the head.

        Their signatures are not written to the record: after a crash before the blocks are
        stored, the record would be ahead of the store.
        """
        limits, version = _block_limits(head, ()), self._app.info().app_version
        keys, blocks = self._signer.plain_keys(), list[CommittedBlock]()
        head = self._with_block_time(head, step)
        for number in range(1, count + 1):
            if number % _EMPTY_BEFORE_TURN == 0:
                next_turn()
            txs = self._app.prepare_proposal((), limits)
            round_number, proposer = proposal.first_signable_round(head.validators, keys)
            block = proposal.next_block(head, txs, proposer, version)
            block_id, _ = hashes.block_id(block)
            execution = self._app.finalize_block(
                proposal.request(block, block_id.hash, head.validators, head.next_validators)
            )
            state.add(execution.changes)
            time, is_last = block.header.time, number == count
            commit = proposal.precommits(
                head,
                block,
                block_id,
                round_number,
                keys,
                # Vote at the time that the next block should have.
                self._clock.now() if is_last else self._time_after(time, step),
            )
            results = proposal.results(block.header.height, execution)
            head = head.next_state(block_id, time, commit, results)
            blocks.append(CommittedBlock(block, commit, results, execution.changes))
        return blocks

    def _prune(self, height: int) -> None:
        """Prune a few old blocks, after a block of this height was stored.

        Errors are only logged, as the new block is already committed.
        """
        # In ABCI, a retain height of 0 means that the application needs all blocks.
        retain_heights = [self._retain_height] if self._retain_height else []
        if self._retain:
            retain_heights.append(height - self._retain + 1)
        try:
            if retain_heights and self._store.reads.base_height() < min(retain_heights):
                self._store.prune_some(min(retain_heights))
        except Exception:
            log.exception("block %d is stored, but old blocks could not be pruned", height)

    def _produce(self, evidence: Sequence[Evidence]) -> CommittedBlock:
        # Let other greenlets run between the steps: each takes some 10 ms for a large block.
        next_turn()
        head = self._store.head()
        self._sync_application(head)
        if self._uses_clock_time and not head.is_genesis:
            head = self._with_block_time(head)
        evidence = self._evidence(head, evidence)
        limits = _block_limits(head, evidence)
        reaped = self._reap(_ALL if self._app.selects_txs else limits)
        next_turn()
        txs = self._app.prepare_proposal(reaped, limits)
        next_turn()
        block, block_id, round_number = self._propose(head, txs, evidence)
        proposal.check_size(txs, limits.max_bytes)
        next_turn()
        execution = self._app.finalize_block(
            proposal.request(block, block_id.hash, head.validators, head.next_validators)
        )
        next_turn()
        commit = proposal.precommits(
            head, block, block_id, round_number, self._signer.keys, self._clock.now()
        )
        height = block.header.height
        committed = CommittedBlock(
            block,
            commit,
            proposal.results(height, execution),
            execution.changes,
            consumed=proposal.consumed_txs(reaped, txs),
        )
        self._store.append_block(committed, lease=self._lease.lease)
        self._retain_height = self._app.commit(height)
        self._synced_height = height
        if self._app.rechecks:
            self._recheck()
        return committed

    def _propose(
        self, head: ChainState, txs: Sequence[bytes], evidence: Sequence[Evidence]
    ) -> tuple[Block, BlockID, int]:
        """Return the next block to propose, its ID, and the round in which our keys may sign
        it.

        If a process ended after it had signed this height and before it stored the block, the
        same block gets the same signatures, and a different block needs a later round.
        """
        records = self._signer.records()
        first = max((record.next_round(head.height + 1) for record in records), default=0)
        version = self._app.info().app_version
        while True:
            round_number, proposer = proposal.first_signable_round(
                head.validators, self._signer.keys, first
            )
            block = proposal.next_block(head, txs, proposer, version, evidence)
            block_id, _ = hashes.block_id(block)
            vote = proposal.precommit(block, block_id, round_number)
            if all(record.allows(vote, head.chain_id) for record in records):
                return block, block_id, round_number
            first = round_number + 1

    def _reap(self, limits: BlockLimits) -> Sequence[bytes]:
        return () if self.is_frozen else self._store.reap(limits)

    def has_includable_txs(self) -> bool:
        """Return true if the next block would include a pending transaction or pending
        evidence."""
        if not self._app.selects_txs:
            return True
        with self._lock:
            head = self._store.head()
            self._sync_application(head)
            evidence = self._evidence(head, ())
            limits = _block_limits(head, evidence)
            reaped = self._store.reap(_ALL)
            next_turn()
            return bool(evidence or self._app.prepare_proposal(reaped, limits))

    def _with_block_time(self, head: ChainState, step: int | None = None) -> ChainState:
        time, self.next_time = self.next_time, None
        if time is None:
            time = self._time_after(head.time, step)
        keys = self._signer.plain_keys()
        return replace(head, commit=proposal.commit_at_time(head, keys, time))

    def _time_after(self, time: int, step: int | None) -> int:
        """Return the time of the block after a block with this time."""
        step = step or self.step
        earliest = (time // SECOND + (step or 1)) * SECOND
        return earliest if step else max(self._clock.now(), earliest)

    def acquire_lease(self) -> None:
        """Acquire the lease; raise :exc:`~flask_noderpc.errors.LeaseLost` if another process
        owns it."""
        with self._lock:
            self._lease.acquire()

    def acquire_or_renew_lease(self) -> bool:
        """Acquire or renew the lease; return true if this process owns it.

        Raise :exc:`~flask_noderpc.errors.LeaseLost` once if another process acquired the lease.
        """
        with self._lock:
            return self._lease.acquire_or_renew()

    def renew_lease(self) -> None:
        """Renew the lease while a slow block is produced, but only for a minute."""
        started_at = self._block_started_at
        if started_at is not None and time.monotonic() - started_at < _MAX_BLOCK_S:
            self._lease.renew()

    def release_lease(self, last_error: str) -> None:
        """Release the lease after the current block."""
        with self._lock:
            self._lease.release(last_error)

    def check_development(self, action: str) -> None:
        """Raise :exc:`~flask_noderpc.errors.KeyProtected` unless our keys may sign a height
        twice; ``action`` is what needs that, for the error text."""
        self._signer.check_development(action)

    def rewind(self, height: int) -> None:
        """Remove the blocks above a height; below the first one, all blocks.

        Raise the errors of :meth:`produce`, and :exc:`~flask_noderpc.errors.KeyProtected` for
        keys that must not sign a height twice.
        """
        self.check_development("a chain that goes back")
        with self._lock:
            lease = self._lease.acquire()
            height = max(height, self._store.reads.initial_height() - 1)
            is_genesis = height < self._store.reads.initial_height()
            changes = self._app.undo_changes(0 if is_genesis else height)
            # Lower the record of signatures first: if it were above the head after a crash,
            # blocks would seem lost at the next start.
            self._signer.lower(height)
            self._store.rewind(height, changes, lease)
            self._synced_height = -1
            # Forget the next block's time, which was set for a block after the removed ones.
            self.next_time = None
            self._recheck()

    def _evidence(self, head: ChainState, given: Sequence[Evidence]) -> tuple[Evidence, ...]:
        """Return the ``given`` evidence, and as much pending evidence as fits into the
        block."""
        max_bytes = head.params.evidence.max_bytes - sum(map(evidence_bytes, given))
        known = set(map(hashes.evidence_hash_of, given))
        pending = self._store.reap_evidence(max_bytes)
        return (
            *given,
            *(piece for piece in pending if hashes.evidence_hash_of(piece) not in known),
        )

    def _sync_application(self, head: ChainState) -> None:
        # Replay blocks that another process has produced meanwhile, or that the application
        # failed to commit.
        if self._synced_height != head.height:
            replay(self._store.reads, self._app)
            self._check_state(head)
            self._synced_height = head.height

    def _check_state(self, head: ChainState) -> None:
        """Raise :exc:`~flask_noderpc.errors.StoreError` if the application's app hash differs
        from the chain's, as if another application had written the store."""
        app_hash = self._app.info().last_block_app_hash
        if not head.is_genesis and app_hash and app_hash != head.app_hash:
            raise StoreError(
                f"the application's state differs from the state after block {head.height}; set"
                " the NODERPC_APPLICATION with which the chain began, or restore a backup"
            )

    def _recheck(self) -> None:
        """Drop pending transactions that are no longer valid.

        Errors are only logged, because the block is already committed.
        """
        cursor = 0
        try:
            self._app.begin_recheck()
            while pending := self._store.mempool.pending_after(cursor, _RECHECK_BATCH):
                cursor = pending[-1][0]
                rejected = [tx for _, tx in pending if self._app.recheck_tx(tx).code != 0]
                if rejected:
                    self._store.drop_pending(rejected)
        except Exception:
            log.exception(
                "the block is stored, but pending transactions could not be rechecked"
            )


def _block_limits(head: ChainState, evidence: Sequence[Evidence]) -> BlockLimits:
    """Return the limits for a block's transactions if it contains this evidence."""
    limits = head.params.block
    size = max_data_bytes(limits, len(head.validators.validators), evidence)
    return BlockLimits(size, limits.max_gas)
