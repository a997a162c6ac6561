"""Genesis state of x/staking; SDK: x/staking/keeper/genesis.go."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ..bank.context import Context
from ..bank.genesis_json import Item
from ..bank.genesis_values import read
from ..bank.params import read_params
from ..protocol import coins, decimals
from ..protocol.coins import Coin
from ..protocol.records import encode
from . import validators
from .records import (
    BONDED,
    UNBONDED,
    UNBONDING,
    Delegation,
    Params,
    Redelegation,
    UnbondingDelegation,
    Validator,
)
from .state import BONDED_POOL, NOT_BONDED_POOL, PARAMS, Staking, pool_of


def init(context: Context, state: Item) -> None:
    """Store the state; raise :exc:`~flask_noderpc.cosmos.bank.genesis_json.InvalidState`."""
    # SDK: the state begins at height 0, also if the first block has another height.
    context = replace(context, environment=replace(context.environment, height=0))
    staking = Staking(context)
    params = read_params(Params, state["params"])
    staking.store.set(PARAMS, encode(params))
    staking.set_last_total_power(state["last_total_power"].whole_number(63))
    for rotation in state["pending_consensus_key_rotations"]:
        rotation.refuse("rotations of keys are not supported; export the state after them")
    is_exported = state["exported"].flag()
    tokens = _add_validators(staking, state, is_exported=is_exported)
    _add_delegations(staking, state, is_exported=is_exported)
    tokens[NOT_BONDED_POOL] += _add_unbondings(staking, state)
    _add_redelegations(staking, state)
    for name, amount in tokens.items():
        _check_pool(context, state, name, Coin(params.bond_denom, amount))
    if is_exported:
        _set_last_powers(staking, state)
    else:
        context.validator_updates += validators.apply_powers(staking)


def _validator(staking: Staking, given: Item) -> Validator:
    validator = read(Validator, given)
    given["operator_address"].read(staking.parse_operator, "an address")
    given["consensus_pubkey"].read(lambda _: validator.consensus_address, "a key")
    if validator.status not in (UNBONDED, UNBONDING, BONDED):
        given["status"].refuse("expected BOND_STATUS_BONDED, or another state of a validator")
    if validator.jailed and validator.is_bonded:
        given["jailed"].refuse("expected no validator that is bonded and jailed")
    if not validator.delegator_shares and validator.status != UNBONDING:
        given["delegator_shares"].refuse("expected more than 0")
    rates, shown = (
        validator.commission.commission_rates,
        given["commission"]["commission_rates"],
    )
    if rates.max_rate > decimals.ONE:
        shown["max_rate"].refuse("expected a number from 0 to 1")
    for name in ("rate", "max_change_rate"):
        if getattr(rates, name) > rates.max_rate:
            shown[name].refuse("expected at most max_rate")
    return validator


def _add_validators(staking: Staking, state: Item, *, is_exported: bool) -> dict[str, int]:
    """Store the validators, and return the tokens of their pools."""
    tokens = {BONDED_POOL: 0, NOT_BONDED_POOL: 0}
    for each in state["validators"]:
        validator = _validator(staking, each)
        if staking.find_by_consensus_address(validator.consensus_address) is not None:
            each["consensus_pubkey"].refuse("expected another key for each validator")
        validators.add(staking, validator, is_exported=is_exported)
        if validator.status == UNBONDING:
            staking.queue_validator(validator)
        tokens[pool_of(validator)] += validator.tokens
    return tokens


def _add_delegations(staking: Staking, state: Item, *, is_exported: bool) -> None:
    shares = Counter[str]()
    for each in state["delegations"]:
        delegation = _add_delegation(staking, each, is_exported=is_exported)
        shares[delegation.validator_address] += delegation.shares
    for each in state["validators"]:
        operator = each["operator_address"].required_text()
        validator = staking.validator(staking.parse_operator(operator))
        if shares[operator] != validator.delegator_shares:
            each["delegator_shares"].refuse(
                f"expected {decimals.show(shares[operator])}, the sum of the shares of its"
                " delegations"
            )


def _add_delegation(staking: Staking, given: Item, *, is_exported: bool) -> Delegation:
    delegation = read(Delegation, given)
    delegator = given["delegator_address"].read(staking.parse, "an address")
    operator = given["validator_address"].read(staking.parse_operator, "an address")
    if staking.find_validator(operator) is None:
        given["validator_address"].refuse("expected the address of a validator in this state")
    if not delegation.shares:
        given["shares"].refuse("expected more than 0")
    if staking.find_delegation(delegator, operator) is not None:
        given.refuse("expected one delegation of each delegator to a validator")
    for hooks in () if is_exported else staking.hooks:
        hooks.before_delegation_created(staking.context, delegator, operator)
    staking.set_delegation(delegation)
    for hooks in () if is_exported else staking.hooks:
        hooks.after_delegation_modified(staking.context, delegator, operator)
    return delegation


def _add_unbondings(staking: Staking, state: Item) -> int:
    """Store the unbonding delegations, and return their tokens."""
    tokens = 0
    for each in state["unbonding_delegations"]:
        unbonding = read(UnbondingDelegation, each)
        each["delegator_address"].read(staking.parse, "an address")
        each["validator_address"].read(staking.parse_operator, "an address")
        staking.set_unbonding(unbonding)
        for entry in unbonding.entries:
            staking.queue_unbonding(entry.completion_time, unbonding)
            tokens += entry.balance
    return tokens


def _add_redelegations(staking: Staking, state: Item) -> None:
    for each in state["redelegations"]:
        redelegation = read(Redelegation, each)
        each["delegator_address"].read(staking.parse, "an address")
        for name in ("validator_src_address", "validator_dst_address"):
            each[name].read(staking.parse_operator, "an address")
        staking.set_redelegation(redelegation)
        for entry in redelegation.entries:
            staking.queue_redelegation(entry.completion_time, redelegation)


def _check_pool(context: Context, state: Item, name: str, expected: Coin) -> None:
    """Raise :exc:`~flask_noderpc.cosmos.bank.genesis_json.InvalidState` if a pool's account
    has other coins than the validators of its state."""
    owned = context.balances.all_of(context.accounts.module(name))
    if owned != ((expected,) if expected.value else ()):
        state.refuse(
            f"expected a balance of the account {name} that equals the tokens of its"
            f" validators, {expected}, got {coins.show(owned) or 'no coins'}"
        )


def _set_last_powers(staking: Staking, state: Item) -> None:
    for each in state["last_validator_powers"]:
        operator = each["address"].read(staking.parse_operator, "an address")
        validator = staking.find_validator(operator)
        if validator is None or not validator.is_bonded:
            each["address"].refuse("expected the address of a bonded validator in this state")
        power = each["power"].whole_number(63)
        staking.set_last_power(operator, power)
        staking.context.validator_updates.append(validator.update(power))
