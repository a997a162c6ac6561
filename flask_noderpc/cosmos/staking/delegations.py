"""Delegation, unbonding and redelegation of tokens; SDK: x/staking/keeper/delegation.go."""

from __future__ import annotations

from typing import NamedTuple

from ..bank.errors import INVALID_REQUEST, Panic, TxError
from ..protocol import decimals
from ..protocol.coins import Coin, Coins
from . import validators
from .errors import (
    BAD_REDELEGATION_DESTINATION,
    BAD_REDELEGATION_SOURCE,
    INVALID_EXCHANGE_RATE,
    MAX_REDELEGATION_ENTRIES,
    MAX_UNBONDING_ENTRIES,
    NO_DELEGATOR,
    NOT_ENOUGH_SHARES,
    SELF_REDELEGATION,
    TINY_REDELEGATION,
    TRANSITIVE_REDELEGATION,
)
from .records import (
    BONDED,
    UNBONDED,
    UNBONDING,
    Delegation,
    Redelegation,
    RedelegationEntry,
    UnbondingDelegation,
    UnbondingEntry,
    Validator,
)
from .state import (
    NOT_BONDED_POOL,
    OF_REDELEGATION,
    OF_UNBONDING,
    REDELEGATIONS,
    UNBONDING_DELEGATIONS,
    Staking,
    pool_of,
    sized,
)

# SDK: Go's zero time, the completion time of a redelegation without an entry.
_NO_TIME = -62_135_596_800 * 10**9


def delegate(
    staking: Staking, delegator: bytes, tokens: int, source: int | None, validator: Validator
) -> int:
    """Delegate tokens to a validator, and return the new shares; raise :exc:`TxError`.

    ``source`` is ``None`` for tokens of the delegator's account; otherwise the tokens are in a
    pool already, that of validators with this status.
    """
    if validator.has_invalid_rate:
        raise TxError(INVALID_EXCHANGE_RATE)
    operator = staking.operator(validator)
    delegation = staking.find_delegation(delegator, operator)
    if delegation is not None:
        _before_modification(staking, delegator, operator)
    else:
        delegation = Delegation(staking.show(delegator), validator.operator_address)
        for hooks in staking.hooks:
            hooks.before_delegation_created(staking.context, delegator, operator)
    if source is None:
        staking.delegate_coins(delegator, pool_of(validator), tokens)
    elif (source == BONDED) != validator.is_bonded:
        move = staking.bond_tokens if validator.is_bonded else staking.unbond_tokens
        move(tokens)
    shares = validators.add_tokens(staking, validator, tokens)
    delegation.shares = decimals.checked(delegation.shares + shares)
    staking.set_delegation(delegation)
    _after_modification(staking, delegator, operator)
    return shares


def _before_modification(staking: Staking, delegator: bytes, operator: bytes) -> None:
    for hooks in staking.hooks:
        hooks.before_delegation_modified(
            staking.context, delegator, operator, is_strict=staking.is_strict
        )


def _after_modification(staking: Staking, delegator: bytes, operator: bytes) -> None:
    for hooks in staking.hooks:
        hooks.after_delegation_modified(staking.context, delegator, operator)


def unbond(staking: Staking, delegator: bytes, operator: bytes, shares: int) -> int:
    """Remove shares of a delegation, and return the tokens that they were worth; raise
    :exc:`TxError`."""
    delegation = staking.find_delegation(delegator, operator)
    if delegation is None:
        raise TxError(NO_DELEGATOR)
    _before_modification(staking, delegator, operator)
    if delegation.shares < shares:
        raise TxError(NOT_ENOUGH_SHARES, decimals.show(delegation.shares))
    validator = staking.validator(operator)
    delegation.shares -= shares
    own = delegator == operator and not validator.jailed
    if own and decimals.truncate(validator.tokens_of(delegation.shares)) < (
        validator.min_self_delegation
    ):
        validators.jail(staking, validator)
        validator = staking.validator(operator)
    if delegation.shares:
        staking.set_delegation(delegation)
        _after_modification(staking, delegator, operator)
    else:
        staking.remove_delegation(delegation)
    tokens = validators.remove_shares(staking, validator, shares)
    if not validator.delegator_shares and validator.status == UNBONDED:
        validators.remove(staking, operator)
    return tokens


class Undelegated(NamedTuple):
    """Time at which undelegated tokens are returned, and their amount."""

    completion_time: int
    tokens: int


def undelegate(staking: Staking, delegator: bytes, operator: bytes, shares: int) -> Undelegated:
    """Remove shares of a delegation, and queue the return of the tokens; raise
    :exc:`TxError`."""
    validator = staking.validator(operator)
    unbonding = staking.find_unbonding(delegator, operator)
    entries = len(unbonding.entries) if unbonding else 0
    if entries >= staking.params().max_entries:
        raise TxError(MAX_UNBONDING_ENTRIES)
    tokens = unbond(staking, delegator, operator, shares)
    if validator.is_bonded:
        staking.unbond_tokens(tokens)
    completion = staking.now + staking.params().unbonding_time
    made = _add_unbonding_entry(staking, delegator, operator, completion, tokens)
    staking.queue_unbonding(completion, made)
    return Undelegated(completion, tokens)


def _add_unbonding_entry(
    staking: Staking, delegator: bytes, operator: bytes, completion: int, tokens: int
) -> UnbondingDelegation:
    number = staking.next_unbonding_id()
    unbonding = staking.find_unbonding(delegator, operator) or UnbondingDelegation(
        staking.show(delegator), staking.show_operator(operator)
    )
    same = (staking.height, completion)
    for entry in unbonding.entries:
        if (entry.creation_height, entry.completion_time) == same:
            entry.balance += tokens
            entry.initial_balance += tokens
            staking.set_unbonding(unbonding)
            return unbonding
    unbonding.entries.append(UnbondingEntry(*same, tokens, tokens, number))
    staking.set_unbonding(unbonding)
    key = UNBONDING_DELEGATIONS + sized(delegator) + sized(operator)
    staking.set_unbonding_id(number, key, OF_UNBONDING)
    return unbonding


def complete_unbonding(staking: Staking, delegator: bytes, operator: bytes) -> Coins:
    """Return the tokens of the mature entries to a delegator; raise :exc:`TxError`."""
    unbonding = staking.unbonding(delegator, operator)
    denom, total = staking.bond_denom(), 0
    for entry in list(unbonding.entries):
        if entry.completion_time > staking.now or entry.unbonding_on_hold_ref_count > 0:
            continue
        unbonding.entries.remove(entry)
        staking.delete_unbonding_id(entry.unbonding_id)
        if entry.balance:
            amount = (Coin(denom, entry.balance),)
            staking.context.balances.undelegate(NOT_BONDED_POOL, delegator, amount)
            total += entry.balance
    staking.set_unbonding(unbonding)
    return (Coin(denom, total),) if total else ()


def shares_to_unbond(staking: Staking, delegator: bytes, operator: bytes, tokens: int) -> int:
    """Return the shares that an amount of tokens takes, at most all shares of the delegation;
    raise :exc:`TxError` if the delegation has fewer."""
    validator = staking.validator(operator)
    owned = staking.delegation(delegator, operator).shares
    shares = validator.shares_of(tokens)
    if validator.shares_of_truncated(tokens) > owned:
        raise TxError(INVALID_REQUEST, "invalid shares amount")
    return min(shares, owned)


def redelegate(
    staking: Staking, delegator: bytes, source: bytes, destination: bytes, shares: int
) -> int:
    """Move shares of a delegation to another validator, and return the time until which they
    can be slashed for the first one; raise :exc:`TxError`."""
    if source == destination:
        raise TxError(SELF_REDELEGATION)
    to = staking.find_validator(destination)
    if to is None:
        raise TxError(BAD_REDELEGATION_DESTINATION)
    origin = staking.find_validator(source)
    if origin is None:
        raise TxError(BAD_REDELEGATION_SOURCE)
    if staking.receives_redelegation(delegator, source):
        raise TxError(TRANSITIVE_REDELEGATION)
    before = staking.find_redelegation(delegator, source, destination)
    if before is not None and len(before.entries) >= staking.params().max_entries:
        raise TxError(MAX_REDELEGATION_ENTRIES)
    tokens = unbond(staking, delegator, source, shares)
    if not tokens:
        raise TxError(TINY_REDELEGATION)
    created = delegate(staking, delegator, tokens, origin.status, to)
    begun = _begin(staking, source)
    if begun is None:
        return _NO_TIME
    height, completion = begun
    redelegation = _add_redelegation_entry(
        staking,
        (delegator, source, destination),
        RedelegationEntry(height, completion, tokens, created),
    )
    staking.queue_redelegation(completion, redelegation)
    return completion


def _begin(staking: Staking, source: bytes) -> tuple[int, int] | None:
    """Return the height and the completion time of a redelegation; ``None`` if it completes
    now, as its source is not bonded any more."""
    validator = staking.find_validator(source)
    if validator is None:
        return None
    unbonding_time = staking.params().unbonding_time
    if validator.status == BONDED:
        return staking.height, staking.now + unbonding_time
    if validator.status == UNBONDED:
        return None
    if validator.status == UNBONDING:
        return validator.unbonding_height, validator.unbonding_time
    raise Panic(f"unknown validator status: {validator.status}")


def _add_redelegation_entry(
    staking: Staking, addresses: tuple[bytes, bytes, bytes], entry: RedelegationEntry
) -> Redelegation:
    delegator, source, destination = addresses
    entry.unbonding_id = staking.next_unbonding_id()
    redelegation = staking.find_redelegation(*addresses) or Redelegation(
        staking.show(delegator),
        staking.show_operator(source),
        staking.show_operator(destination),
    )
    redelegation.entries.append(entry)
    staking.set_redelegation(redelegation)
    key = REDELEGATIONS + b"".join(map(sized, addresses))
    staking.set_unbonding_id(entry.unbonding_id, key, OF_REDELEGATION)
    return redelegation


def complete_redelegation(
    staking: Staking, delegator: bytes, source: bytes, destination: bytes
) -> Coins:
    """Remove the mature entries of a redelegation, and return their tokens; raise
    :exc:`TxError`."""
    redelegation = staking.redelegation(delegator, source, destination)
    denom, total = staking.bond_denom(), 0
    for entry in list(redelegation.entries):
        if entry.completion_time > staking.now or entry.unbonding_on_hold_ref_count > 0:
            continue
        redelegation.entries.remove(entry)
        staking.delete_unbonding_id(entry.unbonding_id)
        total += entry.initial_balance
    staking.set_redelegation(redelegation)
    return (Coin(denom, total),) if total else ()
