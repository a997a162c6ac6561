"""Accounts and transactions of Cosmos SDK chains in words, from the REST gateway's JSON."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from itertools import islice
from typing import Any
from urllib.parse import quote

from .. import jsoncodec
from ..backends.base.backend import ChainBackend
from ..chain.embedded import EmbeddedChain
from ..domain.facts import Fact, MessageFacts, TxFacts, in_words
from ..domain.responses import ResultBroadcastTx
from ..errors import NotSupported
from ..protocol.protobuf import Malformed, fields
from .protocol import bech32
from .protocol.proto import MESSAGES
from .rest import gateway

_SHOWN_COINS = _SHOWN_MESSAGES = _SHOWN_FIELDS = 100
_MAX_DEPTH = 8
_MIN_ADDRESS = 20
# Maximum digits of an amount that is shown in a larger unit, more than the SDK's 256 bits have.
_MAX_DIGITS = 80


def account_facts(
    backend: ChainBackend, query: gateway.Query, address: str
) -> tuple[Fact, ...]:
    """Return balances, number, sequence and key of an account; empty if the chain is not of the
    SDK or does not have it. ``query`` runs a query method at a height, like ``abci_query``."""
    if not _may_be_of_sdk(backend) or not _is_address(address):
        return ()
    path = quote(address, safe="")
    found = _get(query, f"/cosmos/bank/v1beta1/balances/{path}", _SHOWN_COINS)
    coins = found.get("balances", [])
    facts = [Fact("Balance", text) for text in _amounts(coins, _denoms(query, coins))]
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


def tx_facts(backend: ChainBackend, query: gateway.Query, digest: bytes) -> TxFacts | None:
    """Return a committed transaction with its messages decoded, ``None`` if the chain is not of
    the SDK or can't decode it; ``query`` as in :func:`account_facts`."""
    if not _may_be_of_sdk(backend):
        return None
    found = _get(query, f"/cosmos/tx/v1beta1/txs/{digest.hex().upper()}")
    tx = found.get("tx")
    if tx is None:
        return None
    body, info = tx["body"] or {}, tx["auth_info"] or {}
    fee = info.get("fee") or {}
    messages = body.get("messages") or ()
    given = [each for each in messages[:_SHOWN_MESSAGES] if each]
    coins = [*fee.get("amount", []), *(coin for each in given for coin in _coins_in(each))]
    denoms = _denoms(query, coins)
    facts = [Fact("Fee", text) for text in _amounts(fee.get("amount", []), denoms)]
    facts += [
        _of_account(title, fee[name])
        for name, title in (("payer", "Fee paid by"), ("granter", "Fee granted by"))
        if fee.get(name)
    ]
    facts += _signers(found.get("tx_response") or {})
    if memo := body.get("memo"):
        facts.append(Fact("Memo", memo))
    if (timeout := body.get("timeout_height", "0")) != "0":
        facts.append(Fact("Valid until block", timeout))
    if len(messages) > _SHOWN_MESSAGES:
        facts.append(Fact("Messages", f"{len(messages):,}; the first {_SHOWN_MESSAGES} follow"))
    return TxFacts(tuple(facts), tuple(_message(each, denoms) for each in given))


def _may_be_of_sdk(backend: ChainBackend) -> bool:
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


def _of_account(title: str, text: str) -> Fact:
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


def _signers(response: Mapping[str, Any]) -> Iterator[Fact]:
    """Yield the signers, which the SDK reports in the events of each transaction."""
    for event in response.get("events", ()):
        for each in event.get("attributes", ()) if event.get("type") == "tx" else ():
            if each.get("key") == "acc_seq":
                address, _, sequence = str(each.get("value")).rpartition("/")
                yield _of_account("Signed by", address)
                yield Fact("Sequence", sequence)


def _message(given: dict[str, Any], denoms: Mapping[str, tuple[str, int]]) -> MessageFacts:
    kind = str(given.get("@type", ""))
    rest = {name: value for name, value in given.items() if name != "@type"}
    if kind.removeprefix("/") not in MESSAGES:
        # The gateway writes a message of another type as its bytes.
        rest = _numbered(b64decode(rest.get("value", "")), _MAX_DEPTH)
    facts = (fact for name, value in rest.items() for fact in _fact(name, value, denoms))
    return MessageFacts(in_words(kind), kind, tuple(islice(facts, _SHOWN_FIELDS)))


def _fact(name: str, value: Any, denoms: Mapping[str, tuple[str, int]]) -> Iterator[Fact]:
    title = name.replace("_", " ").capitalize()
    if value in (None, "", [], {}):
        return
    coins = value if isinstance(value, list) else [value]
    if all(_is_coin(each) for each in coins):
        yield Fact(title, ", ".join(_amounts(coins, denoms)))
    elif isinstance(value, str):
        yield _of_account(title, value)
    else:
        yield Fact(title, json.dumps(value, ensure_ascii=False))


def _is_coin(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"denom", "amount"}


def _coins_in(message: Mapping[str, Any]) -> Iterator[Mapping[str, str]]:
    for value in message.values():
        yield from filter(_is_coin, value if isinstance(value, list) else [value])


def _denoms(
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


def _amounts(
    coins: Iterable[Mapping[str, str]], denoms: Mapping[str, tuple[str, int]]
) -> Iterator[str]:
    for coin in coins:
        amount, denom = coin["amount"], coin["denom"]
        unit, decimals = denoms.get(denom, (denom, 0))
        digits = amount.lstrip("-")
        if not digits.isdecimal() or len(digits) > _MAX_DIGITS:
            yield f"{amount} {denom}"
        else:
            value = Decimal((amount.startswith("-"), tuple(map(int, digits)), -decimals))
            yield f"{_plain(value)} {unit}"


def _plain(value: Decimal) -> str:
    """Return a number with commas, without zeros behind its last digit."""
    text = f"{value:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _numbered(data: bytes, depth: int) -> dict[str, Any]:
    """Return the fields of an unknown message by their numbers."""
    found: dict[str, Any] = {}
    try:
        for number, value in fields(data):
            shown = value if isinstance(value, int) else _unknown(value, depth - 1)
            name = f"field {number}"
            if name not in found:
                found[name] = shown
            elif isinstance(found[name], list):
                found[name].append(shown)
            else:
                found[name] = [found[name], shown]
    except Malformed:
        return {"bytes": data.hex()}
    return found


def _unknown(value: bytes, depth: int) -> Any:
    """Return bytes of an unknown type as text, as a message, or in hex digits."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = ""
    if text.isprintable() and (text or not value):
        return text
    nested = _numbered(value, depth) if depth > 0 else {"bytes": value.hex()}
    return value.hex() if "bytes" in nested else nested
