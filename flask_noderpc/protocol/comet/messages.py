"""Canonical protobuf encoding of domain values, for hashes, signatures and block parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...domain.block import (
    NO_BLOCK,
    Block,
    BlockID,
    BlockIDFlag,
    Commit,
    CommitSig,
    Evidence,
    Header,
    LightBlock,
    LightClientAttackEvidence,
    PartSetHeader,
    Version,
    Vote,
    VoteType,
)
from ...domain.validator import NO_KEY, PublicKey, Validator
from ..protobuf import blob, delimited, integer, message, sfixed64, string, timestamp
from .key_types import KEY_TYPES, UnsupportedKey


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
    flag, address, signature = value.block_id_flag, value.validator_address, value.signature
    time = timestamp(value.timestamp)
    if len(address) == 20 and len(signature) == 64 and 0 < flag < 0x80:
        # All but a few, and a block has hundreds.
        return b"\x08%c\x12\x14%b\x1a%c%b\x22\x40%b" % (
            flag,
            address,
            len(time),
            time,
            signature,
        )
    return integer(1, flag) + blob(2, address) + message(3, time) + blob(4, signature)


def commit_sigs(value: Commit) -> list[bytes]:
    """Each signature of a commit."""
    return [commit_sig(sig) for sig in value.signatures]


def commit(value: Commit, sigs: Sequence[bytes] | None = None) -> bytes:
    """Commit{1 height, 2 round, 3 block_id, 4* signatures}; ``sigs`` are the signatures
    where they are encoded already."""
    if sigs is None:
        sigs = commit_sigs(value)
    return (
        integer(1, value.height)
        + integer(2, value.round)
        + message(3, block_id(value.block_id))
        + b"".join([message(4, sig) for sig in sigs])
    )


def vote(value: Vote) -> bytes:
    """Vote{1..10} within evidence."""
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


def public_key(value: PublicKey) -> bytes:
    """PublicKey{1 ed25519 | 2 secp256k1 | 3 bls12381 | 4 mldsa65 | 5 secp256k1eth}.

    Raise :exc:`~flask_noderpc.protocol.comet.key_types.UnsupportedKey` for other types, whose
    number is not known.
    """
    if value == NO_KEY:
        return b""
    known = KEY_TYPES.get(value.type)
    if known is None:
        raise UnsupportedKey(f"keys of the type {value.type!r} have no known encoding")
    return message(known.member, value.value)


def validator(value: Validator, *, plain_key: bool = False) -> bytes:
    """Validator{1 address, 2 pub_key, 3 voting_power, 4 proposer_priority}.

    CometBFT 1.0 writes {5 pub_key_bytes, 6 pub_key_type} instead of 2: types/validator.go.
    """
    key = value.pub_key
    return (
        blob(1, value.address)
        + (b"" if plain_key else message(2, public_key(key)))
        + integer(3, value.voting_power)
        + integer(4, value.proposer_priority)
        + (blob(5, key.value) + string(6, key.type) if plain_key else b"")
    )


def light_block(value: LightBlock, *, plain_keys: bool = False) -> bytes:
    """LightBlock{1 signed_header{1 header, 2 commit}, 2 validator_set}."""
    signed = value.signed_header
    # ValidatorSet{1* validators, 2 proposer}; CometBFT leaves 3, the total power, out.
    encoded = (message(1, validator(v, plain_key=plain_keys)) for v in value.validators)
    proposer = validator(value.proposer, plain_key=plain_keys)
    return message(
        1, message(1, header(signed.header)) + message(2, commit(signed.commit))
    ) + message(2, b"".join(encoded) + message(2, proposer))


def evidence(value: Evidence, *, plain_keys: bool = False) -> bytes:
    """DuplicateVoteEvidence{1 vote_a, 2 vote_b, 3 total, 4 power, 5 timestamp}, or
    LightClientAttackEvidence{1 block, 2 common_height, 3* byzantine, 4 total, 5 timestamp}."""
    if isinstance(value, LightClientAttackEvidence):
        blamed = (validator(v, plain_key=plain_keys) for v in value.byzantine_validators)
        return (
            message(1, light_block(value.conflicting_block, plain_keys=plain_keys))
            + integer(2, value.common_height)
            + b"".join(message(3, each) for each in blamed)
            + integer(4, value.total_voting_power)
            + message(5, timestamp(value.timestamp))
        )
    return (
        message(1, vote(value.vote_a))
        + message(2, vote(value.vote_b))
        + integer(3, value.total_voting_power)
        + integer(4, value.validator_power)
        + message(5, timestamp(value.timestamp))
    )


def any_evidence(value: Evidence, *, plain_keys: bool = False) -> bytes:
    """Evidence{1 duplicate_vote | 2 light_client_attack}, the wrapper in a block."""
    member = 2 if isinstance(value, LightClientAttackEvidence) else 1
    return message(member, evidence(value, plain_keys=plain_keys))


def block(value: Block, last_commit: bytes | None = None, *, plain_keys: bool = False) -> bytes:
    """Block{1 header, 2 data, 3 evidence, 4 last_commit}, the bytes split into parts;
    ``last_commit`` is the last commit where it is encoded already."""
    # Elements of a repeated field are written even when empty.
    txs = b"".join([message(1, tx) for tx in value.txs])
    # Evidence hashes are those of the message without this wrapper.
    proofs = b"".join(
        message(1, any_evidence(item, plain_keys=plain_keys)) for item in value.evidence
    )
    return (
        message(1, header(value.header))
        + message(2, txs)
        + message(3, proofs)
        + message(4, commit(value.last_commit) if last_commit is None else last_commit)
    )


def canonical_vote(value: Vote, chain_id: str) -> bytes:
    """Sign bytes of a vote, length-prefixed."""
    return delimited(
        _canonical_step(value.type, value.height, value.round, value.block_id)
        + message(5, timestamp(value.timestamp))
        + string(6, chain_id)
    )


def canonical_precommits(value: Commit, chain_id: str) -> Iterator[bytes]:
    """Sign bytes of each vote of a commit; but for their times they have two forms."""
    step = VoteType.PRECOMMIT, value.height, value.round
    for_block, for_nil = (
        _canonical_step(*step, block_id) for block_id in (value.block_id, NO_BLOCK)
    )
    end = string(6, chain_id)
    for sig in value.signatures:
        begin = for_block if sig.block_id_flag == BlockIDFlag.COMMIT else for_nil
        yield delimited(begin + message(5, timestamp(sig.timestamp)) + end)


def _canonical_step(kind: int, height: int, round_: int, block_id: BlockID) -> bytes:
    canonical_id = blob(1, block_id.hash) + message(2, part_set_header(block_id.parts))
    return (
        integer(1, kind)
        + sfixed64(2, height)
        + sfixed64(3, round_)
        # The block id of a vote for nil is omitted.
        + (message(4, canonical_id) if block_id.hash else b"")
    )
