"""Making one block: proposer, header, votes. No store, no thread, no clock of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..backends.base.application import BlockExecution, BlockRequest
from ..domain.abci import BlockResults
from ..domain.block import (
    ABSENT,
    Block,
    BlockID,
    Commit,
    Evidence,
    Header,
    Version,
    Vote,
    VoteType,
)
from ..domain.time import MILLISECOND
from ..domain.validator import ValidatorSet
from ..errors import ChainHalted, InvalidBlock
from ..protocol.comet import hashes, validators
from ..protocol.comet.blocksize import tx_bytes
from ..protocol.comet.chain_state import ChainState
from ..protocol.comet.keys import PrivateKey, sign_commit_vote

Keys = Mapping[bytes, PrivateKey]
"""The validator keys at hand, by address."""


def consumed_txs(reaped: Sequence[bytes], proposed: Sequence[bytes]) -> tuple[bytes, ...]:
    """The reaped transactions that need not wait for another block.

    An application that brought in others has put them in the place of those that it left
    out. One that only left some out has deferred them: they wait on.
    """
    return tuple(reaped) if Counter(proposed) - Counter(reaped) else ()


def check_size(txs: Sequence[bytes], room: int) -> None:
    """Raise :exc:`~flask_noderpc.errors.InvalidBlock` for a proposal that fits no block."""
    size = sum(map(tx_bytes, txs))
    if size > room:
        raise InvalidBlock(f"the application proposes {size} bytes, a block takes {room}")


def first_signable_round(members: ValidatorSet, keys: Keys) -> tuple[int, bytes]:
    """The first round whose proposer's key is at hand, and that proposer.

    Raise :exc:`~flask_noderpc.errors.ChainHalted` when the keys hold two thirds of the
    power or less: no round could end in a block.
    """
    if not members.validators:
        raise ChainHalted("the chain has no validators: its genesis must name some")
    own = sum(v.voting_power for v in members.validators if v.address in keys)
    if own * 3 <= members.total_power * 2:
        raise ChainHalted(
            f"the keys of this home hold {own} of {members.total_power} voting power, more than"
            " two thirds are needed: put the other validators' priv_validator_key*.json into"
            " its config folder"
        )
    round_number = 0
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
    """The block that follows ``head``."""
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


def precommits(
    head: ChainState, block: Block, block_id: BlockID, round_number: int, keys: Keys, now: int
) -> Commit:
    """The votes of every key at hand for a block; the others are absent."""
    header = block.header
    # CometBFT: a vote is later than its block, and one millisecond is the least step.
    time = max(now, header.time + MILLISECOND)
    signatures = []
    for index, validator in enumerate(head.validators.validators):
        key = keys.get(validator.address)
        if key is None:
            signatures.append(ABSENT)
            continue
        vote = Vote(
            VoteType.PRECOMMIT,
            header.height,
            round_number,
            block_id,
            time,
            validator.address,
            index,
        )
        signatures.append(sign_commit_vote(vote, header.chain_id, key))
    return Commit(header.height, round_number, block_id, tuple(signatures))


def commit_at_time(head: ChainState, keys: Keys, now: int) -> Commit:
    """The commit of the head with the votes of the keys at hand at another time.

    The time of the next block is theirs.
    """
    signatures = [
        sign_commit_vote(
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
            keys[validator.address],
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
    """The block as the application executes it."""
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
    """What the store keeps of an execution."""
    return BlockResults(
        height,
        execution.tx_results,
        execution.begin_events,
        execution.end_events,
        execution.validator_updates,
        execution.consensus_param_updates,
        execution.app_hash,
    )
