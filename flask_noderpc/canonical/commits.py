"""Did enough of the power sign a commit?

CometBFT: types/validation.go, where all signatures are checked, with its texts.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..domain.block import BlockIDFlag, Commit, CommitSig
from ..domain.validator import Validator, ValidatorSet
from .keys import commit_vote, verify_vote

Signer = tuple[int, Validator]
"""The position of a signature in its commit, and whose it is."""


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
    signers = []
    for index, sig in _for_the_block(commit):
        if members[index].address != sig.validator_address:
            raise ValueError(
                f"validator address mismatch at index {index}: expected"
                f" {members[index].address.hex().upper()},"
                f" got {sig.validator_address.hex().upper()}"
            )
        signers.append((index, members[index]))
    total = sum(member.voting_power for member in members)
    _check_signers(chain_id, commit, signers, total * 2 // 3)


def check_trusted_third(chain_id: str, trusted: ValidatorSet, commit: Commit) -> None:
    """Raise :exc:`ValueError` unless more than a third of another, trusted set signed."""
    signers: dict[bytes, Signer] = {}
    for index, sig in _for_the_block(commit):
        known = trusted.by_address.get(sig.validator_address)
        if known is None:
            continue
        first = signers.setdefault(sig.validator_address, (index, known[1]))
        if first[0] != index:
            name = sig.validator_address.hex().upper()
            raise ValueError(f"double vote from {name} ({first[0]} and {index})")
    _check_signers(chain_id, commit, list(signers.values()), trusted.total_power // 3)


def _for_the_block(commit: Commit) -> Iterator[tuple[int, CommitSig]]:
    for index, sig in enumerate(commit.signatures):
        if sig.block_id_flag == BlockIDFlag.COMMIT:
            yield index, sig


def _check_signers(chain_id: str, commit: Commit, signers: list[Signer], needed: int) -> None:
    power = sum(validator.voting_power for _, validator in signers)
    if power <= needed:
        raise ValueError(
            "invalid commit -- insufficient voting power:"
            f" got {power}, needed more than {needed}"
        )
    for index, validator in signers:
        if not verify_vote(commit_vote(commit, index), chain_id, validator.pub_key):
            shown = commit.signatures[index].signature.hex().upper()
            raise ValueError(f"wrong signature (#{index}): {shown}")
