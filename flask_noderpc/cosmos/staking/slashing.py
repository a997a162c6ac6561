"""Destruction of a part of a validator's tokens; SDK: x/staking/keeper/slash.go."""

from __future__ import annotations

import logging

from ..bank.errors import INTERNAL, TxError
from ..protocol import decimals
from . import delegations, validators
from .records import (
    POWER_REDUCTION,
    UNBONDED,
    Redelegation,
    RedelegationEntry,
    UnbondingDelegation,
    UnbondingEntry,
)
from .state import BONDED_POOL, NOT_BONDED_POOL, Staking, pool_of

log = logging.getLogger(__name__)


def slash(staking: Staking, address: bytes, height: int, power: int, fraction: int) -> int:
    """Destroy a fraction of the tokens that a validator had at the height of an offence, and
    return the tokens that were taken from the validator itself.

    ``address`` is the address of the validator's key, ``power`` its voting power at that
    height, and ``fraction`` in units of 10^-18. Tokens that were undelegated or redelegated
    since are slashed, too.
    """
    tokens = decimals.of(power * POWER_REDUCTION)
    remaining = decimals.truncate(decimals.mul(tokens, fraction))
    validator = staking.find_by_consensus_address(address)
    if validator is None:
        return 0
    if validator.status == UNBONDED:
        raise TxError(
            INTERNAL, f"should not be slashing unbonded validator: {validator.operator_address}"
        )
    operator = staking.operator(validator)
    if height < staking.height:
        for unbonding in staking.unbonding_of_validator(operator):
            remaining -= _slash_unbonding(staking, unbonding, height, fraction)
        for redelegation in staking.redelegations_from(operator):
            remaining -= _slash_redelegation(staking, redelegation, height, fraction)
    burned = max(min(remaining, validator.tokens), 0)
    if not burned:
        return 0
    share = decimals.quo_round_up(decimals.of(burned), decimals.of(validator.tokens))
    _announce(staking, operator, min(share, decimals.ONE))
    validators.remove_tokens(staking, validator, burned)
    staking.burn(pool_of(validator), burned)
    return burned


def _announce(staking: Staking, operator: bytes, fraction: int) -> None:
    for hooks in staking.hooks:
        try:
            hooks.before_validator_slashed(staking.context, operator, fraction)
        except (TxError, ArithmeticError) as error:
            # The genesis state had no matching records.
            log.error("a module can't follow the slashing of a validator: %s", error)


def _is_slashed(
    staking: Staking, entry: UnbondingEntry | RedelegationEntry, height: int
) -> bool:
    """Return true if the tokens of an entry were the validator's at a height."""
    is_mature = entry.completion_time <= staking.now
    is_completed = is_mature and entry.unbonding_on_hold_ref_count <= 0
    return entry.creation_height >= height and not is_completed


def _share(entry: UnbondingEntry | RedelegationEntry, fraction: int) -> int:
    return decimals.truncate(decimals.mul_int(fraction, entry.initial_balance))


def _slash_unbonding(
    staking: Staking, unbonding: UnbondingDelegation, height: int, fraction: int
) -> int:
    """Slash an unbonding delegation, and return the amount; it may have fewer tokens."""
    total = burned = 0
    for entry in unbonding.entries:
        if not _is_slashed(staking, entry, height):
            continue
        amount = _share(entry, fraction)
        total += amount
        if taken := min(amount, entry.balance):
            burned += taken
            entry.balance -= taken
            staking.set_unbonding(unbonding)
    staking.burn(NOT_BONDED_POOL, burned)
    return total


def _slash_redelegation(
    staking: Staking, redelegation: Redelegation, height: int, fraction: int
) -> int:
    """Slash tokens that were moved to another validator, and return the amount, which may be
    more than is left there."""
    delegator = staking.parse(redelegation.delegator_address)
    operator = staking.parse_operator(redelegation.validator_dst_address)
    total = bonded = not_bonded = 0
    for entry in redelegation.entries:
        if not _is_slashed(staking, entry, height):
            continue
        amount = _share(entry, fraction)
        total += amount
        taken = _slash_undelegated(staking, delegator, operator, height, amount)
        not_bonded += taken
        shares = decimals.mul(fraction, entry.shares_dst)
        if not shares or amount == taken:
            continue
        delegation = staking.find_delegation(delegator, operator)
        if delegation is None:
            continue
        shares = min(shares, delegation.shares)
        # The validator may be removed with its last shares, where the SDK ends the chain.
        is_bonded = staking.validator(operator).is_bonded
        burned = delegations.unbond(staking, delegator, operator, shares)
        if is_bonded:
            bonded += burned
        else:
            not_bonded += burned
    staking.burn(BONDED_POOL, bonded)
    staking.burn(NOT_BONDED_POOL, not_bonded)
    return total


def _slash_undelegated(
    staking: Staking, delegator: bytes, operator: bytes, height: int, amount: int
) -> int:
    """Slash tokens that were undelegated after they were moved to a validator; return what was
    taken, at most ``amount``."""
    unbonding = staking.find_unbonding(delegator, operator)
    if unbonding is None:
        return 0
    left = amount
    for entry in unbonding.entries:
        taken = min(left, entry.balance)
        if taken and _is_slashed(staking, entry, height):
            left -= taken
            entry.balance -= taken
            staking.set_unbonding(unbonding)
    return amount - left


def jail(staking: Staking, address: bytes) -> None:
    """Jail the validator with a key's address; raise :exc:`TxError`."""
    validators.jail(staking, staking.by_consensus_address(address))
