"""Query methods of x/bank; SDK: x/bank/keeper/grpc_query.go."""

from __future__ import annotations

from collections.abc import Callable

from ....protocol.protobuf import Message, integer, message, string
from ...protocol.coins import Coin
from ..balances import METADATA, PARAMS, SEND_ENABLED, SUPPLY, balance_key, holders_key
from ..errors import Panic
from ..state import BANK
from .pages import Page, encode_page
from .request import Method, QueryContext, internal, invalid, not_found

_SEND_ENABLED_PAGE = 99


def _amount(ctx: QueryContext, address: bytes, denom: str) -> Coin:
    return Coin(denom, int(ctx.get(BANK + balance_key(address, denom)) or b"0"))


def _coin(denom: bytes, amount: bytes) -> bytes:
    return Coin(denom.decode(), int(amount)).encode()


def _balance(ctx: QueryContext) -> bytes:
    denom = ctx.denom(2)
    return message(1, _amount(ctx, ctx.address(1), denom).encode())


def _spendable_balance(ctx: QueryContext) -> bytes:
    address = ctx.address(1)
    balance = _amount(ctx, address, ctx.denom(2))
    spendable = balance.value - ctx.context().balances.locked(address)[balance.denom]
    if spendable < 0:
        raise Panic("negative coin amount")
    return message(1, Coin(balance.denom, spendable).encode())


def _spendable_balances(ctx: QueryContext) -> bytes:
    balances, address = ctx.context().balances, ctx.address(1)
    locked = balances.locked(address)
    # SDK: if one balance is less than what is locked of it, nothing is spendable.
    is_short = any(balances.get(address, each) < amount for each, amount in locked.items())

    def spendable(denom: bytes, amount: bytes) -> bytes:
        left = 0 if is_short else int(amount) - locked[denom.decode()]
        return Coin(denom.decode(), left).encode()

    return _balances(ctx, spendable)


def _balances(ctx: QueryContext, entry: Callable[[bytes, bytes], bytes] = _coin) -> bytes:
    address = ctx.address(1)
    page = Page.decode(ctx.request.blob(2), lambda text: invalid(f"paginate: {text}"))
    return encode_page(page, ctx.range(BANK + balance_key(address)), entry)


def _all_balances(ctx: QueryContext) -> bytes:
    if not ctx.request.integer(3):
        return _balances(ctx)
    found = Message(_balances(ctx))
    coins = (_in_display_denom(ctx, each) for each in found.blobs(1))
    return b"".join(message(1, coin) for coin in coins) + message(2, found.blob(2))


def _in_display_denom(ctx: QueryContext, coin: bytes) -> bytes:
    """Return a coin under its display denomination, with the amount unchanged as in the
    SDK."""
    given = Message(coin)
    stored = ctx.get(BANK + METADATA + given.blob(1))
    if stored is None:
        return coin
    return string(1, Message(stored).text(4)) + string(2, given.text(2))


def _total_supply(ctx: QueryContext) -> bytes:
    page = Page.decode(ctx.request.blob(1), internal)
    return encode_page(page, ctx.range(BANK + SUPPLY), _coin)


def _supply_of(ctx: QueryContext) -> bytes:
    denom = ctx.denom(1)
    amount = ctx.get(BANK + SUPPLY + denom.encode())
    return message(1, Coin(denom, int(amount or b"0")).encode())


def _metadata(ctx: QueryContext) -> bytes:
    denom = ctx.denom(1)
    stored = ctx.get(BANK + METADATA + denom.encode())
    if stored is None:
        raise not_found(f"client metadata for denom {denom}")
    return message(1, stored)


def _denoms_metadata(ctx: QueryContext) -> bytes:
    page = Page.decode(ctx.request.blob(1), internal)
    return encode_page(
        page, ctx.range(BANK + METADATA), lambda key, stored: stored, is_plain=True
    )


def _owners(ctx: QueryContext) -> bytes:
    denom = ctx.denom(1)

    def owner(key: bytes, value: bytes) -> bytes:
        # The key is the length of the address, then the address.
        address = key[1:]
        coin = _amount(ctx, address, denom)
        return string(1, ctx.codec.show(address)) + message(2, coin.encode())

    page = Page.decode(ctx.request.blob(2))
    return encode_page(page, ctx.range(BANK + holders_key(denom)), owner)


def _send_enabled(ctx: QueryContext) -> bytes:
    denoms = ctx.request.blobs(1)
    if denoms:
        found = ((denom, ctx.get(BANK + SEND_ENABLED + denom)) for denom in denoms)
        return b"".join(
            message(1, _enabled(denom, value)) for denom, value in found if value is not None
        )
    page = Page.decode(ctx.request.blob(_SEND_ENABLED_PAGE), internal)
    return encode_page(page, ctx.range(BANK + SEND_ENABLED), _enabled, _SEND_ENABLED_PAGE)


def _enabled(denom: bytes, value: bytes) -> bytes:
    return string(1, denom.decode()) + integer(2, Message(value).integer(1))


def _params(ctx: QueryContext) -> bytes:
    return message(1, ctx.get(BANK + PARAMS) or b"")


METHODS: dict[str, Method] = {
    "AllBalances": _all_balances,
    "Balance": _balance,
    "DenomMetadata": _metadata,
    "DenomMetadataByQueryString": _metadata,
    "DenomOwners": _owners,
    "DenomOwnersByQuery": _owners,
    "DenomsMetadata": _denoms_metadata,
    "Params": _params,
    "SendEnabled": _send_enabled,
    "SpendableBalanceByDenom": _spendable_balance,
    "SpendableBalances": _spendable_balances,
    "SupplyOf": _supply_of,
    "TotalSupply": _total_supply,
}
"""Methods of ``/cosmos.bank.v1beta1.Query/``."""
