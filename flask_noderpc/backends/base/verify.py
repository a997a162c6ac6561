"""Verify a chain: every hash and signature, from the lowest to the highest block."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from ...domain.abci import BlockResults
from ...domain.block import NO_BLOCK, NO_COMMIT, BlockMeta, Header
from ...domain.validator import ValidatorSet, ValidatorUpdate
from ...errors import GenesisNotAvailable, InvalidBlock, NotFound, ResultNotFound
from ...protocol.comet import validators
from ...protocol.comet.chain_state import ChainState, check_signatures
from ...protocol.comet.hashes import EMPTY_HASH, block_hashes
from .reads import ChainReads

log = logging.getLogger("flask_noderpc.verify")


@dataclass(frozen=True, slots=True)
class Scope:
    """Blocks to verify, and how many of their signatures."""

    first: int = 0
    last: int | None = None
    """Highest height; ``None`` for the latest block."""
    all_signatures: bool = False
    """True to verify signatures beyond two thirds of the voting power. The next block's header
    has the hash of all of them."""


_WHOLE = Scope()


def verify_chain(
    reads: ChainReads,
    progress: Callable[[int], None] | None = None,
    scope: Scope = _WHOLE,
) -> int:
    """Check blocks; return their number. Raise :exc:`~flask_noderpc.errors.InvalidBlock`.

    Each block must follow its parent and match every hash in its header, and more than two
    thirds of the voting power must have signed it. Validator sets must follow from the
    updates, and each transaction must be found by its hash.
    """
    latest = reads.latest_height()
    low = max(scope.first, reads.base_height())
    high = latest if scope.last is None else min(latest, scope.last)
    height, checked = low, 0
    head = None
    # Reasons why some signatures can't be verified.
    unsupported = set[str]()
    # An empty store has height 0.
    while 0 < height <= high:
        try:
            head = head or _state_before(reads, height)
            # No header has the hash of the latest commit yet.
            head = _check(
                reads, head, height, unsupported, scope.all_signatures or height == latest
            )
        except (InvalidBlock, NotFound, ValueError) as error:
            lowest = reads.base_height()
            if lowest > height:
                # Another process has pruned blocks: continue from the lowest stored block.
                height, head = lowest, None
                continue
            if isinstance(error, InvalidBlock):
                raise
            # A gap or an unreadable value is a defect of the store.
            raise InvalidBlock(f"block {height}: {error}") from error
        if progress is not None:
            progress(height)
        height, checked = height + 1, checked + 1
    for reason in unsupported:
        log.warning("some signatures could not be verified: %s", reason)
    return checked


def _state_before(reads: ChainReads, height: int) -> ChainState:
    """Return the state that the block at ``height`` must follow, built from stored data."""
    block = reads.block(height)[1]
    header = block.header
    initial = reads.initial_height()
    first = height == initial
    if first:
        _check_first_sets(reads, height)
    last_validators = None if first else _parent_set(reads, height)
    unchecked = frozenset[str]()
    if last_validators is None and not first:
        unchecked = frozenset({"last_commit.signatures", "time"})
    return ChainState(
        chain_id=reads.chain_id(),
        initial_height=initial,
        height=height - 1,
        # The parent of the lowest block is not stored: use the values that the block itself
        # has.
        block_id=NO_BLOCK if first else header.last_block_id,
        time=_genesis_time(reads, header) if first else header.time,
        app_hash=header.app_hash,
        results_hash=EMPTY_HASH if first else header.last_results_hash,
        commit=NO_COMMIT if first else block.last_commit,
        last_validators=last_validators or ValidatorSet(),
        validators=reads.validators(height),
        next_validators=reads.validators(height + 1),
        params=reads.consensus_params(height),
        unchecked=unchecked,
    )


def _genesis_time(reads: ChainReads, header: Header) -> int:
    try:
        return reads.genesis().genesis_time
    except GenesisNotAvailable:
        return header.time


def _parent_set(reads: ChainReads, height: int) -> ValidatorSet | None:
    """Return the validator set that signed the parent; ``None`` if the store begins here
    without it."""
    try:
        return reads.validators(height - 1)
    except ResultNotFound:
        return None


def _check_first_sets(reads: ChainReads, height: int) -> None:
    """Check that the priorities of a chain's first two validator sets follow from their voting
    powers."""
    found = reads.validators(height)
    first = validators.genesis_set(
        ValidatorUpdate(v.pub_key, v.voting_power) for v in found.validators
    )
    following = reads.validators(height + 1)
    if _differ(found, first) or _differ(following, validators.rotated(first)):
        raise InvalidBlock(
            f"block {height}: the priorities of the first validators don't follow from their"
            " voting powers"
        )


def _differ(one: ValidatorSet, other: ValidatorSet) -> bool:
    if one.validators != other.validators:
        return True
    # Compare proposers only if both sets have one: a set from a node's route ``validators``
    # has no proposer.
    return bool(one.proposer and other.proposer and one.proposer != other.proposer)


def _check(
    reads: ChainReads,
    head: ChainState,
    height: int,
    unsupported: set[str],
    all_signatures: bool,
) -> ChainState:
    if unchecked := reads.unchecked(height):
        head = replace(head, unchecked=head.unchecked | unchecked)
    stored_id, block = reads.block(height)
    commit, results = reads.commit(height), _results(reads, height)
    hashes = head.check(block, commit, results, block_hashes(block))
    block_id = hashes.block_id
    meta = BlockMeta(block_id, hashes.size, block.header, len(block.txs), block.form)
    if (stored_id, reads.block_meta(height)) != (block_id, meta):
        raise InvalidBlock(
            f"block {height}: the stored ID, size or number of transactions is not the block's"
        )
    if reads.height_of(block_id.hash) != height:
        raise InvalidBlock(f"block {height}: a look-up of its hash finds another height")
    unsupported |= check_signatures(
        head.chain_id, commit, head.validators, all_signatures=all_signatures
    )
    if results is None:
        sets = reads.validators(height + 2), reads.consensus_params(height + 1)
        return head.after_unknown(block_id, block.header.time, commit, *sets)
    for tx, tx_hash in zip(block.txs, hashes.tx_hashes, strict=True):
        _check_tx(reads, height, tx, tx_hash)
    after = head.next_state(block_id, block.header.time, commit, results)
    with suppress(ResultNotFound):
        # Skip heights without priorities, which a backfilled chain may have.
        if _differ(reads.validators(height + 2), after.next_validators):
            raise InvalidBlock(
                f"block {height}: the validators at {height + 2} do not follow from its updates"
            )
    if reads.consensus_params(height + 1) != after.params:
        raise InvalidBlock(
            f"block {height}: the parameters at {height + 1} do not follow from its updates"
        )
    return after


def _results(reads: ChainReads, height: int) -> BlockResults | None:
    try:
        return reads.results(height)
    except ResultNotFound:
        if height >= reads.lowest_results():
            raise
        return None


def _check_tx(reads: ChainReads, height: int, tx: bytes, tx_hash: bytes) -> None:
    try:
        found = reads.tx(tx_hash)
    except NotFound:
        found = None
    if found is None or found.tx != tx:
        raise InvalidBlock(
            f"block {height}: tx {tx_hash.hex().upper()} is not found by its hash"
        )
