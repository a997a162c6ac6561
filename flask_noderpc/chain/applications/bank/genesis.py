"""The state before the first block: ``app_state`` as the Cosmos SDK writes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from .... import jsoncodec
from ....domain.genesis import ConsensusParams, Genesis
from ....errors import ConfigurationError, InvalidSetting, short_repr
from ....protocol.cosmos import bech32, coins
from ....protocol.cosmos.coins import Coin, Coins
from ....protocol.cosmos.keys import from_json
from ....protocol.cosmos.responses import consensus_params
from ....protocol.protobuf import integer, message, string
from . import gas, modules
from .accounts import BASE, FEE_COLLECTOR, MODULE, Account, Params
from .balances import METADATA
from .context import Codec, Context, Environment
from .errors import TxError
from .gas import GasMeter
from .modules import whole_number
from .state import BANK, Branch, Head

DEFAULT_PREFIX = "cosmos"

# In the order in which the SDK's modules make their accounts.
_MODULES = {
    "distribution": ("distribution",),
    "staking": ("bonded_tokens_pool", "not_bonded_tokens_pool"),
    "mint": ("mint",),
}
_Object = dict[str, Any]


class _Invalid(ValueError):
    """Error of the document."""


def check_prefix(prefix: str) -> None:
    """Raise :exc:`~flask_noderpc.errors.InvalidSetting` for what can't be a prefix."""
    try:
        bech32.check_prefix(prefix)
    except bech32.InvalidBech32 as error:
        raise InvalidSetting(f"NODERPC_BANK_PREFIX = {short_repr(prefix)}: {error}") from None


def first_state(genesis: Genesis, prefix: str) -> tuple[Branch, Head]:
    """Return the state of a genesis document, whose addresses have a prefix, or else get this
    one; raise :exc:`~flask_noderpc.errors.ConfigurationError`."""
    try:
        document = jsoncodec.decode(genesis.app_state or b"{}", dict[str, Any])
        found = prefix_of(document) or prefix
        head = Head(
            genesis.chain_id,
            found,
            genesis.initial_height,
            genesis.consensus_params.block.max_gas,
            gas.READ + gas.READ_BYTE * _params_size(genesis.consensus_params),
            0,
            genesis.genesis_time,
            b"",
        )
        branch = Branch(lambda key: None)
        context = Context(branch, Environment(head, 0, head.time), GasMeter())
        _write_accounts(context, _part(document, "auth"))
        _write_balances(context, _part(document, "bank"))
        modules.write(branch, document, context.codec)
        for module, names in _MODULES.items():
            for name in names if module in document else ():
                context.accounts.module(name)
    except (TxError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigurationError(f"app_state of the genesis document: {_text(error)}") from None
    return branch, head


def _params_size(params: ConsensusParams) -> int:
    """Return the bytes of the consensus parameters and of their key in the SDK's store."""
    return len(b"Consensus") + len(consensus_params(params))


def _text(error: Exception) -> str:
    match error:
        case KeyError():
            return f"{error} is missing"
        case TypeError() | AttributeError():
            return f"a value is not of the type that the SDK writes: {error}"
    return str(error)


def _part(document: _Object, name: str) -> _Object:
    part = document.get(name) or {}
    if not isinstance(part, dict):
        raise _Invalid(f"{name} is no object")
    return part


def prefix_of(document: _Object) -> str | None:
    """Return the prefix of a genesis state's addresses, ``None`` without any."""
    balances = _part(document, "bank").get("balances") or []
    texts = [each["address"] for each in balances]
    texts += [_base(each)["address"] for each in _part(document, "auth").get("accounts") or []]
    prefixes = {bech32.decode(text)[0] for text in texts}
    if len(prefixes) > 1:
        raise _Invalid(f"addresses have several prefixes: {', '.join(sorted(prefixes))}")
    return prefixes.pop() if prefixes else None


def _base(account: _Object) -> _Object:
    base: _Object = account.get("base_account", account)
    return base


def _write_accounts(context: Context, auth: _Object) -> None:
    context.accounts.set_params(_params(auth.get("params") or {}))
    accounts = [_account(each) for each in auth.get("accounts") or []]
    seen: set[bytes] = set()
    for account in accounts:
        address = context.codec.parse(account.address)
        if address in seen:
            raise _Invalid(
                f"duplicate account found in genesis state; address: {account.address}"
            )
        seen.add(address)
    last = -1
    for account in sorted(_with_own_numbers(accounts), key=lambda each: each.number):
        while last < account.number:
            last = context.accounts.next_number()
        context.accounts.set(context.codec.parse(account.address), account)
    context.accounts.module(FEE_COLLECTOR)


def _params(given: _Object) -> Params:
    numbers = {
        field.name: whole_number(given, field.name)
        for field in fields(Params)
        if field.name in given
    }
    for name, number in numbers.items():
        if not number:
            raise _Invalid(f"{name} is 0: the SDK takes numbers from 1")
    return Params(**numbers)


def _with_own_numbers(accounts: Sequence[Account]) -> Iterable[Account]:
    """Yield accounts, of those with a number that another has too with the lowest unused."""
    used = {account.number for account in accounts}
    if accounts and max(used) > 1_000_000:
        raise _Invalid(f"account_number {max(used)} is too high: the SDK counts up to it")
    seen: set[int] = set()
    unused = 0
    for account in accounts:
        number = account.number
        if number in seen:
            while unused in used:
                unused += 1
            used.add(unused)
            number = unused
        seen.add(number)
        yield replace(account, number=number)


def _account(given: _Object) -> Account:
    kind = given["@type"]
    if kind not in (BASE, MODULE):
        raise _Invalid(f"an account of type {short_repr(kind)}: {BASE} and {MODULE} are known")
    base = _base(given)
    key = base.get("pub_key")
    return Account(
        base["address"],
        whole_number(base, "account_number"),
        whole_number(base, "sequence"),
        from_json(key) if key else None,
        given["name"] if kind == MODULE else "",
        tuple(given.get("permissions") or ()) if kind == MODULE else (),
    )


def read_coins(given: Iterable[Mapping[str, str]] | None) -> Coins:
    """Return coins of JSON, sorted; raise
    :exc:`~flask_noderpc.protocol.cosmos.coins.InvalidCoins`."""
    found = tuple(sorted(map(_coin, given or ()), key=lambda coin: coin.denom))
    coins.check(found)
    return found


def _coin(given: Mapping[str, str]) -> Coin:
    denom, amount = given["denom"], given["amount"]
    if not amount or not isinstance(amount, str):
        raise _Invalid(f"amount {short_repr(amount)} of {short_repr(denom)} is no text")
    return Coin(denom, coins.parse_amount(amount))


def _write_balances(context: Context, bank: _Object) -> None:
    balances, codec = context.balances, context.codec
    supply: Coins = ()
    seen: set[bytes] = set()
    for each in bank.get("balances") or []:
        address, amount = codec.parse(each["address"]), read_coins(each.get("coins"))
        if address in seen:
            raise _Invalid(f"duplicate balance for address {each['address']}")
        seen.add(address)
        for coin in amount:
            balances.set(address, coin.denom, coin.value)
        supply = coins.add(supply, amount)
    given = read_coins(bank.get("supply"))
    if given and given != supply:
        raise _Invalid(
            f"genesis supply is incorrect, expected {coins.show(given)}, got"
            f" {coins.show(supply)}"
        )
    balances.set_supply(supply)
    params = bank.get("params") or {}
    enabled = (params.get("send_enabled") or []) + (bank.get("send_enabled") or [])
    balances.set_send_enabled(
        default=params.get("default_send_enabled", True),
        by_denom={each["denom"]: bool(each.get("enabled")) for each in enabled},
    )
    for each in bank.get("denom_metadata") or []:
        key = BANK + METADATA + each["base"].encode()
        context.branch.writes[key] = _metadata(each)


def _metadata(given: _Object) -> bytes:
    units = b"".join(
        message(
            2,
            string(1, unit["denom"])
            + integer(2, whole_number(unit, "exponent", 32))
            + b"".join(string(3, alias) for alias in unit.get("aliases") or ()),
        )
        for unit in given.get("denom_units") or ()
    )
    names = ("base", "display", "name", "symbol", "uri", "uri_hash")
    texts = b"".join(string(at, given.get(name) or "") for at, name in enumerate(names, 3))
    return string(1, given.get("description") or "") + units + texts


def document(prefix: str, owned: Mapping[bytes, Coins]) -> bytes:
    """Return the ``app_state`` of a chain whose accounts have these coins."""
    show = Codec(prefix).show
    accounts = [
        {
            "@type": BASE,
            "address": show(address),
            "pub_key": None,
            "account_number": str(number),
            "sequence": "0",
        }
        for number, address in enumerate(owned)
    ]
    params = {field.name: str(field.default) for field in fields(Params)}
    balances = [
        {"address": show(address), "coins": _coins_json(owned[address])}
        for address in sorted(owned)
    ]
    supply = _coins_json(coins.add(*owned.values()))
    bank = {
        "params": {"send_enabled": [], "default_send_enabled": True},
        "balances": balances,
        "supply": supply,
        "denom_metadata": [],
        "send_enabled": [],
    }
    return jsoncodec.encode({"auth": {"params": params, "accounts": accounts}, "bank": bank})


def _coins_json(given: Coins) -> list[dict[str, str]]:
    return [{"denom": coin.denom, "amount": str(coin.value)} for coin in given]
