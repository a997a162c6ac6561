"""Query methods of x/distribution; SDK: x/distribution/keeper/grpc_query.go."""

from __future__ import annotations

from collections.abc import Mapping

from ...protocol.protobuf import message, string
from ..bank.errors import INVALID_REQUEST, TxError
from ..bank.queries.pages import Page, encode_page
from ..bank.queries.request import Method, QueryContext, coded, invalid
from ..protocol import dec_coins
from ..protocol.dec_coins import DecCoins
from ..protocol.proto import MESSAGES
from ..protocol.records import decode, encode
from ..staking.records import Delegation, Validator
from ..staking.state import sized
from . import rewards
from .records import SlashEvent
from .state import PARAMS, SLASH_EVENTS, STORE, Distribution

_DELEGATOR, _VALIDATOR = "empty delegator address", "empty validator address"


def _operator(ctx: QueryContext, number: int = 1) -> bytes:
    if not ctx.request.text(number):
        raise invalid(_VALIDATOR)
    return ctx.owner(ctx.environment.operators, number)


def _delegator(ctx: QueryContext) -> bytes:
    if not ctx.request.text(1):
        raise invalid(_DELEGATOR)
    return ctx.owner()


def _found(distribution: Distribution, operator: bytes) -> Validator:
    try:
        return distribution.staking.validator(operator)
    except TxError as error:
        raise coded(error) from None


def _delegation(distribution: Distribution, delegator: bytes, operator: bytes) -> Delegation:
    try:
        return distribution.staking.delegation(delegator, operator)
    except TxError as error:
        raise coded(error) from None


def _rewards(
    distribution: Distribution, validator: Validator, delegation: Delegation
) -> DecCoins:
    period = rewards.end_period(distribution, validator)
    return rewards.calculate(distribution, validator, delegation, period)


def _params(ctx: QueryContext) -> bytes:
    return message(1, ctx.get(STORE + PARAMS) or b"")


def _info(ctx: QueryContext) -> bytes:
    operator, distribution = _operator(ctx), Distribution(ctx.context())
    validator = _found(distribution, operator)
    delegation = _delegation(distribution, operator, operator)
    return MESSAGES.encode(
        "distribution.ValidatorDistributionInfoResponse",
        operator_address=ctx.codec.show(operator),
        self_bond_rewards=_rewards(distribution, validator, delegation),
        commission=distribution.commission(operator).commission,
    )


def _outstanding(ctx: QueryContext) -> bytes:
    operator, distribution = _operator(ctx), Distribution(ctx.context())
    _found(distribution, operator)
    return message(1, encode(distribution.outstanding(operator)))


def _commission(ctx: QueryContext) -> bytes:
    operator, distribution = _operator(ctx), Distribution(ctx.context())
    _found(distribution, operator)
    return message(1, encode(distribution.commission(operator)))


def _slashes(ctx: QueryContext) -> bytes:
    if not ctx.request.text(1):
        raise invalid(_VALIDATOR)
    first, last = ctx.request.integer(2), ctx.request.integer(3)
    if last < first:
        raise invalid(f"starting height greater than ending height ({first} > {last})")
    try:
        operator = ctx.environment.operators.parse(ctx.request.text(1))
    except TxError:
        raise invalid("invalid validator address") from None
    page = Page.decode(ctx.request.blob(4))

    def keeps(_: bytes, stored: bytes) -> bool:
        # As in the SDK, the heights are compared with the periods.
        return first <= decode(SlashEvent, stored).validator_period <= last

    pairs = ctx.range(STORE + SLASH_EVENTS + sized(operator))
    return encode_page(page, pairs, lambda key, stored: stored, keeps=keeps, is_plain=True)


def _delegation_rewards(ctx: QueryContext) -> bytes:
    if not ctx.request.text(1):
        raise invalid(_DELEGATOR)
    operator, distribution = _operator(ctx, 2), Distribution(ctx.context())
    validator = _found(distribution, operator)
    delegation = _delegation(distribution, _delegator(ctx), operator)
    return MESSAGES.encode(
        "distribution.DelegationRewardsResponse",
        rewards=_rewards(distribution, validator, delegation),
    )


def _total_rewards(ctx: QueryContext) -> bytes:
    delegator, distribution = _delegator(ctx), Distribution(ctx.context())
    staking, found = distribution.staking, []
    total: DecCoins = ()
    for delegation in staking.delegations_of(delegator):
        operator = staking.parse_operator(delegation.validator_address)
        own = _rewards(distribution, staking.validator(operator), delegation)
        found.append({"validator_address": delegation.validator_address, "reward": own})
        total = dec_coins.add(total, own)
    return MESSAGES.encode(
        "distribution.DelegationTotalRewardsResponse", rewards=found, total=total
    )


def _delegator_validators(ctx: QueryContext) -> bytes:
    staking = Distribution(ctx.context()).staking
    found = staking.delegations_of(_delegator(ctx))
    return b"".join(string(1, each.validator_address) for each in found)


def _withdraw_address(ctx: QueryContext) -> bytes:
    address = Distribution(ctx.context()).withdraw_address(_delegator(ctx))
    return string(1, ctx.codec.show(address))


def _community_pool(ctx: QueryContext) -> bytes:
    distribution = Distribution(ctx.context())
    if distribution.external_pool:
        raise coded(
            TxError(
                INVALID_REQUEST,
                "external community pool is enabled - use the CommunityPool query exposed by"
                " the external community pool",
            )
        )
    pool = distribution.fee_pool().community_pool
    return MESSAGES.encode("distribution.CommunityPoolResponse", pool=pool)


METHODS: Mapping[str, Method] = {
    "CommunityPool": _community_pool,
    "DelegationRewards": _delegation_rewards,
    "DelegationTotalRewards": _total_rewards,
    "DelegatorValidators": _delegator_validators,
    "DelegatorWithdrawAddress": _withdraw_address,
    "Params": _params,
    "ValidatorCommission": _commission,
    "ValidatorDistributionInfo": _info,
    "ValidatorOutstandingRewards": _outstanding,
    "ValidatorSlashes": _slashes,
}
"""Methods of ``/cosmos.distribution.v1beta1.Query/``."""
