"""Query methods of x/staking; SDK: x/staking/keeper/grpc_query.go."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from ...protocol.protobuf import Message, int64, message
from ..bank.errors import INTERNAL, PANIC, TxError
from ..bank.genesis_values import STATUSES
from ..bank.queries.pages import Page, encode_page
from ..bank.queries.request import GrpcError, Method, QueryContext, internal, invalid, not_found
from ..protocol import decimals
from ..protocol.coins import Coin
from ..protocol.proto import MESSAGES
from ..protocol.records import decode, encode
from .records import Delegation, Redelegation, Validator
from .state import (
    BONDED_POOL,
    DELEGATIONS,
    DELEGATIONS_BY_VALIDATOR,
    HISTORICAL_INFO,
    NOT_BONDED_POOL,
    PARAMS,
    REDELEGATIONS,
    REDELEGATIONS_BY_SOURCE,
    STORE,
    UNBONDING_BY_VALIDATOR,
    UNBONDING_DELEGATIONS,
    VALIDATORS,
    Staking,
    sized,
)

_DELEGATOR, _VALIDATOR = (
    "delegator address cannot be empty",
    "validator address cannot be empty",
)


def _staking(ctx: QueryContext) -> Staking:
    return Staking(ctx.context())


def _address(ctx: QueryContext, number: int, empty: str) -> bytes:
    if not ctx.request.text(number):
        raise invalid(empty)
    operators = ctx.environment.operators
    return ctx.owner(operators if empty == _VALIDATOR else None, number)


def _pair(ctx: QueryContext) -> tuple[bytes, bytes]:
    """Return the addresses of a delegator and an operator in the request."""
    for number, empty in ((1, _DELEGATOR), (2, _VALIDATOR)):
        if not ctx.request.text(number):
            raise invalid(empty)
    return _address(ctx, 1, _DELEGATOR), _address(ctx, 2, _VALIDATOR)


def _page(ctx: QueryContext) -> Page:
    return Page.decode(ctx.request.blob(2), internal)


def _validators(ctx: QueryContext) -> bytes:
    status = ctx.request.text(1)
    if status and status not in STATUSES:
        raise invalid(f"invalid validator status {status}")
    page = _page(ctx)

    def keeps(_: bytes, stored: bytes) -> bool:
        return not status or Message(stored).integer(4) == STATUSES[status]

    pairs = ctx.range(STORE + VALIDATORS)
    return encode_page(page, pairs, lambda key, stored: stored, keeps=keeps, is_plain=True)


def _validator(ctx: QueryContext) -> bytes:
    operator = _address(ctx, 1, _VALIDATOR)
    stored = ctx.get(STORE + VALIDATORS + sized(operator))
    if stored is None:
        raise not_found(f"validator {ctx.request.text(1)} not found")
    return message(1, stored)


def _delegation_response(staking: Staking, delegation: Delegation) -> dict[str, Any]:
    validator = staking.validator(staking.parse_operator(delegation.validator_address))
    tokens = decimals.truncate(validator.tokens_of(delegation.shares))
    balance = Coin(staking.bond_denom(), tokens)
    return {"delegation": encode(delegation), "balance": balance.encode()}


def _encoded_delegation(staking: Staking, delegation: Delegation) -> bytes:
    try:
        values = _delegation_response(staking, delegation)
    except TxError as error:
        raise internal(error.log) from None
    return MESSAGES.encode("DelegationResponse", **values)


def _validator_delegations(ctx: QueryContext) -> bytes:
    operator, staking = _address(ctx, 1, _VALIDATOR), _staking(ctx)

    def entry(key: bytes, _: bytes) -> bytes:
        return _encoded_delegation(staking, staking.delegation(key, operator))

    pairs = ctx.range(STORE + DELEGATIONS_BY_VALIDATOR + sized(operator))
    return encode_page(_page(ctx), pairs, entry, is_plain=True)


def _validator_unbondings(ctx: QueryContext) -> bytes:
    operator, staking = _address(ctx, 1, _VALIDATOR), _staking(ctx)

    def entry(key: bytes, _: bytes) -> bytes:
        return encode(staking.unbonding(key[1:], operator))

    pairs = ctx.range(STORE + UNBONDING_BY_VALIDATOR + sized(operator))
    return encode_page(_page(ctx), pairs, entry, is_plain=True)


def _delegation(ctx: QueryContext) -> bytes:
    staking, (delegator, operator) = _staking(ctx), _pair(ctx)
    delegation = staking.find_delegation(delegator, operator)
    if delegation is None:
        raise not_found(f"delegation {_not_found_for(ctx)}")
    return message(1, _encoded_delegation(staking, delegation))


def _not_found_for(ctx: QueryContext) -> str:
    delegator, validator = ctx.request.text(1), ctx.request.text(2)
    return f"with delegator {delegator} not found for validator {validator}"


def _unbonding(ctx: QueryContext) -> bytes:
    staking, (delegator, operator) = _staking(ctx), _pair(ctx)
    unbonding = staking.find_unbonding(delegator, operator)
    if unbonding is None:
        raise not_found(f"unbonding delegation {_not_found_for(ctx)}")
    return message(1, encode(unbonding))


def _delegator_delegations(ctx: QueryContext) -> bytes:
    delegator, staking = _address(ctx, 1, _DELEGATOR), _staking(ctx)

    def entry(_: bytes, stored: bytes) -> bytes:
        return _encoded_delegation(staking, decode(Delegation, stored))

    pairs = ctx.range(STORE + DELEGATIONS + sized(delegator))
    return encode_page(_page(ctx), pairs, entry, is_plain=True)


def _delegator_unbondings(ctx: QueryContext) -> bytes:
    delegator = _address(ctx, 1, _DELEGATOR)
    pairs = ctx.range(STORE + UNBONDING_DELEGATIONS + sized(delegator))
    return encode_page(_page(ctx), pairs, lambda key, stored: stored, is_plain=True)


def _delegator_validators(ctx: QueryContext) -> bytes:
    delegator, staking = _address(ctx, 1, _DELEGATOR), _staking(ctx)

    def entry(_: bytes, stored: bytes) -> bytes:
        operator = decode(Delegation, stored).validator_address
        try:
            return encode(staking.validator(staking.parse_operator(operator)))
        except TxError as error:
            raise internal(error.log) from None

    pairs = ctx.range(STORE + DELEGATIONS + sized(delegator))
    return encode_page(_page(ctx), pairs, entry, is_plain=True)


def _delegator_validator(ctx: QueryContext) -> bytes:
    staking, (delegator, operator) = _staking(ctx), _pair(ctx)
    try:
        staking.delegation(delegator, operator)
        return message(1, encode(staking.validator(operator)))
    except TxError as error:
        raise internal(error.log) from None


def _historical_info(ctx: QueryContext) -> bytes:
    height = int64(ctx.request.integer(1))
    if height < 0:
        raise invalid("height cannot be negative")
    stored = ctx.get(STORE + HISTORICAL_INFO + height.to_bytes(8))
    if stored is None:
        raise not_found(f"historical info for height {height} not found")
    return message(1, stored)


def _redelegations(ctx: QueryContext) -> bytes:
    staking = _staking(ctx)
    delegator, source, destination = (ctx.request.text(number) for number in (1, 2, 3))
    try:
        if delegator and source and destination:
            return _one_redelegation(ctx, staking)
        if source and not delegator and not destination:
            return _redelegations_from(ctx, staking)
        return _redelegations_of(ctx, staking)
    except GrpcError as error:
        raise internal(error.text) from None
    except TxError as error:
        if error.code is PANIC:
            raise
        raise internal(error.log) from None


def _one_redelegation(ctx: QueryContext, staking: Staking) -> bytes:
    delegator, source, destination = (ctx.request.text(number) for number in (1, 2, 3))
    found = staking.find_redelegation(
        staking.parse(delegator),
        staking.parse_operator(source),
        staking.parse_operator(destination),
    )
    if found is None:
        raise not_found(
            f"redelegation not found for delegator address {delegator} from validator address"
            f" {source}"
        )
    return message(1, _redelegation_response(staking, found))


def _redelegations_page(ctx: QueryContext) -> Page:
    return Page.decode(ctx.request.blob(4), partial(TxError, INTERNAL))


def _redelegations_from(ctx: QueryContext, staking: Staking) -> bytes:
    source = staking.parse_operator(ctx.request.text(2))

    def entry(key: bytes, _: bytes) -> bytes:
        delegator, destination = key[1 : 1 + key[0]], key[2 + key[0] :]
        found = staking.redelegation(delegator, source, destination)
        return _redelegation_response(staking, found)

    pairs = ctx.range(STORE + REDELEGATIONS_BY_SOURCE + sized(source))
    return encode_page(_redelegations_page(ctx), pairs, entry, is_plain=True)


def _redelegations_of(ctx: QueryContext, staking: Staking) -> bytes:
    delegator = staking.parse(ctx.request.text(1))

    def entry(_: bytes, stored: bytes) -> bytes:
        return _redelegation_response(staking, decode(Redelegation, stored))

    pairs = ctx.range(STORE + REDELEGATIONS + sized(delegator))
    return encode_page(_redelegations_page(ctx), pairs, entry, is_plain=True)


def _redelegation_response(staking: Staking, redelegation: Redelegation) -> bytes:
    operator = staking.parse_operator(redelegation.validator_dst_address)
    validator: Validator = staking.validator(operator)
    entries = [
        {
            "redelegation_entry": encode(each),
            "balance": decimals.truncate(validator.tokens_of(each.shares_dst)),
        }
        for each in redelegation.entries
    ]
    own = Redelegation(
        redelegation.delegator_address,
        redelegation.validator_src_address,
        redelegation.validator_dst_address,
    )
    return MESSAGES.encode("RedelegationResponse", redelegation=encode(own), entries=entries)


def _pool(ctx: QueryContext) -> bytes:
    staking = _staking(ctx)
    denom, balances = staking.bond_denom(), staking.context.balances
    not_bonded, bonded = (
        balances.get(staking.context.accounts.module(name), denom)
        for name in (NOT_BONDED_POOL, BONDED_POOL)
    )
    return message(
        1, MESSAGES.encode("Pool", not_bonded_tokens=not_bonded, bonded_tokens=bonded)
    )


def _params(ctx: QueryContext) -> bytes:
    return message(1, ctx.get(STORE + PARAMS) or b"")


METHODS: Mapping[str, Method] = {
    "Delegation": _delegation,
    "DelegatorDelegations": _delegator_delegations,
    "DelegatorUnbondingDelegations": _delegator_unbondings,
    "DelegatorValidator": _delegator_validator,
    "DelegatorValidators": _delegator_validators,
    "HistoricalInfo": _historical_info,
    "Params": _params,
    "Pool": _pool,
    "Redelegations": _redelegations,
    "UnbondingDelegation": _unbonding,
    "Validator": _validator,
    "ValidatorDelegations": _validator_delegations,
    "ValidatorUnbondingDelegations": _validator_unbondings,
    "Validators": _validators,
}
"""Methods of ``/cosmos.staking.v1beta1.Query/``."""
