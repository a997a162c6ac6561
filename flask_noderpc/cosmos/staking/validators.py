"""Changes of validators: their tokens, their states, and the chain's set of validators; SDK:
x/staking/keeper/validator.go and val_state_change.go."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from ...domain.validator import ValidatorUpdate
from ..bank.errors import TxError
from .errors import VALIDATOR_JAILED
from .records import BONDED, UNBONDED, UNBONDING, Validator
from .state import (
    BY_CONSENSUS_ADDRESS,
    BY_POWER,
    OF_VALIDATOR,
    VALIDATORS,
    Staking,
    sized,
)


def add(staking: Staking, validator: Validator, *, is_exported: bool = False) -> None:
    """Store a new validator; the modules' states of an exported one exist already."""
    staking.set_validator(validator)
    staking.set_consensus_address(validator)
    staking.add_to_powers(validator)
    for hooks in () if is_exported else staking.hooks:
        hooks.after_validator_created(staking.context, staking.operator(validator))


def add_tokens(staking: Staking, validator: Validator, tokens: int) -> int:
    """Add delegated tokens to a validator; return the new shares."""
    staking.remove_from_powers(validator)
    shares = validator.add_tokens(tokens)
    staking.set_validator(validator)
    staking.add_to_powers(validator)
    return shares


def remove_shares(staking: Staking, validator: Validator, shares: int) -> int:
    """Remove shares of delegators from a validator; return the tokens that they were worth."""
    staking.remove_from_powers(validator)
    tokens = validator.remove_shares(shares)
    staking.set_validator(validator)
    staking.add_to_powers(validator)
    return tokens


def remove_tokens(staking: Staking, validator: Validator, tokens: int) -> None:
    """Remove slashed tokens from a validator."""
    staking.remove_from_powers(validator)
    validator.tokens -= tokens
    staking.set_validator(validator)
    staking.add_to_powers(validator)


def remove(staking: Staking, operator: bytes) -> None:
    """Remove a validator that is unbonded and has no tokens."""
    validator = staking.find_validator(operator)
    if validator is None:
        return
    address = validator.consensus_address
    staking.store.delete(VALIDATORS + sized(operator))
    staking.store.delete(BY_CONSENSUS_ADDRESS + sized(address))
    staking.remove_from_powers(validator)
    for hooks in staking.hooks:
        hooks.after_validator_removed(
            staking.context, address, operator, is_strict=staking.is_strict
        )


def jail(staking: Staking, validator: Validator) -> None:
    """Jail a validator, which is not bonded any more after the block; raise :exc:`TxError` if
    it is jailed already."""
    if validator.jailed:
        raise TxError(VALIDATOR_JAILED, "cannot jail already jailed validator")
    validator.jailed = True
    staking.set_validator(validator)
    staking.remove_from_powers(validator)


def unjail(staking: Staking, validator: Validator) -> None:
    """End the jailing of a validator."""
    validator.jailed = False
    staking.set_validator(validator)
    staking.add_to_powers(validator)


def apply_powers(staking: Staking) -> list[ValidatorUpdate]:
    """Bond the validators with the highest powers, begin the unbonding of the others, and
    return the changes of the chain's validators."""
    most = staking.params().max_validators
    last = staking.last_powers()
    updates: list[ValidatorUpdate] = []
    total = moved = 0
    for operator, validator in _highest(staking, most):
        if not validator.is_bonded:
            _bond(staking, validator)
            moved += validator.tokens
        power = validator.power
        if last.pop(operator, None) != power:
            updates.append(validator.update(power))
            staking.set_last_power(operator, power)
        total += power
    for operator in sorted(last):
        validator = staking.validator(operator)
        _begin_unbonding(staking, validator)
        moved -= validator.tokens
        staking.delete_last_power(operator)
        updates.append(validator.update(0))
    if moved > 0:
        staking.bond_tokens(moved)
    elif moved < 0:
        staking.unbond_tokens(-moved)
    if updates:
        staking.set_last_total_power(total)
    return updates


def _highest(staking: Staking, most: int) -> Iterator[tuple[bytes, Validator]]:
    """Yield the operators and the validators with the highest powers, at most ``most``."""
    for _, operator in islice(staking.store.iterate(BY_POWER, is_reverse=True), most):
        validator = staking.validator(operator)
        if not validator.potential_power:
            return
        yield operator, validator


def _bond(staking: Staking, validator: Validator) -> None:
    staking.remove_from_powers(validator)
    validator.status = BONDED
    staking.set_validator(validator)
    staking.add_to_powers(validator)
    staking.dequeue_validator(validator)
    address, operator = validator.consensus_address, staking.operator(validator)
    for hooks in staking.hooks:
        hooks.after_validator_bonded(staking.context, address, operator)


def _begin_unbonding(staking: Staking, validator: Validator) -> None:
    unbonding_time = staking.params().unbonding_time
    staking.remove_from_powers(validator)
    number = staking.next_unbonding_id()
    validator.status = UNBONDING
    validator.unbonding_time = staking.now + unbonding_time
    validator.unbonding_height = staking.height
    validator.unbonding_ids.append(number)
    staking.set_validator(validator)
    staking.add_to_powers(validator)
    staking.queue_validator(validator)
    key = VALIDATORS + sized(staking.operator(validator))
    staking.set_unbonding_id(number, key, OF_VALIDATOR)


def unbond_mature(staking: Staking) -> None:
    """End the unbonding of validators whose time has come."""
    for address in staking.mature_validators():
        operator = staking.parse_operator(address)
        validator = staking.validator(operator)
        if validator.unbonding_on_hold_ref_count:
            continue
        for number in validator.unbonding_ids:
            staking.delete_unbonding_id(number)
        validator.status = UNBONDED
        staking.set_validator(validator)
        if not validator.delegator_shares:
            remove(staking, operator)
        staking.dequeue_validator(validator)
