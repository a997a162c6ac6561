"""Domain values as the canonical protobuf bytes that are hashed, signed and cut."""

from __future__ import annotations

from ..domain.block import (
    Block,
    BlockID,
    Commit,
    CommitSig,
    Evidence,
    Header,
    PartSetHeader,
    Version,
    Vote,
)
from ..domain.validator import SECP256K1, PublicKey
from .protobuf import blob, delimited, integer, message, sfixed64, string, timestamp


def version(value: Version) -> bytes:
    """Consensus{1 block, 2 app}."""
    return integer(1, value.block) + integer(2, value.app)


def part_set_header(value: PartSetHeader) -> bytes:
    """PartSetHeader{1 total, 2 hash}."""
    return integer(1, value.total) + blob(2, value.hash)


def block_id(value: BlockID) -> bytes:
    """BlockID{1 hash, 2 part_set_header}; the empty one is ``1200``."""
    return blob(1, value.hash) + message(2, part_set_header(value.parts))


def header(value: Header) -> bytes:
    """Header{1..14} with plain field types."""
    return b"".join(
        (
            message(1, version(value.version)),
            string(2, value.chain_id),
            integer(3, value.height),
            message(4, timestamp(value.time)),
            message(5, block_id(value.last_block_id)),
            blob(6, value.last_commit_hash),
            blob(7, value.data_hash),
            blob(8, value.validators_hash),
            blob(9, value.next_validators_hash),
            blob(10, value.consensus_hash),
            blob(11, value.app_hash),
            blob(12, value.last_results_hash),
            blob(13, value.evidence_hash),
            blob(14, value.proposer_address),
        )
    )


def commit_sig(value: CommitSig) -> bytes:
    """CommitSig{1 flag, 2 address, 3 timestamp, 4 signature}."""
    return (
        integer(1, value.block_id_flag)
        + blob(2, value.validator_address)
        + message(3, timestamp(value.timestamp))
        + blob(4, value.signature)
    )


def commit(value: Commit) -> bytes:
    """Commit{1 height, 2 round, 3 block_id, 4* signatures}."""
    return (
        integer(1, value.height)
        + integer(2, value.round)
        + message(3, block_id(value.block_id))
        + b"".join(message(4, commit_sig(sig)) for sig in value.signatures)
    )


def vote(value: Vote) -> bytes:
    """Vote{1..10} as it stands inside evidence."""
    return b"".join(
        (
            integer(1, value.type),
            integer(2, value.height),
            integer(3, value.round),
            message(4, block_id(value.block_id)),
            message(5, timestamp(value.timestamp)),
            blob(6, value.validator_address),
            integer(7, value.validator_index),
            blob(8, value.signature),
            blob(9, value.extension),
            blob(10, value.extension_signature),
        )
    )


def evidence(value: Evidence) -> bytes:
    """DuplicateVoteEvidence{1 vote_a, 2 vote_b, 3 total, 4 power, 5 timestamp}."""
    return (
        message(1, vote(value.vote_a))
        + message(2, vote(value.vote_b))
        + integer(3, value.total_voting_power)
        + integer(4, value.validator_power)
        + message(5, timestamp(value.timestamp))
    )


def block(value: Block) -> bytes:
    """Block{1 header, 2 data, 3 evidence, 4 last_commit}, the bytes cut into parts."""
    # A transaction is a repeated field, so an empty one is written too.
    txs = b"".join(message(1, tx) for tx in value.txs)
    # Evidence{1 duplicate_vote} is the oneof wrapper that hashing leaves out.
    proofs = b"".join(message(1, message(1, evidence(item))) for item in value.evidence)
    return (
        message(1, header(value.header))
        + message(2, txs)
        + message(3, proofs)
        + message(4, commit(value.last_commit))
    )


def public_key(value: PublicKey) -> bytes:
    """PublicKey{1 ed25519 | 2 secp256k1}."""
    return message(2 if value.type == SECP256K1 else 1, value.value)


def canonical_vote(value: Vote, chain_id: str) -> bytes:
    """The bytes a vote's signature covers, behind their length."""
    canonical_id = blob(1, value.block_id.hash) + message(
        2, part_set_header(value.block_id.parts)
    )
    return delimited(
        integer(1, value.type)
        + sfixed64(2, value.height)
        + sfixed64(3, value.round)
        # A vote for nil has no block id at all.
        + (message(4, canonical_id) if value.block_id.hash else b"")
        + message(5, timestamp(value.timestamp))
        + string(6, chain_id)
    )
