"""Pure functions that build a block (proposer, header and votes), and a function that replays
stored blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from ..backends.base.application import Application, BlockExecution, BlockRequest
from ..backends.base.reads import ChainReads
from ..domain.abci import BlockResults
from ..domain.block import (
    ABSENT,
    Block,
    BlockID,
    Commit,
    CommitSig,
    Evidence,
    Header,
    Version,
    Vote,
    VoteType,
)
from ..domain.time import MILLISECOND, ZERO_TIME
from ..domain.validator import ValidatorSet
from ..errors import ChainHalted, InvalidBlock, StoreError
from ..protocol.comet import hashes, validators
from ..protocol.comet.chain_state import ChainState, tx_bytes


class VoteSigner(Protocol):
    """A validator key that can sign votes."""

    def sign_vote(self, vote: Vote, chain_id: str) -> CommitSig:
        """Return the signature of a precommit; an earlier signature of the same vote may be
        returned, with its own time."""


Keys = Mapping[bytes, VoteSigner]
"""Validator keys by address."""


def consumed_txs(reaped: Sequence[bytes], proposed: Sequence[bytes]) -> tuple[bytes, ...]:
    """Return the reaped transactions to remove from the mempool although the block does not
    contain them all.

    If the application added transactions, these replace all reaped ones. If it only left some
    out, these stay in the mempool for a later block.
    """
    return tuple(reaped) if Counter(proposed) - Counter(reaped) else ()


def check_size(txs: Sequence[bytes], max_bytes: int) -> None:
    """Raise :exc:`~flask_noderpc.errors.InvalidBlock` if a proposal is too large."""
    size = sum(map(tx_bytes, txs))
    if size > max_bytes:
        raise InvalidBlock(
            f"prepare_proposal: expected at most {max_bytes} bytes of transactions, got {size}"
        )


def check_power(members: ValidatorSet, keys: Container[bytes]) -> None:
    """Raise :exc:`~flask_noderpc.errors.ChainHalted` unless the keys have more than two thirds
    of the voting power, which a commit needs."""
    if not members.validators:
        raise ChainHalted("the chain has no validators: its genesis must name some")
    power = sum(v.voting_power for v in members.validators if v.address in keys)
    if power * 3 <= members.total_power * 2:
        raise ChainHalted(
            f"expected keys with more than two thirds of the voting power, got {power} of"
            f" {members.total_power}: put the other validators' priv_validator_key*.json into"
            " the config folder of this home"
        )


def first_signable_round(
    members: ValidatorSet, keys: Container[bytes], first: int = 0
) -> tuple[int, bytes]:
    """Return the first round whose proposer is in ``keys``, and the proposer's address.

    Rounds before ``first`` are skipped. Raise the error of :func:`check_power`.
    """
    check_power(members, keys)
    members, round_number = validators.at_round(members, first), first
    while members.proposer not in keys:
        members, round_number = validators.at_round(members, 1), round_number + 1
    return round_number, members.proposer


def next_block(
    head: ChainState,
    txs: Sequence[bytes],
    proposer: bytes,
    app_version: int,
    evidence: Sequence[Evidence] = (),
) -> Block:
    """Return the block that follows ``head``."""
    header = Header(
        version=Version(app=app_version),
        chain_id=head.chain_id,
        height=head.height + 1,
        time=head.next_time(head.commit),
        last_block_id=head.block_id,
        last_commit_hash=hashes.commit_hash(head.commit),
        data_hash=hashes.data_hash(txs),
        validators_hash=hashes.validators_hash(head.validators),
        next_validators_hash=hashes.validators_hash(head.next_validators),
        consensus_hash=hashes.consensus_hash(head.params),
        app_hash=head.app_hash,
        last_results_hash=head.results_hash,
        evidence_hash=hashes.evidence_hash(evidence),
        proposer_address=proposer,
    )
    return Block(header, tuple(txs), tuple(evidence), head.commit)


def precommit(block: Block, block_id: BlockID, round_number: int) -> Vote:
    """Return the precommit for a block, without validator and time."""
    height = block.header.height
    return Vote(VoteType.PRECOMMIT, height, round_number, block_id, ZERO_TIME, b"", 0)


def precommits(
    head: ChainState, block: Block, block_id: BlockID, round_number: int, keys: Keys, now: int
) -> Commit:
    """Return a block's commit, signed with these keys; votes of other validators are
    absent."""
    header = block.header
    # As in CometBFT, a vote is at least one millisecond later than its block.
    time = max(now, header.time + MILLISECOND)
    signatures = []
    for index, validator in enumerate(head.validators.validators):
        key = keys.get(validator.address)
        if key is None:
            signatures.append(ABSENT)
            continue
        vote = precommit(block, block_id, round_number)
        vote = replace(
            vote, timestamp=time, validator_address=validator.address, validator_index=index
        )
        signatures.append(key.sign_vote(vote, header.chain_id))
    return Commit(header.height, round_number, block_id, tuple(signatures))


def commit_at_time(head: ChainState, keys: Keys, now: int) -> Commit:
    """Return the last commit, signed again with these keys at another time.

    The next block's time is the median time of these votes.
    """
    signatures = [
        keys[validator.address].sign_vote(
            Vote(
                VoteType.PRECOMMIT,
                head.height,
                head.commit.round,
                head.block_id,
                now,
                validator.address,
                index,
            ),
            head.chain_id,
        )
        if validator.address in keys
        else signature
        for index, (validator, signature) in enumerate(
            zip(head.last_validators.validators, head.commit.signatures, strict=True)
        )
    ]
    return replace(head.commit, signatures=tuple(signatures))


def request(
    block: Block, block_hash: bytes, members: ValidatorSet, next_members: ValidatorSet
) -> BlockRequest:
    """Return the ABCI request to execute a block."""
    header = block.header
    return BlockRequest(
        height=header.height,
        time=header.time,
        txs=block.txs,
        evidence=block.evidence,
        proposer_address=header.proposer_address,
        hash=block_hash,
        last_commit=block.last_commit,
        validators=members,
        next_validators=next_members,
    )


def results(height: int, execution: BlockExecution) -> BlockResults:
    """Convert the results of a block's execution to those that are stored."""
    return BlockResults(
        height,
        execution.tx_results,
        execution.begin_events,
        execution.end_events,
        execution.validator_updates,
        execution.consensus_param_updates,
        execution.app_hash,
    )


def replay(reads: ChainReads, application: Application) -> None:
    """Execute the stored blocks above the application's last height.

    Raise :exc:`~flask_noderpc.errors.StoreError` if the app hash differs from the stored app
    hash, or if the application is ahead of the chain.
    """
    executed, latest = application.info().last_block_height, reads.latest_height()
    if executed > latest:
        raise StoreError(
            f"the application is at height {executed}, which is above the store's height"
            f" {latest}; restore a store that has these blocks"
        )
    base = reads.base_height()
    if executed + 1 < base and base > reads.initial_height():
        # CometBFT: state/errors.go, ErrAppBlockHeightTooLow.
        raise StoreError(
            f"app block height ({executed}) is too far below block store base ({base})"
        )
    first = max(executed + 1, base)
    for height in range(first, latest + 1) if latest else ():
        block_id, block = reads.block(height)
        members, next_members = reads.validators(height), reads.validators(height + 1)
        execution = application.finalize_block(
            request(block, block_id.hash, members, next_members)
        )
        if execution.app_hash != reads.results(height).app_hash:
            raise StoreError(
                f"the application's app hash at height {height} differs from the stored one;"
                " set the NODERPC_APPLICATION with which the chain began"
            )
        application.commit(height)
