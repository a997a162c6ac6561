"""Stateless validation of votes, headers and evidence.

CometBFT: the ValidateBasic methods of types/*.go, with their error texts. Each check raises
:exc:`ValueError`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...domain.block import (
    NO_BLOCK,
    BlockID,
    BlockIDFlag,
    Commit,
    CommitSig,
    DuplicateVoteEvidence,
    Evidence,
    Header,
    LightBlock,
    LightClientAttackEvidence,
    SignedHeader,
    Version,
    Vote,
    VoteType,
)
from ...domain.time import ZERO_TIME
from ...domain.validator import NO_KEY, Validator, ValidatorSet
from . import hashes, messages
from .key_types import address

HASH_SIZE = 32
ADDRESS_SIZE = 20

# CometBFT 0.40: types/signable.go. An ML-DSA-65 signature is the longest of all key types.
MAX_SIGNATURE_SIZE = 3309
# CometBFT: types/params.go.
MAX_CHAIN_ID_LENGTH = 50


def check_evidence_basics(piece: Evidence) -> None:
    """Raise :exc:`ValueError` unless evidence is well formed."""
    if isinstance(piece, LightClientAttackEvidence):
        _check_attack(piece)
    else:
        _check_duplicate_vote(piece)


@contextmanager
def error_prefix(prefix: str) -> Iterator[None]:
    """Add a prefix to the text of a :exc:`ValueError`."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{prefix}: {error}") from None


def _check_duplicate_vote(piece: DuplicateVoteEvidence) -> None:
    with error_prefix("invalid VoteA"):
        check_vote(piece.vote_a)
    with error_prefix("invalid VoteB"):
        check_vote(piece.vote_b)
    if block_id_key(piece.vote_a.block_id) >= block_id_key(piece.vote_b.block_id):
        raise ValueError("duplicate votes in invalid order")


def block_id_key(block_id: BlockID) -> bytes:
    """Return the sort key of evidence's two votes."""
    return block_id.hash + messages.part_set_header(block_id.parts)


def block_id_text(block_id: BlockID) -> str:
    """Return a block ID in the form of CometBFT's error texts."""
    parts = block_id.parts
    shown = parts.hash[:6].ljust(6, b"\0").hex().upper()
    return f"{block_id.hash.hex().upper()}:{parts.total}:{shown}"


def check_vote(vote: Vote) -> None:
    """Raise :exc:`ValueError` unless a vote is well formed."""
    if vote.type not in (VoteType.PREVOTE, VoteType.PRECOMMIT):
        raise ValueError("invalid Type")
    if vote.height <= 0:
        raise ValueError("negative or zero Height")
    if vote.round < 0:
        raise ValueError("negative Round")
    with error_prefix("wrong BlockID"):
        _check_block_id(vote.block_id)
    if vote.block_id != NO_BLOCK and not _is_complete(vote.block_id):
        raise ValueError(
            f"blockID must be either empty or complete, got: {block_id_text(vote.block_id)}"
        )
    _check_address(vote.validator_address)
    if vote.validator_index < 0:
        raise ValueError("negative ValidatorIndex")
    _check_signature(vote.signature)
    _check_extension(vote)


def _check_extension(vote: Vote) -> None:
    is_nil = vote.block_id == NO_BLOCK
    if vote.type != VoteType.PRECOMMIT or is_nil:
        if vote.extension:
            shown = f"vote type {vote.type}, isNil {str(is_nil).lower()}"
            raise ValueError(f"unexpected vote extension; {shown}")
        if vote.extension_signature:
            raise ValueError("unexpected vote extension signature")
    elif len(vote.extension_signature) > MAX_SIGNATURE_SIZE:
        raise ValueError(f"vote extension signature is too big (max: {MAX_SIGNATURE_SIZE})")
    elif vote.extension and not vote.extension_signature:
        raise ValueError("vote extension signature absent on vote with extension")


def _check_address(address: bytes) -> None:
    if len(address) != ADDRESS_SIZE:
        raise ValueError(
            f"expected ValidatorAddress size to be {ADDRESS_SIZE} bytes,"
            f" got {len(address)} bytes"
        )


def _check_signature(signature: bytes) -> None:
    if not signature:
        raise ValueError("signature is missing")
    if len(signature) > MAX_SIGNATURE_SIZE:
        raise ValueError(f"signature is too big (max: {MAX_SIGNATURE_SIZE})")


def _check_block_id(block_id: BlockID) -> None:
    if len(block_id.hash) not in (0, HASH_SIZE):
        raise ValueError("wrong Hash")
    with error_prefix("wrong PartSetHeader: wrong Hash"):
        _check_hash(block_id.parts.hash)


def _is_complete(block_id: BlockID) -> bool:
    sizes = (len(block_id.hash), len(block_id.parts.hash))
    return block_id.parts.total > 0 and sizes == (HASH_SIZE, HASH_SIZE)


def _check_hash(value: bytes) -> None:
    if len(value) not in (0, HASH_SIZE):
        raise ValueError(f"expected size to be {HASH_SIZE} bytes, got {len(value)} bytes")


def _check_attack(piece: LightClientAttackEvidence) -> None:
    height = piece.conflicting_block.signed_header.header.height
    if piece.total_voting_power <= 0:
        raise ValueError("negative or zero total voting power")
    if piece.common_height <= 0:
        raise ValueError("negative or zero common height")
    if piece.common_height > height:
        raise ValueError(
            "common height is ahead of the conflicting block height"
            f" ({piece.common_height} > {height})"
        )
    with error_prefix("invalid conflicting light block"):
        _check_light_block(piece.conflicting_block)


def _check_light_block(block: LightBlock) -> None:
    with error_prefix("invalid signed header"):
        _check_signed_header(block.signed_header)
    with error_prefix("invalid validator set"):
        _check_validators(block)
    named_hash = block.signed_header.header.validators_hash
    expected_hash = hashes.validators_hash(ValidatorSet(block.validators))
    if named_hash != expected_hash:
        raise ValueError(
            "expected validator hash of header to match validator set hash"
            f" ({named_hash.hex().upper()} != {expected_hash.hex().upper()})"
        )


def _check_signed_header(signed: SignedHeader) -> None:
    header, commit = signed.header, signed.commit
    with error_prefix("invalid header"):
        _check_header(header)
    with error_prefix("invalid commit"):
        _check_commit(commit)
    if commit.height != header.height:
        raise ValueError(
            f"header and commit height mismatch: {header.height} vs {commit.height}"
        )
    expected_hash = hashes.header_hash(header)
    if commit.block_id.hash != expected_hash:
        raise ValueError(
            f"commit signs block {commit.block_id.hash.hex().upper()},"
            f" header is block {expected_hash.hex().upper()}"
        )


def _check_header(header: Header) -> None:
    if header.version.block != Version().block:
        raise ValueError(
            "block protocol is incorrect:"
            f" got: {header.version.block}, want: {Version().block} "
        )
    if len(header.chain_id.encode()) > MAX_CHAIN_ID_LENGTH:
        raise ValueError(
            f"chainID is too long; got: {len(header.chain_id.encode())},"
            f" max: {MAX_CHAIN_ID_LENGTH}"
        )
    if header.height <= 0:
        raise ValueError("negative Height" if header.height < 0 else "zero Height")
    with error_prefix("wrong LastBlockID"):
        _check_block_id(header.last_block_id)
    _check_hashes(header, "last_commit_hash", "data_hash", "evidence_hash")
    size = len(header.proposer_address)
    if size != ADDRESS_SIZE:
        raise ValueError(
            f"invalid ProposerAddress length; got: {size}, expected: {ADDRESS_SIZE}"
        )
    # The app hash may have any length.
    _check_hashes(
        header, "validators_hash", "next_validators_hash", "consensus_hash", "last_results_hash"
    )


def _check_hashes(header: Header, *names: str) -> None:
    for name in names:
        with error_prefix("wrong " + name.title().replace("_", "")):
            _check_hash(getattr(header, name))


def _check_commit(commit: Commit) -> None:
    if commit.height < 0:
        raise ValueError("negative Height")
    if commit.round < 0:
        raise ValueError("negative Round")
    if commit.height == 0:
        return
    if commit.block_id == NO_BLOCK:
        raise ValueError("commit cannot be for nil block")
    if not commit.signatures:
        raise ValueError("no signatures in commit")
    for index, sig in enumerate(commit.signatures):
        with error_prefix(f"wrong CommitSig #{index}"):
            _check_commit_sig(sig)


def _check_commit_sig(sig: CommitSig) -> None:
    if sig.block_id_flag not in tuple(BlockIDFlag):
        raise ValueError(f"unknown BlockIDFlag: {sig.block_id_flag}")
    if sig.block_id_flag != BlockIDFlag.ABSENT:
        _check_address(sig.validator_address)
        _check_signature(sig.signature)
    elif sig.validator_address:
        raise ValueError("validator address is present")
    elif sig.timestamp != ZERO_TIME:
        raise ValueError("time is present")
    elif sig.signature:
        raise ValueError("signature is present")


def _check_validators(block: LightBlock) -> None:
    if not block.validators:
        raise ValueError("validator set is nil or empty")
    for index, validator in enumerate(block.validators):
        with error_prefix(f"invalid validator #{index}"):
            _check_validator(validator)
    with error_prefix("proposer failed validate basic, error"):
        _check_validator(block.proposer)
    if block.proposer.address not in {validator.address for validator in block.validators}:
        raise ValueError("proposer not in validator set")


def _check_validator(validator: Validator) -> None:
    if validator.pub_key == NO_KEY:
        raise ValueError("validator does not have a public key")
    if validator.voting_power < 0:
        raise ValueError("validator has negative voting power")
    expected = address(validator.pub_key)
    if validator.address != expected:
        raise ValueError(
            "validator address is incorrectly derived from pubkey."
            f" Exp: {expected.hex().upper()}, got {validator.address.hex().upper()}"
        )
