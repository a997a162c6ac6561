"""Makes the blocks of an embedded chain: one process at a time, under the fenced lease."""

from __future__ import annotations

import logging
import os
import secrets
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from ..backend.application import Application, Room
from ..backend.base import ChainBackend
from ..backend.store import ChainStore, CommittedBlock, Lease
from ..canonical import hashes
from ..canonical.blocksize import evidence_bytes, max_data_bytes
from ..canonical.head import Head
from ..canonical.keys import PrivateKey
from ..domain.block import Evidence
from ..domain.time import SECOND
from ..errors import BackendError, BlockNotExecuted, LeaseLost, StoreError
from ..signals import block_committed, tell
from . import proposal
from .clock import Clock

_LONGEST_WAIT_S = 1.0

# No longer than whoever sends a transaction would wait for its block.
_SOON_S = 0.1

log = logging.getLogger("flask_noderpc.producer")

# How long a block may take before its producer counts as hung.
_LONGEST_BLOCK_S = 60.0

_ALL = Room(-1, -1)

_BREATH_S = 0.001

# How many waiting transactions are looked at in one go.
_RECHECK_SLICE = 20


@dataclass(frozen=True, slots=True)
class Pace:
    """How often blocks are made, and how long a silent producer keeps its lease."""

    interval_s: float = 1.0
    empty_blocks: bool = False
    proof_blocks: bool = False
    """Whether a new hash of the application's state gets a block that carries it, even an
    empty one."""
    lease_s: float = 3.0
    by_hand: bool = False
    """Whether no block is made but by :meth:`Producer.produce`."""

    @property
    def at_once(self) -> bool:
        """Whether a block is made as soon as a transaction waits."""
        quick = self.interval_s <= _SOON_S
        return quick and not self.by_hand and not self.empty_blocks


class Producer:
    """Produces blocks by hand with :meth:`produce`, or in a thread after :meth:`start`."""

    def __init__(
        self,
        store: ChainStore,
        application: Application,
        keys: Sequence[PrivateKey],
        clock: Clock,
        pace: Pace,
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
        self.pace = pace
        # The lease is looked after this often; a stop need not wait longer either.
        self._patience = min(pace.lease_s / 3, _LONGEST_WAIT_S)
        self.owner = f"{os.getpid()}-{secrets.token_hex(4)}"
        """Its name on the lease."""
        self._lease: Lease | None = None
        self._lease_until = 0.0
        self._last_block_at = 0.0
        # Whether the last block took nothing of what waited, and what that was.
        self._in_step_at = -1
        # One at a time makes a block or touches the lease, by hand or from the thread.
        self._at_work = threading.Lock()
        self.complaint = ""
        """Why the thread makes no block; empty while it does, or none is due."""
        self._failed = False
        self._busy_since: float | None = None
        self._stopping = threading.Event()
        self._repaced = threading.Event()
        self._threads: list[threading.Thread] = []

    @property
    def makes_blocks_at_once(self) -> bool:
        """Whether its thread makes a block as soon as a transaction waits."""
        return bool(self._threads) and self.pace.at_once

    def repace(self, pace: Pace) -> None:
        """Produce at another pace from now on."""
        self.pace = pace
        self._repaced.set()

    def produce(self, evidence: Sequence[Evidence] = ()) -> int:
        """Make one block now; its height.

        Raise :exc:`~flask_noderpc.errors.LeaseLost` when another producer is at work,
        and :exc:`~flask_noderpc.errors.ChainHalted` when our keys are too weak.
        """
        with self._at_work:
            self._lead()
            self._busy_since = time.monotonic()
            try:
                height = self._produce(evidence)
            except LeaseLost:
                self._lease = None
                raise
            finally:
                self._busy_since = None
        tell(block_committed, self._store, height=height)
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
        self._bring_into_step(head)
        if self._timely and not head.is_genesis:
            head = self._retimed(head)
        round_number, proposer = proposal.first_own_round(head.validators, self._keys)
        evidence = self._evidence(head, evidence)
        room = _room(head, evidence)
        reaped = self._store.reap(_ALL if self._app.chooses else room)
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
                taken=proposal.left_behind(reaped, txs),
            ),
            lease=self._lease,
        )
        self._needed = self._app.commit(height)
        self._in_step_at = height
        if self._app.rechecks:
            self._recheck()
        return height

    def _is_chosen(self) -> bool:
        """Whether an application that chooses takes any of what waits into a block."""
        with self._at_work:
            head = self._store.head()
            self._bring_into_step(head)
            evidence = self._evidence(head, ())
            room = _room(head, evidence)
            return bool(evidence or self._app.prepare_proposal(self._store.reap(_ALL), room))

    def _retimed(self, head: Head) -> Head:
        time, self.next_time = self.next_time, None
        if time is None:
            soonest = (head.time // SECOND + (self.step or 1)) * SECOND
            time = soonest if self.step else max(self._clock.now(), soonest)
        return replace(head, commit=proposal.signed_again(head, self._keys, time))

    def lead(self) -> None:
        """Be the one that makes blocks; raise :exc:`~flask_noderpc.errors.LeaseLost`."""
        with self._at_work:
            self._lead()

    def _lead(self) -> Lease:
        if self._lease is None and not self._take_lease():
            raise LeaseLost("another process produces blocks; it holds the lease")
        assert self._lease is not None
        return self._lease

    def rewind(self, height: int) -> None:
        """Take back the blocks above a height; raise as :meth:`produce` does."""
        with self._at_work:
            lease = self._lead()
            self._store.rewind(height, self._app.undone(height), lease)
            self._in_step_at = -1
            # The block that it was for is none of this past's.
            self.next_time = None
            self._recheck()

    def _evidence(self, head: Head, given: Sequence[Evidence]) -> tuple[Evidence, ...]:
        """What was given by hand, and what waits and fits beside it."""
        room = head.params.evidence.max_bytes - sum(map(evidence_bytes, given))
        known = set(map(hashes.piece_hash, given))
        waiting = self._store.reap_evidence(room)
        return (*given, *(piece for piece in waiting if hashes.piece_hash(piece) not in known))

    def _bring_into_step(self, head: Head) -> None:
        # Another process made blocks meanwhile, or the application failed to keep one.
        if self._in_step_at != head.height:
            replay(self._store, self._app)
            self._check_state(head)
            self._in_step_at = head.height

    def _check_state(self, head: Head) -> None:
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

    # The thread.

    def start(self) -> None:
        """Produce at the pace that is set, for as long as the lease is ours."""
        self._stopping.clear()
        self._threads = [
            threading.Thread(target=work, name=f"noderpc-{name}", daemon=True)
            for name, work in (("producer", self._run), ("lease", self._keep_lease))
        ]
        for thread in self._threads:
            thread.start()

    @property
    def is_running(self) -> bool:
        """Whether the thread makes blocks by itself."""
        return bool(self._threads) and not self.pace.by_hand

    def stop(self) -> None:
        """Finish the block at hand, and give the lease back."""
        self._stopping.set()
        self._repaced.set()
        threads, self._threads = self._threads, []
        for thread in threads:
            thread.join()
        with self._at_work:
            self._give_lease_back()

    def _keep_lease(self) -> None:
        """Renew the lease beside a block that takes long, though not beside one that hangs."""
        while not self._stopping.wait(self.pace.lease_s / 3):
            lease, since = self._lease, self._busy_since
            if lease is None or since is None:
                continue
            if time.monotonic() - since < _LONGEST_BLOCK_S:
                with suppress(BackendError):
                    self._store.renew_lease(lease, self.pace.lease_s)

    def _give_lease_back(self) -> None:
        lease, self._lease = self._lease, None
        if lease is None:
            return
        try:
            self._store.release_lease(lease, self.complaint)
        except BackendError as error:
            log.warning("the lease is not given back, it lapses by itself: %s", error)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._turn()
                self.complaint = ""
            except BlockNotExecuted as error:
                # Nobody else knows what not to propose again. The next shows whether that
                # was the fault, even where it is empty.
                self._failed = True
                self._complain(error)
                self._stopping.wait(self._patience)
            except BackendError as error:
                self._complain(error)
                self._step_aside()
            except Exception:
                # The application is foreign code: its fault must not end the chain.
                log.exception("the application failed; the block is tried again")
                self.complaint = "the application failed; the server's log says why"
                self._step_aside()

    def _step_aside(self) -> None:
        """Let another process try, which may have what this one lacks."""
        with self._at_work:
            self._give_lease_back()
        self._stopping.wait(max(self.pace.interval_s, self._patience))

    def _turn(self) -> None:
        """One look at whether a block is due."""
        with self._at_work:
            held = self._hold_lease()
        self._repaced.clear()
        pace = self.pace
        if not held or pace.by_hand:
            self._pause(self._patience)
            return
        early = self._last_block_at + pace.interval_s - time.monotonic()
        if early > 0:
            self._pause(min(early, self._patience))
            return
        due = self._owes_a_block() or self._is_wanted()
        # What came to wait may have come after the pace was changed.
        if due and self.pace is pace:
            self._failed = False
            self._last_block_at = time.monotonic()
            self.produce()
            # Whoever makes one by hand has a turn too, however often blocks are made.
            self._stopping.wait(_BREATH_S)

    def _is_wanted(self) -> bool:
        """Whether something waits that goes into a block; waits for it a while."""
        # It may wait twice, and then the lease is looked after.
        patience = self._patience / 2
        if not self._store.wait_for_pending(patience):
            return False
        seen = self._store.latest_pending()
        if not self._app.chooses or self._is_chosen():
            return True
        # All of it waits for what is not there: an empty block would not help.
        self._store.wait_for_pending_after(seen, patience)
        return False

    def _pause(self, seconds: float) -> None:
        """Wait, unless there is another pace now or an end."""
        if not self._stopping.is_set():
            self._repaced.wait(seconds)

    def _owes_a_block(self) -> bool:
        """Whether a block is due though no transaction waits."""
        if self.pace.empty_blocks or self._failed:
            return True
        if not self.pace.proof_blocks:
            return False
        # CometBFT: consensus/state.go, needProofBlock.
        height = self._store.latest_height()
        if height == 0:
            return True
        written = self._store.block_meta(height).header.app_hash
        return self._store.results(height).app_hash != written

    def _hold_lease(self) -> bool:
        """Whether the lease is ours, taken or renewed when a third of it is gone."""
        if self._lease is None:
            return self._take_lease()
        if time.monotonic() > self._lease_until - self.pace.lease_s * 2 / 3:
            if not self._store.renew_lease(self._lease, self.pace.lease_s):
                self._lease = None
                raise LeaseLost("another process took over; this one waits its turn")
            self._lease_until = time.monotonic() + self.pace.lease_s
        return True

    def _take_lease(self) -> bool:
        self._lease = self._store.acquire_lease(self.owner, self.pace.lease_s)
        self._lease_until = time.monotonic() + self.pace.lease_s
        return self._lease is not None

    def _complain(self, error: BackendError) -> None:
        # Where the store lies is for the log alone.
        complaint = error.reason if isinstance(error, StoreError) else str(error)
        # Said once, not once a turn.
        if complaint != self.complaint:
            log.error("no block is made: %s", error)
        self.complaint = complaint


def _room(head: Head, evidence: Sequence[Evidence]) -> Room:
    """What a block has room for beside the evidence."""
    limits = head.params.block
    size = max_data_bytes(limits, len(head.validators.validators), evidence)
    return Room(size, limits.max_gas)


def replay(store: ChainBackend, application: Application) -> None:
    """Execute the blocks that an application with a store of its own has missed.

    Raise :exc:`~flask_noderpc.errors.StoreError` when it comes to another state than the
    one that was stored, or is ahead of the store.
    """
    done, latest = application.info().last_block_height, store.latest_height()
    if done > latest:
        raise StoreError(f"the application is at height {done}, its store at {latest}")
    base = store.base_height()
    if done + 1 < base and base > store.genesis().initial_height:
        # CometBFT: state/errors.go, ErrAppBlockHeightTooLow.
        raise StoreError(
            f"app block height ({done}) is too far below block store base ({base})"
        )
    first = max(done + 1, base)
    for height in range(first, latest + 1) if latest else ():
        block_id, block = store.block(height)
        members, following = store.validators(height), store.validators(height + 1)
        execution = application.finalize_block(
            proposal.request(block, block_id.hash, members, following)
        )
        if execution.app_hash != store.results(height).app_hash:
            raise StoreError(f"the application comes to another state at height {height}")
        application.commit(height)
