"""Messages of x/distribution; SDK: x/distribution/keeper/msg_server.go."""

from __future__ import annotations

from typing import Any

from ..bank.balances import event
from ..bank.context import Context
from ..bank.errors import (
    INVALID_COINS,
    INVALID_REQUEST,
    UNAUTHORIZED,
    TxError,
)
from ..bank.messages import Handler, check_amount, of_governance, parse_address
from ..protocol import coins, dec_coins
from ..protocol.coins import Coins
from ..protocol.fields import Values, declared
from ..protocol.messages import MessageType
from ..protocol.proto import MESSAGES
from ..protocol.records import encode
from ..staking.messages import parse_operator
from . import rewards
from .errors import BAD_DISTRIBUTION, NO_COMMISSION, WITHDRAW_ADDRESS_DISABLED
from .records import AccumulatedCommission, FeePool, OutstandingRewards, Params
from .state import ACCOUNT, PARAMS, STORE, Distribution

_PACKAGE = "cosmos.distribution.v1beta1"


def _type(name: str, signer: str, amino_name: str, **types: Any) -> MessageType:
    kind = declared(f"*types.{name}", f"{_PACKAGE}.{name}", signer=signer, **types)
    return MessageType(
        f"/{_PACKAGE}.{name}",
        kind,
        f"cosmos-sdk/{amino_name}",
        is_signed_by_operator=signer == "validator_address",
    )


MSG_SET_WITHDRAW_ADDRESS = _type(
    "MsgSetWithdrawAddress", "delegator_address", "MsgModifyWithdrawAddress"
)
MSG_WITHDRAW_REWARD = _type(
    "MsgWithdrawDelegatorReward", "delegator_address", "MsgWithdrawDelegationReward"
)
MSG_WITHDRAW_COMMISSION = _type(
    "MsgWithdrawValidatorCommission", "validator_address", "MsgWithdrawValCommission"
)
MSG_FUND_COMMUNITY_POOL = _type("MsgFundCommunityPool", "depositor", "MsgFundCommunityPool")
MSG_DEPOSIT_REWARDS = _type(
    "MsgDepositValidatorRewardsPool", "depositor", "distr/MsgDepositValRewards"
)


MSG_UPDATE_PARAMS = _type(
    "MsgUpdateParams",
    "authority",
    "distribution/MsgUpdateParams",
    params=declared("*types.Params", "DistributionParams"),
)
MSG_SPEND_COMMUNITY_POOL = _type(
    "MsgCommunityPoolSpend", "authority", "distr/MsgCommunityPoolSpend"
)


_EXTERNAL = "external community pool is enabled"


def _set_withdraw_address(context: Context, message: Values) -> None:
    distribution = Distribution(context)
    delegator = parse_address(context.codec, "delegator", message["delegator_address"])
    address = parse_address(context.codec, "withdraw", message["withdraw_address"])
    if context.accounts.is_blocked(address):
        shown = context.codec.show(address)
        raise TxError(UNAUTHORIZED, f"{shown} is not allowed to receive external funds")
    if not distribution.params().withdraw_addr_enabled:
        raise TxError(WITHDRAW_ADDRESS_DISABLED)
    shown = context.codec.show(address)
    context.events.append(event("set_withdraw_address", withdraw_address=shown))
    distribution.set_withdraw_address(delegator, address)


def _withdraw_reward(context: Context, message: Values) -> bytes:
    distribution = Distribution(context)
    operator = parse_operator(context, message["validator_address"])
    delegator = parse_address(context.codec, "delegator", message["delegator_address"])
    validator = distribution.staking.validator(operator)
    delegation = distribution.staking.delegation(delegator, operator)
    to = rewards.destination(distribution, delegator, is_strict=True)
    paid = rewards.withdraw(distribution, validator, delegation, to)
    rewards.begin_delegation(distribution, delegator, operator)
    return _paid("MsgWithdrawDelegatorReward", paid)


def _paid(name: str, amount: Coins) -> bytes:
    encoded = [coin.encode() for coin in amount]
    return MESSAGES.encode(f"{_PACKAGE}.{name}Response", amount=encoded)


def _withdraw_commission(context: Context, message: Values) -> bytes:
    distribution = Distribution(context)
    operator = parse_operator(context, message["validator_address"])
    accumulated = distribution.commission(operator).commission
    if not accumulated:
        raise TxError(NO_COMMISSION)
    paid, rest = dec_coins.truncate(accumulated)
    distribution.set_commission(operator, AccumulatedCommission([*rest]))
    outstanding = distribution.outstanding(operator).rewards
    left = dec_coins.subtract(outstanding, dec_coins.of(paid))
    distribution.set_outstanding(operator, OutstandingRewards([*left]))
    if paid:
        to = rewards.destination(distribution, operator, is_strict=True)
        assert to.address is not None
        context.balances.send_from_module(ACCOUNT, to.address, paid)
    context.events.append(event("withdraw_commission", amount=coins.show(paid)))
    return _paid("MsgWithdrawValidatorCommission", paid)


def _fund_community_pool(context: Context, message: Values) -> None:
    distribution = Distribution(context)
    if distribution.external_pool:
        text = "use the FundCommunityPool method exposed by the external community pool"
        raise TxError(INVALID_REQUEST, f"{_EXTERNAL} - {text}")
    depositor = parse_address(context.codec, "depositor", message["depositor"])
    check_pool_amount(message["amount"])
    distribution.fund_community_pool(depositor, message["amount"])


def _spend_community_pool(context: Context, message: Values) -> bytes | None:
    # The SDK looks at the pool before the authority.
    if Distribution(context).external_pool:
        text = "use the DistributFromCommunityPool method exposed by the external community"
        raise TxError(INVALID_REQUEST, f"{_EXTERNAL} -  {text} pool")
    return _SPEND.handle(context, message)


def _spend(context: Context, message: Values) -> None:
    amount: Coins = message["amount"]
    check_pool_amount(amount)
    recipient = context.codec.parse(message["recipient"])
    if context.accounts.is_blocked(recipient):
        shown = message["recipient"]
        raise TxError(UNAUTHORIZED, f"{shown} is not allowed to receive external funds")
    distribution = Distribution(context)
    pool = distribution.fee_pool()
    try:
        left = dec_coins.subtract(pool.community_pool, dec_coins.of(amount))
    except OverflowError:
        raise TxError(BAD_DISTRIBUTION) from None
    context.balances.send_from_module(ACCOUNT, recipient, amount)
    distribution.set_fee_pool(FeePool([*left]))


def _update_params(context: Context, message: Values) -> None:
    params = Params(**message["params"])
    if params.base_proposer_reward or params.bonus_proposer_reward:
        raise TxError(
            INVALID_REQUEST,
            "cannot update base or bonus proposer reward because these are deprecated fields",
        )
    params.check()
    context.store(STORE).set(PARAMS, encode(params))


def check_pool_amount(amount: Coins) -> None:
    """Raise :exc:`TxError` for coins that can't be paid to the community, or by it."""
    if not amount:
        raise TxError(INVALID_COINS, "amount cannot be nil")
    check_amount(amount)


def _deposit_rewards(context: Context, message: Values) -> None:
    distribution = Distribution(context)
    # Errors of these addresses have no code of their own in the SDK.
    depositor = context.codec.parse(message["depositor"])
    amount: Coins = message["amount"]
    context.balances.send_to_module(depositor, ACCOUNT, amount)
    operator = context.environment.operators.parse(message["validator_address"])
    validator = distribution.staking.validator(operator)
    rewards.allocate_to(distribution, validator, dec_coins.of(amount))
    if validator.tokens:
        current = distribution.current(operator)
        distribution.historical(operator, current.period - 1)


_SPEND = of_governance(MSG_SPEND_COMMUNITY_POOL, _spend)

HANDLERS = (
    Handler(MSG_SET_WITHDRAW_ADDRESS, _set_withdraw_address),
    Handler(MSG_WITHDRAW_REWARD, _withdraw_reward),
    Handler(MSG_WITHDRAW_COMMISSION, _withdraw_commission),
    Handler(MSG_FUND_COMMUNITY_POOL, _fund_community_pool),
    Handler(MSG_DEPOSIT_REWARDS, _deposit_rewards),
    of_governance(MSG_UPDATE_PARAMS, _update_params),
    Handler(MSG_SPEND_COMMUNITY_POOL, _spend_community_pool),
)
"""Handlers of x/distribution."""
