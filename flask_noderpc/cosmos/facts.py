"""Accounts and coins of Cosmos SDK chains in words, from the REST gateway's JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from .. import jsoncodec
from ..backends.base.backend import ChainBackend
from ..chain.embedded import EmbeddedChain
from ..domain.facts import Fact, in_unit, in_words
from ..domain.responses import ResultBroadcastTx
from ..errors import NotSupported
from .protocol import bech32
from .rest import gateway

_SHOWN_COINS = 100
_MIN_ADDRESS = 20
# Maximum digits of an amount that is shown in a larger unit, more than the SDK's 256 bits have.
_MAX_DIGITS = 80


def account_facts(
    backend: ChainBackend, query: gateway.Query, address: str
) -> tuple[Fact, ...]:
    """Return balances, number, sequence and key of an account; empty if the chain is not of the
    SDK or does not have it. ``query`` runs a query method at a height, like ``abci_query``."""
    if not may_be_of_sdk(backend) or not _is_address(address):
        return ()
    path = quote(address, safe="")
    found = _get(query, f"/cosmos/bank/v1beta1/balances/{path}", _SHOWN_COINS)
    coins = found.get("balances", [])
    facts = [Fact("Balance", text) for text in amounts_of(coins, denoms_of(query, coins))]
    if (found.get("pagination") or {}).get("next_key"):
        facts.append(Fact("Balance", f"and more than {_SHOWN_COINS} others"))
    account = _get(query, f"/cosmos/auth/v1beta1/accounts/{path}").get("account")
    if account is None:
        return tuple(facts)
    base = _base_account(account)
    key = base.get("pub_key")
    facts += [
        Fact("Kind", in_words(account["@type"])),
        Fact("Account number", str(base.get("account_number", "0"))),
        Fact("Sequence", str(base.get("sequence", "0"))),
        Fact("Key", _key(key) if key else "unknown until the account signs"),
    ]
    if name := account.get("name"):
        facts.insert(0, Fact("Module", name))
    return tuple(facts)


def may_be_of_sdk(backend: ChainBackend) -> bool:
    """Return false for an embedded chain that is not of the SDK; other chains are asked."""
    is_embedded = isinstance(backend, EmbeddedChain)
    return not is_embedded or backend.application.sdk_prefix() is not None


def _get(query: gateway.Query, path: str, limit: int = 0) -> dict[str, Any]:
    """Return the JSON of a REST path, empty if the gateway responds with an error."""
    asked = gateway.Request("GET", path, f"pagination.limit={limit}" if limit else "")
    reply = gateway.answer(asked, query, _send)
    found: dict[str, Any] = jsoncodec.decode(reply.body) if reply.status == 200 else {}
    return found


def _send(method: str, tx: bytes) -> ResultBroadcastTx:
    raise NotSupported("pages send no transactions")


def of_account(title: str, text: str) -> Fact:
    """Return a fact whose text may be the address of an account."""
    return Fact(title, text, is_account=_is_address(text))


def _is_address(text: str) -> bool:
    """Return true for an address whose account has a page: small letters, at least 20 bytes."""
    try:
        _, data = bech32.decode(text)
    except bech32.InvalidBech32:
        return False
    return text.islower() and len(data) >= _MIN_ADDRESS


def _base_account(account: dict[str, Any]) -> dict[str, Any]:
    """Return the base account in an account of any kind."""
    while True:
        inner = account.get("base_vesting_account") or account.get("base_account")
        if not isinstance(inner, dict):
            return account
        account = inner


def _key(key: Mapping[str, Any]) -> str:
    name = str(key.get("@type", "")).split(".")
    kind = name[-2] if len(name) > 1 else "unknown"
    return f"{kind} {key['key']}" if isinstance(key.get("key"), str) else kind


def is_coin(value: Any) -> bool:
    """Return true for the JSON of a coin."""
    return isinstance(value, dict) and value.keys() == {"denom", "amount"}


def denoms_of(
    query: gateway.Query, coins: Iterable[Mapping[str, str]]
) -> dict[str, tuple[str, int]]:
    """Return the displayed unit of each denomination that has one, and its decimals."""
    if not coins:
        return {}
    found = _get(query, "/cosmos/bank/v1beta1/denoms_metadata", _SHOWN_COINS)
    units = {}
    for each in found.get("metadatas", []):
        for unit in each["denom_units"]:
            if unit["denom"] == each["display"] and 0 < unit["exponent"] <= 36:
                units[each["base"]] = (each["symbol"] or unit["denom"], unit["exponent"])
    return units


def amounts_of(
    coins: Iterable[Mapping[str, str]], denoms: Mapping[str, tuple[str, int]]
) -> Iterator[str]:
    """Yield the amount of each coin in its displayed unit, or in the smallest one."""
    for coin in coins:
        amount, denom = coin["amount"], coin["denom"]
        unit, decimals = denoms.get(denom, (denom, 0))
        digits = amount.removeprefix("-")
        if not digits.isdecimal() or len(digits) > _MAX_DIGITS:
            yield f"{amount} {denom}"
        else:
            yield in_unit(int(amount), decimals, unit)
