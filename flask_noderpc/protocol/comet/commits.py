"""Verification of the voting power behind a commit, and the BFT time of its votes.

CometBFT: types/validation.go, the variant that checks all signatures, with its error texts.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...domain.block import BlockIDFlag, Commit, CommitSig
from ...domain.validator import Validator, ValidatorSet
from .keys import commit_vote, verify_vote

Signer = tuple[int, Validator]
"""Index of a signature in its commit, and its validator."""


def check_commit(
    chain_id: str, members: tuple[Validator, ...], height: int, commit: Commit
) -> None:
    """Raise :exc:`ValueError` unless more than two thirds of its own validators signed."""
    if len(members) != len(commit.signatures):
        raise ValueError(
            f"Invalid commit -- wrong set size: {len(members)} vs {len(commit.signatures)}"
        )
    if height != commit.height:
        raise ValueError(f"Invalid commit -- wrong height: {height} vs {commit.height}")
    power = 0
    for index, sig in _block_signatures(commit):
        member = members[index]
        if member.address != sig.validator_address:
            raise ValueError(
                f"validator address mismatch at index {index}: expected"
                f" {member.address.hex().upper()}, got {sig.validator_address.hex().upper()}"
            )
        _check_signature(chain_id, commit, index, member)
        power += member.voting_power
    _check_power(power, sum(member.voting_power for member in members) * 2 // 3)


def check_trusted_third(chain_id: str, trusted: ValidatorSet, commit: Commit) -> None:
    """Raise :exc:`ValueError` unless more than a third of another, trusted set signed."""
    signers: dict[bytes, Signer] = {}
    for index, sig in _block_signatures(commit):
        entry = trusted.by_address.get(sig.validator_address)
        if entry is None:
            continue
        first = signers.setdefault(sig.validator_address, (index, entry[1]))
        if first[0] != index:
            raise ValueError(
                f"double vote from {_validator_text(entry[1])} ({first[0]} and {index})"
            )
    # CometBFT verifies these in a batch, only after the power was found sufficient.
    power = sum(validator.voting_power for _, validator in signers.values())
    _check_power(power, trusted.total_power // 3)
    for index, validator in signers.values():
        _check_signature(chain_id, commit, index, validator)


def _validator_text(validator: Validator) -> str:
    # CometBFT: types/validator.go, String.
    kind, key = validator.pub_key.type.title(), validator.pub_key.value.hex().upper()
    return (
        f"Validator{{{validator.address.hex().upper()} PubKey{kind}{{{key}}}"
        f" VP:{validator.voting_power} A:{validator.proposer_priority}}}"
    )


def _block_signatures(commit: Commit) -> Iterator[tuple[int, CommitSig]]:
    for index, sig in enumerate(commit.signatures):
        if sig.block_id_flag == BlockIDFlag.COMMIT:
            yield index, sig


def _check_power(power: int, needed: int) -> None:
    if power <= needed:
        raise ValueError(
            "invalid commit -- insufficient voting power:"
            f" got {power}, needed more than {needed}"
        )


def _check_signature(chain_id: str, commit: Commit, index: int, signer: Validator) -> None:
    if not verify_vote(commit_vote(commit, index), chain_id, signer.pub_key):
        shown = commit.signatures[index].signature.hex().upper()
        raise ValueError(f"wrong signature (#{index}): {shown}")


def median_time(commit: Commit, validators: ValidatorSet) -> int:
    """Return the median vote time, weighted by power, without absent votes.

    ``validators`` is the set that signed the commit. CometBFT: the first time, in
    ascending order, at which half of the power that voted is reached.
    """
    weighted = sorted(
        (sig.timestamp, validators.by_address[sig.validator_address][1].voting_power)
        for sig in commit.signatures
        if sig.block_id_flag != BlockIDFlag.ABSENT
        and sig.validator_address in validators.by_address
    )
    remaining = sum(power for _, power in weighted) // 2
    for time_ns, power in weighted:
        if remaining <= power:
            return time_ns
        remaining -= power
    raise ValueError("a commit without votes has no median time")
