"""State before the first block, from the ``app_state`` of a Cosmos SDK genesis document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace

from ... import jsoncodec
from ...domain.genesis import ConsensusParams, Genesis
from ...errors import ConfigurationError, InvalidSetting, short_repr
from ..protocol import bech32, coins
from ..protocol.coins import Coin, Coins
from ..protocol.keys import from_json
from ..protocol.responses import consensus_params
from . import gas, modules
from .accounts import BASE, FEE_COLLECTOR, MODULE, Account, Params
from .balances import METADATA
from .context import Codec, Context, Environment
from .errors import TxError
from .gas import GasMeter
from .genesis_json import InvalidState, Item, refuse_older
from .state import BANK, Branch, Head

DEFAULT_PREFIX = "cosmos"

# Maximum number of coins or modules in a description, and maximum characters of each.
_LISTED, _LISTED_TEXT = 100, 200

# Names of the modules' accounts, in the order in which the SDK creates them.
_MODULES = {
    "distribution": ("distribution",),
    "staking": ("bonded_tokens_pool", "not_bonded_tokens_pool"),
    "mint": ("mint",),
}


def check_prefix(prefix: str) -> None:
    """Raise :exc:`~flask_noderpc.errors.InvalidSetting` for an invalid address prefix."""
    try:
        bech32.check_prefix(prefix)
    except bech32.InvalidBech32 as error:
        raise InvalidSetting(f"NODERPC_BANK_PREFIX = {short_repr(prefix)}: {error}") from None


def first_state(genesis: Genesis, prefix: str) -> tuple[Branch, Head]:
    """Return the state of a genesis document and its head; ``prefix`` is used if the document
    has no addresses. Raise :exc:`~flask_noderpc.errors.ConfigurationError` for an invalid
    state."""
    try:
        document = state_of(genesis)
        refuse_older(document)
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
        _write_accounts(context, document["auth"])
        _write_balances(context, document["bank"])
        modules.write(branch, document, context.codec)
        for module, names in _MODULES.items():
            for name in names if module in document.members else ():
                context.accounts.module(name)
        if not genesis.validators:
            _refuse_gentxs(document)
    except (TxError, ValueError) as error:
        raise ConfigurationError(f"app_state of the genesis document: {error}") from None
    return branch, head


def state_of(genesis: Genesis) -> Item:
    """Return the ``app_state`` of a genesis document; raise :exc:`ValueError` if it is not
    JSON."""
    return Item(jsoncodec.decode(genesis.app_state or b"{}"))


def describe(genesis: Genesis) -> dict[str, str]:
    """Return texts that describe a valid state: modules, number of accounts and of balances,
    and supply."""
    state = state_of(genesis)
    owned = [read_coins(each["coins"]) for each in state["bank"]["balances"]]
    return {
        "modules": _listed(sorted(state.members)),
        "accounts": str(len(list(state["auth"]["accounts"]))),
        "balances": str(len(owned)),
        "supply": _listed([str(coin) for coin in coins.add(*owned)]),
    }


def _listed(texts: Sequence[str]) -> str:
    more = len(texts) - _LISTED
    shown = ", ".join(text[:_LISTED_TEXT] for text in texts[:_LISTED]) or "none"
    return f"{shown} and {more} more" if more > 0 else shown


def _refuse_gentxs(document: Item) -> None:
    transactions = document["genutil"]["gen_txs"]
    if count := len(list(transactions)):
        transactions.refuse(
            f"expected no gentxs, got {count}: transactions that create validators are not"
            " executed here; list the validators in the document itself, in"
            " `consensus.validators` (in a CometBFT genesis `validators`)"
        )


def _params_size(params: ConsensusParams) -> int:
    """Return the bytes of the consensus parameters and of their key in the SDK's store."""
    return len(b"Consensus") + len(consensus_params(params))


def prefix_of(document: Item) -> str | None:
    """Return the address prefix of a genesis state; ``None`` if it has no addresses."""
    addresses = [each["address"] for each in document["bank"]["balances"]]
    addresses += [_base(each)["address"] for each in document["auth"]["accounts"]]
    prefixes = {
        each.read(lambda text: bech32.decode(text)[0], "an address") for each in addresses
    }
    if len(prefixes) > 1:
        raise InvalidState(
            f"expected addresses with one prefix, got {', '.join(sorted(prefixes))}"
        )
    return prefixes.pop() if prefixes else None


def _base(account: Item) -> Item:
    return account["base_account"] if "base_account" in account.members else account


def _write_accounts(context: Context, auth: Item) -> None:
    context.accounts.set_params(_params(auth["params"]))
    accounts = []
    seen: set[bytes] = set()
    for each in auth["accounts"]:
        account = _account(each)
        address = _base(each)["address"].read(context.codec.parse, "an address")
        if address in seen:
            each.refuse(f"duplicate account found in genesis state; address: {account.address}")
        seen.add(address)
        accounts.append(account)
    last = -1
    for account in sorted(_with_own_numbers(accounts), key=lambda each: each.number):
        while last < account.number:
            last = context.accounts.next_number()
        context.accounts.set(context.codec.parse(account.address), account)
    context.accounts.module(FEE_COLLECTOR)


def _params(given: Item) -> Params:
    numbers = {}
    for field in fields(Params):
        if field.name in given.members:
            numbers[field.name] = given[field.name].whole_number()
            if not numbers[field.name]:
                given[field.name].refuse("expected at least 1, got 0")
    return Params(**numbers)


def _with_own_numbers(accounts: Sequence[Account]) -> Iterable[Account]:
    """Yield the accounts; an account with the number of an earlier one gets the lowest unused
    number."""
    used = {account.number for account in accounts}
    if accounts and max(used) > 1_000_000:
        raise InvalidState(
            f"auth.accounts: expected account_number of at most 1,000,000, got {max(used)}"
        )
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


def _account(given: Item) -> Account:
    kind = given["@type"].required_text()
    if kind not in (BASE, MODULE):
        given["@type"].refuse(f"expected {BASE} or {MODULE}, got {short_repr(kind)}")
    base, is_module = _base(given), kind == MODULE
    key = base["pub_key"]
    return Account(
        base["address"].required_text(),
        base["account_number"].whole_number(),
        base["sequence"].whole_number(),
        key.read(from_json, "a public key") if key.value is not None else None,
        given["name"].required_text() if is_module else "",
        tuple(each.text() for each in given["permissions"]) if is_module else (),
    )


def read_coins(given: Item) -> Coins:
    """Return coins from JSON, sorted by denomination; raise :exc:`InvalidState`."""
    found = tuple(sorted(map(_coin, given), key=lambda coin: coin.denom))
    given.read(lambda _: coins.check(found), "coins")
    return found


def _coin(given: Item) -> Coin:
    denom, amount = given["denom"].required_text(), given["amount"]
    text = amount.required_text()
    return Coin(denom, amount.read(lambda _: coins.parse_amount(text), "an amount"))


def _write_balances(context: Context, bank: Item) -> None:
    balances, codec = context.balances, context.codec
    supply: Coins = ()
    seen: set[bytes] = set()
    for each in bank["balances"]:
        address = each["address"].read(codec.parse, "an address")
        amount = read_coins(each["coins"])
        if address in seen:
            each.refuse(f"duplicate balance for address {each['address'].value}")
        seen.add(address)
        for coin in amount:
            balances.set(address, coin.denom, coin.value)
        supply = _sum(each, supply, amount)
    given = read_coins(bank["supply"])
    if given and given != supply:
        bank["supply"].refuse(
            f"genesis supply is incorrect, expected {coins.show(given)}, got"
            f" {coins.show(supply)}"
        )
    balances.set_supply(supply)
    params = bank["params"]
    enabled = (*params["send_enabled"], *bank["send_enabled"])
    balances.set_send_enabled(
        default=params["default_send_enabled"].flag(default=True),
        by_denom={each["denom"].required_text(): each["enabled"].flag() for each in enabled},
    )
    for each in bank["denom_metadata"]:
        key = BANK + METADATA + each["base"].required_text().encode()
        context.branch.writes[key] = modules.encode("Metadata", each)


def _sum(balance: Item, *parts: Coins) -> Coins:
    return balance.read(lambda _: coins.add(*parts), "coins")


def document(prefix: str, owned: Mapping[bytes, Coins]) -> bytes:
    """Return the ``app_state`` of a chain with the coins ``owned``, by address."""
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
