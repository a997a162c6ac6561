"""Query methods of x/auth; SDK: x/auth/keeper/grpc_query.go."""

from __future__ import annotations

from ....protocol.protobuf import blob, message, string
from ..accounts import (
    ACCOUNT_KEY,
    PARAMS_KEY,
    base_of,
    module_address,
    number_key,
)
from ..errors import INVALID_REQUEST, TxError
from ..state import ACCOUNTS
from .pages import Page, encode_page
from .request import Method, QueryContext, invalid, not_found


def _stored(ctx: QueryContext, empty: str) -> bytes:
    text = ctx.request.text(1)
    if not text:
        raise invalid(empty)
    stored = ctx.get(ACCOUNTS + ACCOUNT_KEY + ctx.owner())
    if stored is None:
        raise not_found(f"account {text} not found")
    return stored


def _account(ctx: QueryContext) -> bytes:
    return message(1, _stored(ctx, "Address cannot be empty"))


def _account_info(ctx: QueryContext) -> bytes:
    return message(1, base_of(_stored(ctx, "address cannot be empty")))


def _accounts(ctx: QueryContext) -> bytes:
    page = Page.decode(ctx.request.blob(1))
    return encode_page(page, ctx.range(ACCOUNTS + ACCOUNT_KEY), lambda key, stored: stored)


def _params(ctx: QueryContext) -> bytes:
    return message(1, ctx.get(ACCOUNTS + PARAMS_KEY) or b"")


def _module(ctx: QueryContext, name: str) -> bytes | None:
    return ctx.get(ACCOUNTS + ACCOUNT_KEY + module_address(name))


def _module_accounts(ctx: QueryContext) -> bytes:
    found = (_module(ctx, name) for name in sorted(ctx.environment.module_accounts))
    return b"".join(message(1, stored) for stored in found if stored is not None)


def _module_account(ctx: QueryContext) -> bytes:
    name = ctx.request.text(1)
    if not name:
        raise invalid("module name is empty")
    stored = _module(ctx, name) if name in ctx.environment.module_accounts else None
    if stored is None:
        raise not_found(f"account {name} not found")
    return message(1, stored)


def _prefix(ctx: QueryContext) -> bytes:
    return string(1, ctx.codec.prefix)


def _show(ctx: QueryContext) -> bytes:
    address = ctx.request.blob(1)
    if not address:
        raise TxError(INVALID_REQUEST, "empty address bytes is not allowed")
    return string(1, ctx.codec.show(address))


def _parse(ctx: QueryContext) -> bytes:
    return blob(1, ctx.owner())


def _address_by_number(ctx: QueryContext) -> bytes:
    if ctx.request.integer(1):
        raise invalid("requesting with id isn't supported, try to request using account-id")
    number = ctx.request.integer(2)
    address = ctx.get(ACCOUNTS + number_key(number))
    if address is None:
        raise not_found(f"account address not found with account number {number}")
    return string(1, ctx.codec.show(address))


METHODS: dict[str, Method] = {
    "Account": _account,
    "AccountAddressByID": _address_by_number,
    "AccountInfo": _account_info,
    "Accounts": _accounts,
    "AddressBytesToString": _show,
    "AddressStringToBytes": _parse,
    "Bech32Prefix": _prefix,
    "ModuleAccountByName": _module_account,
    "ModuleAccounts": _module_accounts,
    "Params": _params,
}
"""Methods of ``/cosmos.auth.v1beta1.Query/``."""
