"""Validator sets: order, proposer rotation, updates, and the voting power behind a commit.

CometBFT: types/validation.go, the variant that checks all signatures, with its error texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from operator import add

from ...domain.block import BlockIDFlag, Commit, CommitSig
from ...domain.validator import Validator, ValidatorSet, ValidatorUpdate
from . import key_types
from .keys import commit_vote, verify_vote

# CometBFT: types.PriorityWindowSizeFactor.
_WINDOW_FACTOR = 2

# CometBFT: types.MaxTotalVotingPower.
MAX_TOTAL_POWER = ((1 << 63) - 1) // 8


def in_order(validators: Iterable[Validator]) -> tuple[Validator, ...]:
    """Sort validators by power, highest first, then by address."""
    return tuple(sorted(validators, key=lambda v: (-v.voting_power, v.address)))


def genesis_set(updates: Iterable[ValidatorUpdate]) -> ValidatorSet:
    """Return the set at the first height; raise as :func:`updated` does."""
    return rotated(updated(ValidatorSet(), updates))


def at_round(validators: ValidatorSet, round_number: int) -> ValidatorSet:
    """Return the set with the proposer of a later round; each round rotates the proposer
    once."""
    return rotated(validators, round_number) if round_number else validators


def rotated(validators: ValidatorSet, steps: int = 1) -> ValidatorSet:
    """Return the set of a later height: the priorities are rescaled and centred once, then
    rotated ``steps`` times.

    CometBFT: IncrementProposerPriority(times).
    """
    members = validators.validators
    if not members:
        return validators
    total = validators.total_power
    priorities = _centred(_rescaled([v.proposer_priority for v in members], total))
    powers = [v.voting_power for v in members]
    chosen = 0
    for _ in range(steps):
        priorities = list(map(add, priorities, powers))
        highest = max(priorities)
        chosen = priorities.index(highest)
        if priorities.count(highest) > 1:
            # If priorities are equal, the validator with the lower address proposes.
            tied = (at for at, priority in enumerate(priorities) if priority == highest)
            chosen = min(tied, key=lambda at: members[at].address)
        priorities[chosen] = highest - total
    return _with_priorities(members, priorities, members[chosen].address)


def is_rescaled_next(validators: ValidatorSet) -> bool:
    """Return true if the next rotation rescales or centres the priorities.

    In that case, rotating several times by one step differs from rotating once by several
    steps.
    """
    priorities = [v.proposer_priority for v in validators.validators]
    return _centred(_rescaled(priorities, validators.total_power)) != priorities


def _rescaled(priorities: list[int], total: int) -> list[int]:
    window = _WINDOW_FACTOR * total
    spread = max(priorities) - min(priorities)
    if spread <= window:
        return priorities
    ratio = -(-spread // window)
    return [_truncated(priority, ratio) for priority in priorities]


def _truncated(value: int, divisor: int) -> int:
    # Go's division truncates toward zero.
    return value // divisor if value >= 0 else -(-value // divisor)


def _centred(priorities: list[int]) -> list[int]:
    # CometBFT: Euclidean division by a positive count, which equals Python's floor division.
    average = sum(priorities) // len(priorities)
    return [priority - average for priority in priorities]


def _with_priorities(
    members: Sequence[Validator], priorities: Sequence[int], proposer: bytes
) -> ValidatorSet:
    return ValidatorSet(
        tuple(
            Validator(v.address, v.pub_key, v.voting_power, priority)
            for v, priority in zip(members, priorities, strict=True)
        ),
        proposer,
    )


def updated(validators: ValidatorSet, updates: Iterable[ValidatorUpdate]) -> ValidatorSet:
    """Return the set with changed powers and new validators, without validators of power 0.

    Raise :exc:`ValueError` for a negative power, a key that occurs twice, the removal of an
    unknown validator, or a resulting set that is empty or exceeds the maximum power.
    """
    members = {v.address: v for v in validators.validators}
    changes = _changes(members, updates)
    if not changes:
        return validators
    # CometBFT: a new validator starts with a priority of -1.125 times the total power, which is
    # computed after the updates and before the removals.
    before_removals = {**members, **{a: v for a, v in changes.items() if v.voting_power}}
    total = sum(v.voting_power for v in before_removals.values())
    for address, change in changes.items():
        current = members.get(address)
        priority = -(total + (total >> 3)) if current is None else current.proposer_priority
        members[address] = replace(change, proposer_priority=priority)
    remaining = in_order(v for v in members.values() if v.voting_power)
    if not remaining:
        raise ValueError("the validator set would be empty")
    power = sum(v.voting_power for v in remaining)
    if power > MAX_TOTAL_POWER:
        raise ValueError(f"total voting power can't exceed {MAX_TOTAL_POWER}, got {power}")
    priorities = _centred(_rescaled([v.proposer_priority for v in remaining], power))
    return _with_priorities(remaining, priorities, validators.proposer)


def _changes(
    members: dict[bytes, Validator], updates: Iterable[ValidatorUpdate]
) -> dict[bytes, Validator]:
    changes: dict[bytes, Validator] = {}
    for validator in map(_validator, updates):
        name = validator.address.hex().upper()
        if validator.address in changes:
            raise ValueError(f"validator {name} is updated twice")
        if validator.voting_power == 0 and validator.address not in members:
            raise ValueError(f"validator {name} is not in the set")
        changes[validator.address] = validator
    return changes


def _validator(update: ValidatorUpdate) -> Validator:
    if update.power < 0:
        raise ValueError(f"voting power can't be negative, got {update.power}")
    return Validator(key_types.address(update.pub_key), update.pub_key, update.power)


Signer = tuple[int, Validator]
"""Index of a signature in its commit, and the validator that signed."""


def check_commit(
    chain_id: str,
    members: tuple[Validator, ...],
    height: int,
    commit: Commit,
    *,
    is_light: bool = False,
) -> None:
    """Raise :exc:`ValueError` unless validators with more than two thirds of the power signed.

    With ``is_light``, stop once the verified signatures have enough power, as a light client
    does.
    """
    if len(members) != len(commit.signatures):
        raise ValueError(
            f"Invalid commit -- wrong set size: {len(members)} vs {len(commit.signatures)}"
        )
    if height != commit.height:
        raise ValueError(f"Invalid commit -- wrong height: {height} vs {commit.height}")
    power, needed = 0, sum(member.voting_power for member in members) * 2 // 3
    for index, sig in _block_signatures(commit):
        member = members[index]
        if member.address != sig.validator_address:
            raise ValueError(
                f"validator address mismatch at index {index}: expected"
                f" {member.address.hex().upper()}, got {sig.validator_address.hex().upper()}"
            )
        _check_signature(chain_id, commit, index, member)
        power += member.voting_power
        if is_light and power > needed:
            return
    _check_power(power, needed)


def check_trusted_third(chain_id: str, trusted: ValidatorSet, commit: Commit) -> None:
    """Raise :exc:`ValueError` unless validators with more than a third of the power of
    ``trusted``, the validator set of another height, signed the commit."""
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
    # Check the power before the signatures, as CometBFT does, which verifies them in a batch.
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


ALL_VOTES = frozenset((BlockIDFlag.COMMIT, BlockIDFlag.NIL))
# CometBFT 0.40: state/state.go, MedianTime.
VOTES_FOR_THE_BLOCK = frozenset((BlockIDFlag.COMMIT,))


def median_time(
    commit: Commit, validators: ValidatorSet, counted: frozenset[BlockIDFlag] = ALL_VOTES
) -> int:
    """Return the median time of the counted votes, weighted by voting power.

    ``validators`` is the set that signed the commit. CometBFT: the result is the first time, in
    ascending order, at which half of the power that voted is reached.
    """
    weighted = sorted(
        (sig.timestamp, validators.by_address[sig.validator_address][1].voting_power)
        for sig in commit.signatures
        if sig.block_id_flag in counted and sig.validator_address in validators.by_address
    )
    remaining = sum(power for _, power in weighted) // 2
    for time_ns, power in weighted:
        if remaining <= power:
            return time_ns
        remaining -= power
    raise ValueError("the commit has no votes of known validators, so it has no median time")
