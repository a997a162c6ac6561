"""Query methods of x/bank; SDK: x/bank/keeper/grpc_query.go."""

from __future__ import annotations

from ....protocol.protobuf import Message, integer, message, string
from ...protocol.coins import Coin
from ..balances import METADATA, PARAMS, SEND_ENABLED, SUPPLY, balance_key, holders_key
from ..state import BANK
from .pages import Page, paged
from .request import Asked, Method, internal, invalid, not_found

_SEND_ENABLED_PAGE = 99


def _amount(asked: Asked, address: bytes, denom: str) -> Coin:
    return Coin(denom, int(asked.get(BANK + balance_key(address, denom)) or b"0"))


def _balance(asked: Asked) -> bytes:
    denom = asked.denom(2)
    return message(1, _amount(asked, asked.address(1), denom).encode())


def _spendable_balance(asked: Asked) -> bytes:
    address = asked.address(1)
    return message(1, _amount(asked, address, asked.denom(2)).encode())


def _coin(denom: bytes, amount: bytes) -> bytes:
    return Coin(denom.decode(), int(amount)).encode()


def _balances(asked: Asked) -> bytes:
    address = asked.address(1)
    page = Page.decode(asked.request.blob(2), lambda text: invalid(f"paginate: {text}"))
    return paged(page, asked.range(BANK + balance_key(address)), _coin)


def _all_balances(asked: Asked) -> bytes:
    if not asked.request.integer(3):
        return _balances(asked)
    found = Message(_balances(asked))
    coins = (_displayed(asked, each) for each in found.blobs(1))
    return b"".join(message(1, coin) for coin in coins) + message(2, found.blob(2))


def _displayed(asked: Asked, coin: bytes) -> bytes:
    """Return a coin in the denomination that its metadata displays."""
    given = Message(coin)
    stored = asked.get(BANK + METADATA + given.blob(1))
    if stored is None:
        return coin
    return string(1, Message(stored).text(4)) + string(2, given.text(2))


def _total_supply(asked: Asked) -> bytes:
    page = Page.decode(asked.request.blob(1), internal)
    return paged(page, asked.range(BANK + SUPPLY), _coin)


def _supply_of(asked: Asked) -> bytes:
    denom = asked.denom(1)
    amount = asked.get(BANK + SUPPLY + denom.encode())
    return message(1, Coin(denom, int(amount or b"0")).encode())


def _metadata(asked: Asked) -> bytes:
    denom = asked.denom(1)
    stored = asked.get(BANK + METADATA + denom.encode())
    if stored is None:
        raise not_found(f"client metadata for denom {denom}")
    return message(1, stored)


def _denoms_metadata(asked: Asked) -> bytes:
    page = Page.decode(asked.request.blob(1), internal)
    return paged(page, asked.range(BANK + METADATA), lambda key, stored: stored, is_plain=True)


def _owners(asked: Asked) -> bytes:
    denom = asked.denom(1)

    def owner(key: bytes, value: bytes) -> bytes:
        # The first byte is the length of the address.
        address = key[1:]
        coin = _amount(asked, address, denom)
        return string(1, asked.codec.show(address)) + message(2, coin.encode())

    page = Page.decode(asked.request.blob(2))
    return paged(page, asked.range(BANK + holders_key(denom)), owner)


def _send_enabled(asked: Asked) -> bytes:
    denoms = asked.request.blobs(1)
    if denoms:
        found = ((denom, asked.get(BANK + SEND_ENABLED + denom)) for denom in denoms)
        return b"".join(
            message(1, _enabled(denom, value)) for denom, value in found if value is not None
        )
    page = Page.decode(asked.request.blob(_SEND_ENABLED_PAGE), internal)
    return paged(page, asked.range(BANK + SEND_ENABLED), _enabled, _SEND_ENABLED_PAGE)


def _enabled(denom: bytes, value: bytes) -> bytes:
    return string(1, denom.decode()) + integer(2, Message(value).integer(1))


def _params(asked: Asked) -> bytes:
    return message(1, asked.get(BANK + PARAMS) or b"")


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
    "SpendableBalances": _balances,
    "SupplyOf": _supply_of,
    "TotalSupply": _total_supply,
}
"""Methods of ``/cosmos.bank.v1beta1.Query/``."""
