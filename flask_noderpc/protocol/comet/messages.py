"""Canonical protobuf encoding of domain values, for hashes, signatures and block parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ...domain.block import (
    NO_BLOCK,
    Block,
    BlockID,
    BlockIDFlag,
    Commit,
    CommitSig,
    Evidence,
    Header,
    LightClientAttackEvidence,
    PartSetHeader,
    Version,
    Vote,
    VoteType,
)
from ...domain.validator import NO_KEY, PublicKey
from ..protobuf import Messages, blob, delimited, integer, message, sfixed64, string, timestamp
from .key_types import KEY_TYPES, UnsupportedKey


def public_key(value: PublicKey) -> bytes:
    """Encode PublicKey{1 ed25519 | 2 secp256k1 | 3 bls12381 | 4 mldsa65 | 5 secp256k1eth}.

    Raise :exc:`~flask_noderpc.protocol.comet.key_types.UnsupportedKey` for other types, whose
    field number is unknown.
    """
    if value == NO_KEY:
        return b""
    known = KEY_TYPES.get(value.type)
    if known is None:
        raise UnsupportedKey(f"the protobuf encoding of keys of type {value.type!r} is unknown")
    return message(known.member, value.value)


_OWN = {"PublicKey": public_key}
MESSAGES = Messages(
    """
message Consensus { uint64 block = 1; uint64 app = 2; }
message PartSetHeader { uint32 total = 1; bytes hash = 2; }
message BlockID { bytes hash = 1; PartSetHeader! part_set_header(parts) = 2; }
message Header {
  Consensus! version = 1; string chain_id = 2; int64 height = 3; Timestamp! time = 4;
  BlockID! last_block_id = 5; bytes last_commit_hash = 6; bytes data_hash = 7;
  bytes validators_hash = 8; bytes next_validators_hash = 9; bytes consensus_hash = 10;
  bytes app_hash = 11; bytes last_results_hash = 12; bytes evidence_hash = 13;
  bytes proposer_address = 14;
}
message CommitSig {
  BlockIDFlag block_id_flag = 1; bytes validator_address = 2; Timestamp! timestamp = 3;
  bytes signature = 4;
}
message Commit {
  int64 height = 1; int32 round = 2; BlockID! block_id = 3; repeated CommitSig signatures = 4;
}
message Vote {
  SignedMsgType type = 1; int64 height = 2; int32 round = 3; BlockID! block_id = 4;
  Timestamp! timestamp = 5; bytes validator_address = 6; int32 validator_index = 7;
  bytes signature = 8; bytes extension = 9; bytes extension_signature = 10;
}
message Validator {
  bytes address = 1; PublicKey pub_key = 2; int64 voting_power = 3; int64 proposer_priority = 4;
}
message ValidatorUpdate { PublicKey pub_key = 1; int64 power = 2; }
message ValidatorSet { repeated Validator validators = 1; Validator proposer = 2; }
message SignedHeader { Header header = 1; Commit commit = 2; }
message LightBlock { SignedHeader signed_header = 1; ValidatorSet validator_set = 2; }
message DuplicateVoteEvidence {
  Vote vote_a = 1; Vote vote_b = 2; int64 total_voting_power = 3; int64 validator_power = 4;
  Timestamp! timestamp = 5;
}
message LightClientAttackEvidence {
  LightBlock conflicting_block = 1; int64 common_height = 2;
  repeated Validator byzantine_validators = 3; int64 total_voting_power = 4;
  Timestamp! timestamp = 5;
}
message Evidence {
  DuplicateVoteEvidence? duplicate_vote_evidence = 1;
  LightClientAttackEvidence? light_client_attack_evidence = 2;
}
message EvidenceList { repeated Evidence evidence = 1; }
message ProofOp { string type = 1; bytes key = 2; bytes data = 3; }
message ProofOps { repeated ProofOp ops = 1; }
message Proof {
  int64 total = 1; int64 index = 2; bytes leaf_hash = 3; repeated bytes aunts = 4;
}
message ValueOp { bytes key = 1; Proof proof = 2; }
message Data { repeated bytes txs = 1; }
message Block {
  Header! header = 1; Data! data = 2; EvidenceList! evidence = 3; Commit last_commit = 4;
}
""",
    encoders=_OWN,
)
"""Messages of CometBFT 0.34 to 0.40. A ValidatorSet also has field 3, the total power, which
CometBFT omits."""

# CometBFT 1.0: types/validator.go.
MESSAGES_1 = Messages(
    """
message Validator {
  bytes address = 1; int64 voting_power = 3; int64 proposer_priority = 4;
  bytes pub_key_bytes(pub_key.value) = 5; string pub_key_type(pub_key.type) = 6;
}
message ValidatorUpdate {
  int64 power = 2; bytes pub_key_bytes(pub_key.value) = 3;
  string pub_key_type(pub_key.type) = 4;
}
""",
    MESSAGES,
    _OWN,
)
"""Messages of CometBFT 1.0, whose validators contain plain key bytes."""

version: Callable[[Version], bytes] = MESSAGES.encoder("Consensus")
part_set_header: Callable[[PartSetHeader], bytes] = MESSAGES.encoder("PartSetHeader")
block_id: Callable[[BlockID], bytes] = MESSAGES.encoder("BlockID")
header: Callable[[Header], bytes] = MESSAGES.encoder("Header")
vote: Callable[[Vote], bytes] = MESSAGES.encoder("Vote")
_commit_sig: Callable[[CommitSig], bytes] = MESSAGES.encoder("CommitSig")


def commit_sig(value: CommitSig) -> bytes:
    """Encode one signature of a commit as a protobuf CommitSig."""
    flag, address, signature = value.block_id_flag, value.validator_address, value.signature
    if not (len(address) == 20 and len(signature) == 64 and 0 < flag < 0x80):
        return _commit_sig(value)
    # Fast path for signatures of the common size, as a block contains hundreds of them.
    time = timestamp(value.timestamp)
    return b"\x08%c\x12\x14%b\x1a%c%b\x22\x40%b" % (flag, address, len(time), time, signature)


def commit_sigs(value: Commit) -> list[bytes]:
    """Encode each signature of a commit."""
    return [commit_sig(sig) for sig in value.signatures]


def commit(value: Commit, sigs: Sequence[bytes] | None = None) -> bytes:
    """Encode a commit; ``sigs`` are its encoded signatures, if they are already known."""
    return MESSAGES.encode(
        "Commit",
        height=value.height,
        round=value.round,
        block_id=value.block_id,
        signatures=commit_sigs(value) if sigs is None else sigs,
    )


def evidence(value: Evidence, *, plain_keys: bool = False) -> bytes:
    """Encode evidence without the wrapper message that blocks have around it."""
    messages = MESSAGES_1 if plain_keys else MESSAGES
    if not isinstance(value, LightClientAttackEvidence):
        return messages.encoder("DuplicateVoteEvidence")(value)
    light = value.conflicting_block
    return messages.encode(
        "LightClientAttackEvidence",
        conflicting_block={"signed_header": light.signed_header, "validator_set": light},
        common_height=value.common_height,
        byzantine_validators=value.byzantine_validators,
        total_voting_power=value.total_voting_power,
        timestamp=value.timestamp,
    )


def any_evidence(value: Evidence, *, plain_keys: bool = False) -> bytes:
    """Encode evidence with the wrapper message that blocks have around it."""
    is_attack = isinstance(value, LightClientAttackEvidence)
    name = "light_client_attack_evidence" if is_attack else "duplicate_vote_evidence"
    return MESSAGES.encode("Evidence", **{name: evidence(value, plain_keys=plain_keys)})


def block(value: Block, last_commit: bytes | None = None, *, plain_keys: bool = False) -> bytes:
    """Encode a block to the bytes that are split into parts; ``last_commit`` is its encoded
    last commit, if it is already known."""
    proofs = [any_evidence(item, plain_keys=plain_keys) for item in value.evidence]
    return MESSAGES.encode(
        "Block",
        header=value.header,
        data={"txs": value.txs},
        evidence={"evidence": proofs},
        last_commit=commit(value.last_commit) if last_commit is None else last_commit,
    )


def canonical_vote(value: Vote, chain_id: str) -> bytes:
    """Return the bytes that a validator signs for a vote: CanonicalVote with its length before
    it."""
    return delimited(
        _canonical_step(value.type, value.height, value.round, value.block_id)
        + message(5, timestamp(value.timestamp))
        + string(6, chain_id)
    )


def canonical_precommits(value: Commit, chain_id: str) -> Iterator[bytes]:
    """Yield the bytes that the validator signed for each vote of a commit.

    These bytes differ only in the time, and in whether the vote is for the block or for nil.
    """
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
        # The block ID of a vote for nil is omitted.
        + (message(4, canonical_id) if block_id.hash else b"")
    )
