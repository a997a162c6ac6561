"""Offences of the validators of a chain whose keys are known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.backends.base.evidence import byzantine_validators
from flask_noderpc.domain.block import (
    ABSENT,
    BlockID,
    Commit,
    DuplicateVoteEvidence,
    LightBlock,
    LightClientAttackEvidence,
    PartSetHeader,
    SignedHeader,
    Vote,
    VoteType,
)
from flask_noderpc.protocol.comet import hashes
from flask_noderpc.protocol.comet.keys import PrivateKey


def signed(chain: ChainBackend, key: PrivateKey, vote: Vote) -> Vote:
    """Return the vote with its signature."""
    sig = key.sign_vote(vote, chain.reads.chain_id())
    return replace(vote, signature=sig.signature)


def double_vote(
    chain: ChainBackend, key: PrivateKey, height: int = 1, marks: bytes = b"\x01\x02"
) -> DuplicateVoteEvidence:
    """Return two prevotes for blocks that don't exist."""
    members, time = chain.reads.validators(height), chain.reads.block_meta(height).header.time
    index, member = members.by_address[key.address]

    def vote_for(mark: int) -> Vote:
        block_id = BlockID(bytes([mark]) * 32, PartSetHeader(1, bytes([mark]) * 32))
        vote = Vote(VoteType.PREVOTE, height, 0, block_id, time, key.address, index)
        return signed(chain, key, vote)

    first, second = map(vote_for, marks)
    return DuplicateVoteEvidence(first, second, members.total_power, member.voting_power, time)


def attack(
    chain: ChainBackend,
    keys: list[PrivateKey],
    height: int,
    common: int,
    commit_round: int = 0,
    **changes: Any,
) -> LightClientAttackEvidence:
    """Return a block that these keys signed, whose header differs from the chain's."""
    trusted = SignedHeader(chain.reads.block_meta(height).header, chain.reads.commit(height))
    header, members = replace(trusted.header, **changes), chain.reads.validators(height)
    block_id = BlockID(hashes.header_hash(header), PartSetHeader(1, b"\x07" * 32))
    by_address = {key.address: key for key in keys}
    signatures = []
    for index, member in enumerate(members.validators):
        vote = Vote(
            VoteType.PRECOMMIT,
            height,
            commit_round,
            block_id,
            header.time,
            member.address,
            index,
        )
        key = by_address[member.address]
        signatures.append(key.sign_vote(vote, chain.reads.chain_id()))
    commit = Commit(height, commit_round, block_id, tuple(signatures))
    assert members.proposer_validator is not None
    found = LightClientAttackEvidence(
        LightBlock(
            SignedHeader(header, commit), members.validators, members.proposer_validator
        ),
        common,
        (),
        chain.reads.validators(common).total_power,
        chain.reads.block_meta(common).header.time,
    )
    blamed = byzantine_validators(found, chain.reads.validators(common), trusted)
    return replace(found, byzantine_validators=blamed)


def forward(
    chain: ChainBackend,
    keys: list[PrivateKey],
    found: LightClientAttackEvidence,
    *,
    height: int,
    time: int,
) -> LightClientAttackEvidence:
    """Return the attack with a conflicting block at a height that the chain has not reached."""
    signed_header, members = found.conflicting_block.signed_header, found.conflicting_block
    header = replace(signed_header.header, height=height, time=time)
    block_id = BlockID(hashes.header_hash(header), PartSetHeader(1, b"\x07" * 32))
    by_address = {key.address: key for key in keys}
    signatures = tuple(
        by_address[member.address].sign_vote(
            Vote(VoteType.PRECOMMIT, height, 0, block_id, time, member.address, index),
            chain.reads.chain_id(),
        )
        for index, member in enumerate(members.validators)
    )
    ahead = SignedHeader(header, Commit(height, 0, block_id, signatures))
    return replace(found, conflicting_block=replace(members, signed_header=ahead))


def with_signatures(
    found: LightClientAttackEvidence, kept: list[bool | None]
) -> LightClientAttackEvidence:
    """Return the attack with some votes absent (false) or forged (None)."""
    block = found.conflicting_block
    commit = block.signed_header.commit
    signatures = tuple(
        (sig if keep else ABSENT) if keep is not None else replace(sig, signature=bytes(64))
        for sig, keep in zip(commit.signatures, kept, strict=True)
    )
    signed_header = replace(block.signed_header, commit=replace(commit, signatures=signatures))
    return replace(found, conflicting_block=replace(block, signed_header=signed_header))
