"""Verification of evidence: duplicate votes and light client attacks.

CometBFT: evidence/verify.go and types/evidence.go, with their error texts. Each check
raises :exc:`ValueError` and expects that :mod:`.validate_basic` passed before.
"""

from __future__ import annotations

from ...domain.block import (
    BlockIDFlag,
    Commit,
    DuplicateVoteEvidence,
    Header,
    LightClientAttackEvidence,
    SignedHeader,
    Vote,
    VoteType,
)
from ...domain.time import to_go_text
from ...domain.validator import NO_KEY, Validator, ValidatorSet
from . import hashes, validators
from .key_types import address
from .keys import verify_vote
from .validate_basic import error_prefix
from .validators import check_commit, check_trusted_third


def check_duplicate_vote(
    piece: DuplicateVoteEvidence, chain_id: str, members: ValidatorSet
) -> None:
    """Raise unless one of the validators at that height signed both votes."""
    first, second = piece.vote_a, piece.vote_b
    entry = members.by_address.get(first.validator_address)
    if entry is None:
        raise ValueError(
            f"address {first.validator_address.hex().upper()} was not a validator at height"
            f" {piece.height}"
        )
    if _height_round_step(first) != _height_round_step(second):
        raise ValueError(
            f"h/r/s does not match: {_height_round_step(first)} vs {_height_round_step(second)}"
        )
    if first.validator_address != second.validator_address:
        raise ValueError(
            "validator addresses do not match:"
            f" {first.validator_address.hex().upper()}"
            f" vs {second.validator_address.hex().upper()}"
        )
    member = entry[1]
    if member.voting_power != piece.validator_power:
        raise ValueError(
            "validator power from evidence and our validator set does not match"
            f" ({piece.validator_power} != {member.voting_power})"
        )
    _check_total(piece.total_voting_power, members)
    for name, vote in (("VoteA", first), ("VoteB", second)):
        if not verify_vote(vote, chain_id, member.pub_key):
            raise ValueError(f"verifying {name}: invalid signature")


def _height_round_step(vote: Vote) -> str:
    return f"{vote.height}/{vote.round}/SIGNED_MSG_TYPE_{VoteType(vote.type).name}"


def _check_total(listed: int, members: ValidatorSet) -> None:
    if listed != members.total_power:
        raise ValueError(
            "total voting power from the evidence and our validator set does not match"
            f" ({listed} != {members.total_power})"
        )


def check_light_client_attack(
    piece: LightClientAttackEvidence,
    common: SignedHeader,
    trusted: SignedHeader,
    members: ValidatorSet,
) -> None:
    """Raise unless the block conflicts with the trusted one, and enough power signed it.

    ``members`` is the validator set at the common height.
    """
    shown = piece.conflicting_block
    header, commit = shown.signed_header.header, shown.signed_header.commit
    chain_id = trusted.header.chain_id
    if common.header.height != header.height:
        with error_prefix("skipping verification of conflicting block failed"):
            check_trusted_third(chain_id, members, commit)
    elif _is_lunatic(header, trusted.header):
        raise ValueError(
            "common height is the same as conflicting block height so expected the"
            " conflicting block to be correctly derived yet it wasn't"
        )
    with error_prefix("invalid commit from conflicting block"):
        check_commit(chain_id, shown.validators, header.height, commit)
    _check_total(piece.total_voting_power, members)
    _check_conflict(header, trusted.header)
    _check_byzantine(piece.byzantine_validators, byzantine_validators(piece, members, trusted))


def _check_conflict(header: Header, trusted: Header) -> None:
    if header.height > trusted.height and header.time > trusted.time:
        raise ValueError(
            "conflicting block doesn't violate monotonically increasing time"
            f" ({to_go_text(header.time)} is after {to_go_text(trusted.time)})"
        )
    trusted_hash = hashes.header_hash(trusted)
    if trusted_hash == hashes.header_hash(header):
        raise ValueError(
            "trusted header hash matches the evidence's conflicting header hash:"
            f" {trusted_hash.hex().upper()}"
        )


def _is_lunatic(header: Header, trusted: Header) -> bool:
    """Return True if a header does not follow from the state of the trusted one."""
    return any(
        getattr(header, name) != getattr(trusted, name)
        for name in (
            "validators_hash",
            "next_validators_hash",
            "consensus_hash",
            "app_hash",
            "last_results_hash",
        )
    )


def byzantine_validators(
    piece: LightClientAttackEvidence, members: ValidatorSet, trusted: SignedHeader
) -> tuple[Validator, ...]:
    """Return the validators that are responsible for a conflicting block."""
    block = piece.conflicting_block
    commit = block.signed_header.commit
    if _is_lunatic(block.signed_header.header, trusted.header):
        # Lunatic: the validators of the common height that signed an invalid header.
        by_address = members.by_address
        signers = (by_address.get(signer) for signer in _signers(commit))
        return validators.in_order(entry[1] for entry in signers if entry)
    if commit.round == trusted.commit.round:
        # Equivocation: the validators that signed both commits of the same round.
        twice = _signers(commit) & _signers(trusted.commit)
        return validators.in_order(v for v in block.validators if v.address in twice)
    # Amnesia: the two commits alone do not identify the faulty validators.
    return ()


def _signers(commit: Commit) -> frozenset[bytes]:
    return frozenset(
        sig.validator_address
        for sig in commit.signatures
        if sig.block_id_flag == BlockIDFlag.COMMIT
    )


def _check_byzantine(listed: tuple[Validator, ...], expected: tuple[Validator, ...]) -> None:
    if listed and not expected:
        raise ValueError(
            f"expected nil validators from an amnesia light client attack but got {len(listed)}"
        )
    if len(listed) != len(expected):
        raise ValueError(
            f"expected {len(expected)} byzantine validators from evidence but got {len(listed)}"
        )
    for index, (theirs, ours) in enumerate(zip(listed, expected, strict=True)):
        if theirs.address != ours.address:
            raise ValueError(
                "evidence contained an unexpected byzantine validator address; expected:"
                f" {ours.address.hex().upper()}, got: {theirs.address.hex().upper()}"
            )
        if theirs.voting_power != ours.voting_power:
            raise ValueError(
                "evidence contained unexpected byzantine validator power;"
                f" expected {ours.voting_power}, got {theirs.voting_power}"
            )
        if theirs.pub_key == NO_KEY:
            raise ValueError(f"byzantine validator at index {index} has nil pubkey")
        key_address = address(theirs.pub_key)
        if key_address != theirs.address:
            raise ValueError(
                f"byzantine validator at index {index} has address"
                f" {theirs.address.hex().upper()} that does not match pubkey address"
                f" {key_address.hex().upper()}"
            )
