"""Validator sets: order, proposer rotation and updates (facts of CometBFT 0.34 to 1.0)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ...domain.validator import Validator, ValidatorSet, ValidatorUpdate
from . import keys

# CometBFT: types.PriorityWindowSizeFactor.
_WINDOW_FACTOR = 2

# CometBFT: types.MaxTotalVotingPower.
MAX_TOTAL_POWER = ((1 << 63) - 1) // 8


def in_order(validators: Iterable[Validator]) -> tuple[Validator, ...]:
    """Sort validators by power, highest first, then by address."""
    return tuple(sorted(validators, key=lambda v: (-v.voting_power, v.address)))


def genesis_set(updates: Iterable[ValidatorUpdate]) -> ValidatorSet:
    """Return the set at the first height; raise the errors of :func:`updated`."""
    return rotated(updated(ValidatorSet(), updates))


def at_round(validators: ValidatorSet, round_number: int) -> ValidatorSet:
    """Return the set with the proposer of a later round; each round is one rotation step."""
    for _ in range(round_number):
        validators = rotated(validators)
    return validators


def rotated(validators: ValidatorSet) -> ValidatorSet:
    """Return the set of the next height: rescaled, centred, rotated by one step."""
    if not validators.validators:
        return validators
    total = validators.total_power
    return _step(_centred(_rescaled(validators, total)), total)


def _step(validators: ValidatorSet, total: int) -> ValidatorSet:
    raised = [
        replace(v, proposer_priority=v.proposer_priority + v.voting_power)
        for v in validators.validators
    ]
    highest = max(v.proposer_priority for v in raised)
    # On a tie the lower address proposes.
    chosen = min(v.address for v in raised if v.proposer_priority == highest)
    after = tuple(
        replace(v, proposer_priority=highest - total) if v.address == chosen else v
        for v in raised
    )
    return ValidatorSet(after, chosen)


def _rescaled(validators: ValidatorSet, total: int) -> ValidatorSet:
    window = _WINDOW_FACTOR * total
    priorities = [v.proposer_priority for v in validators.validators]
    spread = max(priorities) - min(priorities)
    if spread <= window:
        return validators
    ratio = -(-spread // window)
    return _with_priorities(validators, [_truncated(p, ratio) for p in priorities])


def _truncated(value: int, divisor: int) -> int:
    # Go's division truncates toward zero.
    return value // divisor if value >= 0 else -(-value // divisor)


def _centred(validators: ValidatorSet) -> ValidatorSet:
    priorities = [v.proposer_priority for v in validators.validators]
    # CometBFT: Euclidean division by a positive count, which is Python's floor.
    average = sum(priorities) // len(priorities)
    return _with_priorities(validators, [p - average for p in priorities])


def _with_priorities(validators: ValidatorSet, priorities: list[int]) -> ValidatorSet:
    return ValidatorSet(
        tuple(
            replace(v, proposer_priority=priority)
            for v, priority in zip(validators.validators, priorities, strict=True)
        ),
        validators.proposer,
    )


def updated(validators: ValidatorSet, updates: Iterable[ValidatorUpdate]) -> ValidatorSet:
    """Return the set with changed powers and new validators, without those of power 0.

    Raise :exc:`ValueError` for a negative power, a key named twice, the removal of an
    unknown validator, or a resulting set that is empty or exceeds the maximum power.
    """
    members = {v.address: v for v in validators.validators}
    changes = _changes(members, updates)
    if not changes:
        return validators
    # CometBFT: a new validator starts at -1.125 times the total power after the updates
    # and before the removals.
    before_removals = {**members, **{a: v for a, v in changes.items() if v.voting_power}}
    total = sum(v.voting_power for v in before_removals.values())
    for address, change in changes.items():
        current = members.get(address)
        priority = -(total + (total >> 3)) if current is None else current.proposer_priority
        members[address] = replace(change, proposer_priority=priority)
    remaining = in_order(v for v in members.values() if v.voting_power)
    if not remaining:
        raise ValueError("the validator set would be empty")
    after = ValidatorSet(remaining, validators.proposer)
    if after.total_power > MAX_TOTAL_POWER:
        raise ValueError(
            f"total voting power can't exceed {MAX_TOTAL_POWER}, got {after.total_power}"
        )
    return _centred(_rescaled(after, after.total_power))


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
    return Validator(keys.address(update.pub_key), update.pub_key, update.power)
