"""The module protocolpool: messages, queries and genesis; SDK: x/protocolpool."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from ...domain.time import to_go_text
from ...protocol.protobuf import message
from ..bank.context import Context
from ..bank.errors import INTERNAL, Code, TxError
from ..bank.genesis_json import Item
from ..bank.genesis_values import read
from ..bank.messages import Handler, of_governance, parse_address
from ..bank.module import Module
from ..bank.queries.request import QueryContext, not_found
from ..distribution.messages import check_pool_amount
from ..protocol import decimals
from ..protocol.fields import Values, declared
from ..protocol.messages import MessageType
from ..protocol.proto import MESSAGES
from ..protocol.records import encode
from .proto import ROUTES
from .state import ACCOUNT, ESCROW, FUNDS, PARAMS, STORE, ContinuousFund, Params, Pool

_PACKAGE = "cosmos.protocolpool.v1"
_INVALID_SIGNER = Code(
    2, "expected authority account as only signer for community pool spend message", ACCOUNT
)


def _type(name: str, signer: str = "authority", **types: Any) -> MessageType:
    full = f"{_PACKAGE}.{name}"
    kind = declared(f"*types.{name}", full, signer=signer, omits=("amount",), **types)
    # SDK: a message without an amino name has its type URL.
    return MessageType(f"/{full}", kind, f"/{full}", f"cosmos-sdk/pp/{name}")


MSG_FUND = _type("MsgFundCommunityPool", "depositor")
MSG_SPEND = _type("MsgCommunityPoolSpend")
MSG_CREATE_FUND = _type("MsgCreateContinuousFund")
MSG_CANCEL_FUND = _type("MsgCancelContinuousFund")
MSG_UPDATE_PARAMS = _type(
    "MsgUpdateParams",
    params=declared("*types.Params", "PoolParams", omits=("enabled_distribution_denoms",)),
)


def _fund_community_pool(context: Context, given: Values) -> None:
    depositor = parse_address(context.codec, "depositor", given["depositor"])
    check_pool_amount(given["amount"])
    context.balances.send_to_module(depositor, ACCOUNT, given["amount"])


def _spend(context: Context, given: Values) -> None:
    check_pool_amount(given["amount"])
    recipient = context.codec.parse(given["recipient"])
    context.balances.send_from_module(ACCOUNT, recipient, given["amount"])


def _create_fund(context: Context, given: Values) -> None:
    pool, recipient = Pool(context), context.codec.parse(given["recipient"])
    fund = ContinuousFund(given["recipient"], given["percentage"], given["expiry"])
    if context.accounts.is_blocked(recipient):
        text = f"recipient is blocked in the bank keeper: {fund.recipient}"
        raise TxError(INTERNAL, text)
    if pool.store.has(FUNDS + recipient):
        text = f"continuous fund already exists for recipient {fund.recipient}"
        raise TxError(INTERNAL, text)
    try:
        fund.check()
    except ValueError as error:
        raise TxError(INTERNAL, f"invalid continuous fund: {error}") from None
    now = context.environment.time
    if fund.expiry is not None and fund.expiry < now:
        text = f"expiry time {to_go_text(fund.expiry)} cannot be less than the current block"
        raise TxError(INTERNAL, f"{text} time {to_go_text(now)}")
    total = sum(each.part for _, each in pool.funds())
    if total + fund.part > decimals.ONE:
        raise TxError(
            INTERNAL,
            "cannot set continuous fund proposal\ntotal funds percentage exceeds 100\n"
            f"current total percentage: {decimals.truncate(decimals.mul_int(total, 100))}",
        )
    pool.set_fund(recipient, fund)


def _cancel_fund(context: Context, given: Values) -> bytes:
    pool, recipient = Pool(context), context.codec.parse(given["recipient"])
    if not pool.store.has(FUNDS + recipient):
        text = f"cannot cancel continuous fund for recipient {given['recipient']}"
        raise TxError(INTERNAL, f"{text} - does not exist")
    pool.store.delete(FUNDS + recipient)
    return MESSAGES.encode(
        f"{_PACKAGE}.MsgCancelContinuousFundResponse",
        canceled_time=context.environment.time,
        canceled_height=context.environment.height,
        recipient=given["recipient"],
    )


def _update_params(context: Context, given: Values) -> None:
    params = Params(**given["params"])
    try:
        params.check()
    except ValueError as error:
        raise TxError(INTERNAL, f"invalid params: {error}") from None
    context.store(STORE).set(PARAMS, encode(params))


def _query_pool(ctx: QueryContext) -> bytes:
    pool = Pool(ctx.context()).owned()
    return b"".join(message(1, coin.encode()) for coin in pool)


def _query_fund(ctx: QueryContext) -> bytes:
    stored = ctx.get(STORE + FUNDS + ctx.address(1))
    if stored is None:
        raise not_found(f"not found {ctx.request.text(1)}")
    return message(1, stored)


def _query_funds(ctx: QueryContext) -> bytes:
    return b"".join(message(1, stored) for _, stored in ctx.range(STORE + FUNDS))


def _query_params(ctx: QueryContext) -> bytes:
    return message(1, ctx.get(STORE + PARAMS) or b"")


class ProtocolPoolModule(Module):
    """The community's coins, and funds that get a part of them."""

    name = ACCOUNT
    service = f"{_PACKAGE}.Query"
    accounts = MappingProxyType({ACCOUNT: (), ESCROW: ()})
    community_pool = ESCROW
    handlers = (
        Handler(MSG_FUND, _fund_community_pool),
        of_governance(MSG_SPEND, _spend, _INVALID_SIGNER),
        of_governance(MSG_CREATE_FUND, _create_fund, _INVALID_SIGNER),
        of_governance(MSG_CANCEL_FUND, _cancel_fund, _INVALID_SIGNER),
        of_governance(MSG_UPDATE_PARAMS, _update_params, _INVALID_SIGNER),
    )
    queries = MappingProxyType(
        {
            "CommunityPool": _query_pool,
            "ContinuousFund": _query_fund,
            "ContinuousFunds": _query_funds,
            "Params": _query_params,
        }
    )
    routes = ROUTES

    def init_genesis(self, context: Context, state: Item) -> None:
        pool, given = Pool(context), state["params"]
        params = read(Params, given)
        given.read(lambda _: params.check(), "parameters")
        pool.store.set(PARAMS, encode(params))
        total, seen = 0, set()
        for each in state["continuous_funds"]:
            fund = read(ContinuousFund, each)
            try:
                fund.check()
            except ValueError as error:
                each.refuse(str(error))
            total += fund.part
            if total > decimals.ONE:
                each.refuse("total percentage cannot be greater than 100")
            if fund.recipient in seen:
                text = "duplicated continuous fund recipient address"
                each.refuse(f"{text}: {fund.recipient}")
            seen.add(fund.recipient)
            recipient = each["recipient"].read(context.codec.parse, "an address")
            if context.accounts.is_blocked(recipient):
                each.refuse(f"recipient is blocked in the bank keeper: {fund.recipient}")
            if fund.expiry is None or fund.expiry >= context.environment.time:
                pool.set_fund(recipient, fund)

    def begin_block(self, context: Context) -> None:
        pool = Pool(context)
        if context.environment.height % pool.params().distribution_frequency == 0:
            pool.distribute()
