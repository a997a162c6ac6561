"""Query methods of x/auth; SDK: x/auth/keeper/grpc_query.go."""

from __future__ import annotations

from ....protocol.protobuf import Message, message, string
from ..accounts import (
    ACCOUNT_KEY,
    MODULE,
    MODULE_ACCOUNTS,
    PARAMS_KEY,
    module_address,
    number_key,
)
from ..state import ACCOUNTS
from .pages import Page, paged
from .request import Asked, Method, invalid, not_found


def _stored(asked: Asked, empty: str) -> bytes:
    text = asked.request.text(1)
    if not text:
        raise invalid(empty)
    stored = asked.get(ACCOUNTS + ACCOUNT_KEY + asked.owner())
    if stored is None:
        raise not_found(f"account {text} not found")
    return stored


def _account(asked: Asked) -> bytes:
    return message(1, _stored(asked, "Address cannot be empty"))


def _account_info(asked: Asked) -> bytes:
    given = Message(_stored(asked, "address cannot be empty"))
    body = given.blob(2)
    return message(1, Message(body).blob(1) if given.text(1) == MODULE else body)


def _accounts(asked: Asked) -> bytes:
    page = Page.decode(asked.request.blob(1))
    return paged(page, asked.range(ACCOUNTS + ACCOUNT_KEY), lambda key, stored: stored)


def _params(asked: Asked) -> bytes:
    return message(1, asked.get(ACCOUNTS + PARAMS_KEY) or b"")


def _module(asked: Asked, name: str) -> bytes | None:
    return asked.get(ACCOUNTS + ACCOUNT_KEY + module_address(name))


def _module_accounts(asked: Asked) -> bytes:
    found = (_module(asked, name) for name in sorted(MODULE_ACCOUNTS))
    return b"".join(message(1, stored) for stored in found if stored is not None)


def _module_account(asked: Asked) -> bytes:
    name = asked.request.text(1)
    if not name:
        raise invalid("module name is empty")
    stored = _module(asked, name) if name in MODULE_ACCOUNTS else None
    if stored is None:
        raise not_found(f"account {name} not found")
    return message(1, stored)


def _prefix(asked: Asked) -> bytes:
    return string(1, asked.codec.prefix)


def _address_by_number(asked: Asked) -> bytes:
    if asked.request.integer(1):
        raise invalid("requesting with id isn't supported, try to request using account-id")
    number = asked.request.integer(2)
    address = asked.get(ACCOUNTS + number_key(number))
    if address is None:
        raise not_found(f"account address not found with account number {number}")
    return string(1, asked.codec.show(address))


METHODS: dict[str, Method] = {
    "Account": _account,
    "AccountAddressByID": _address_by_number,
    "AccountInfo": _account_info,
    "Accounts": _accounts,
    "Bech32Prefix": _prefix,
    "ModuleAccountByName": _module_account,
    "ModuleAccounts": _module_accounts,
    "Params": _params,
}
"""Methods of ``/cosmos.auth.v1beta1.Query/``."""
