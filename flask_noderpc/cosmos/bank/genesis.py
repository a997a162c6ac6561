"""State before the first block, from the ``app_state`` of a Cosmos SDK genesis document."""

from __future__ import annotations

import logging
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import starmap

from ... import jsoncodec
from ...domain.abci import ExecTxResult
from ...domain.genesis import ConsensusParams, Genesis
from ...domain.validator import PublicKey, ValidatorUpdate
from ...errors import ConfigurationError, InvalidSetting, short_repr
from ...protocol.comet import key_types
from ..protocol import bech32, coins
from ..protocol.coins import Coin, Coins
from ..protocol.proto import MESSAGES
from ..protocol.responses import consensus_params
from ..rest.reader import read as read_json
from . import consensus, gas
from .accounts import BASE, FEE_COLLECTOR, MODULE, Account, Params, decode
from .balances import METADATA
from .context import Context, Environment
from .errors import TxError
from .genesis_json import InvalidState, Item, refuse_older
from .genesis_values import encode as encode_value
from .module import Module
from .state import BANK, Branch, Head, NothingStored
from .vesting import KINDS

DEFAULT_PREFIX = "cosmos"

# Voting power of a development chain's own validator if the document names no other.
_POWER = 10

log = logging.getLogger(__name__)

# Maximum number of coins or modules in a description, and maximum characters of each.
_LISTED, _LISTED_TEXT = 100, 200


def check_prefix(prefix: str) -> None:
    """Raise :exc:`~flask_noderpc.errors.InvalidSetting` for an invalid address prefix."""
    try:
        bech32.check_prefix(prefix)
    except bech32.InvalidBech32 as error:
        raise InvalidSetting(f"NODERPC_BANK_PREFIX = {short_repr(prefix)}: {error}") from None


@dataclass(frozen=True, slots=True)
class FirstState:
    """The state before the first block, its head, and the chain's validators; without any, the
    genesis document's validators are used."""

    branch: Branch
    head: Head
    validators: tuple[ValidatorUpdate, ...] = ()


DeliverTx = Callable[[Branch, Environment, bytes], ExecTxResult]
"""A function that executes a transaction in a state."""


@dataclass(frozen=True, slots=True)
class GenesisReader:
    """Reader of genesis documents for an application.

    ``prefix`` is the address prefix of a document without addresses; ``modules`` are all
    modules of the application, in the order of their genesis states; ``deliver`` executes the
    transactions that create validators; ``held`` returns the validators' keys of a development
    node, and is ``None`` for other nodes.
    """

    prefix: str
    modules: tuple[Module, ...]
    deliver: DeliverTx
    held: Callable[[], Iterable[PublicKey]] | None = None

    def read(self, genesis: Genesis) -> FirstState:
        """Return the state of a genesis document; raise
        :exc:`~flask_noderpc.errors.ConfigurationError` for an invalid state."""
        try:
            return self._read(genesis)
        except (TxError, ValueError, ArithmeticError) as error:
            text = f"app_state of the genesis document: {error}"
            raise ConfigurationError(text) from None

    def _read(self, genesis: Genesis) -> FirstState:
        document = state_of(genesis)
        refuse_older(document)
        if _takes_keys(document):
            document = _with_own_keys(document, genesis)
        modules = tuple(each for each in self.modules if each.name in document.members)
        params = genesis.consensus_params
        head = Head(
            genesis.chain_id,
            prefix_of(document) or self.prefix,
            genesis.initial_height,
            params.block.max_gas,
            gas.READ + gas.READ_BYTE * _params_size(params),
            0,
            genesis.genesis_time,
            b"",
            tuple(each.name for each in modules),
            params.validator.pub_key_types,
            params.evidence.max_age_num_blocks,
            params.evidence.max_age_duration,
        )
        branch = Branch(NothingStored())
        # SDK: before a first block at height 1, the height is 0.
        height = genesis.initial_height if genesis.initial_height > 1 else 0
        environment = Environment(head, height, head.time, modules)
        context = Context(branch, environment)
        _write_accounts(context, document["auth"])
        _write_balances(context, document["bank"])
        for module in modules:
            module.init_genesis(context, document[module.name])
        txs = list(document["genutil"]["gen_txs"])
        for given in txs:
            self._deliver(context, given)
        for module in modules if txs else ():
            module.end_genesis(context)
        return FirstState(branch, head, self._validators(context, genesis))

    def _own_keys(
        self, genesis: Genesis, bonded: consensus.Powers
    ) -> tuple[PublicKey, ...] | None:
        """Return the keys of the validators that take part in consensus, also if modules
        remove them; ``None`` if modules decide."""
        if self.held is not None:
            return tuple(self.held())
        # Validators that no module knows sign on. A document without the keys of its modules
        # belongs to a development chain.
        if not bonded or _takes_keys(state_of(genesis)):
            return tuple(each.pub_key for each in genesis.validators)
        return None

    def _deliver(self, context: Context, given: Item) -> None:
        raw = given.read(partial(read_json, "cosmos.tx.v1beta1.Tx"), "a transaction")
        result = self.deliver(context.branch, context.environment, raw)
        if result.code:
            given.refuse(result.log)

    def _validators(self, context: Context, genesis: Genesis) -> tuple[ValidatorUpdate, ...]:
        """Store the chain's validators, and return those that take part in consensus."""
        bonded = {each.pub_key: each.power for each in context.validator_updates}
        given = {each.pub_key: each.power for each in genesis.validators}
        own = self._own_keys(genesis, bonded)
        if own is None and given and given != bonded:
            raise InvalidState(
                f"staking: expected the {len(given)} validators of the genesis document, got"
                f" {len(bonded)} others; remove `consensus.validators` (in a CometBFT genesis"
                " `validators`)"
            )
        held = None if own is None else frozenset(map(key_types.address, own))
        signing = (
            consensus.taking_part(bonded, held)
            or consensus.taking_part(given, held)
            or dict.fromkeys(own or (), _POWER)
        )
        consensus.begin(context.branch, bonded, signing, held)
        if held is not None and (absent := len(bonded.keys() - signing)):
            log.warning(
                "%s of %s bonded validators take no part in consensus, as this home does not"
                " have their keys: they get rewards, and their votes count as signed",
                absent,
                len(bonded),
            )
        return () if signing == given else tuple(starmap(ValidatorUpdate, signing.items()))


def state_of(genesis: Genesis) -> Item:
    """Return the ``app_state`` of a genesis document; raise :exc:`ValueError` if it is not
    JSON."""
    return Item(jsoncodec.decode(genesis.app_state or b"{}"))


def describe(genesis: Genesis, first: FirstState) -> dict[str, str]:
    """Return texts that describe the state of a document: validators that differ from the
    document's, modules, number of accounts and of balances, and supply."""
    state, own = state_of(genesis), first.validators
    owned = [read_coins(each["coins"]) for each in state["bank"]["balances"]]
    power = sum(each.power for each in own)
    known = {"auth", "bank", "genutil", *first.head.modules}
    ignored = state.members.keys() - known
    shown = {
        "validators": f"{len(own)} of staking, with a power of {power}" if own else "",
        "modules": _listed(sorted(state.members.keys() & known)),
        "ignored": _listed(sorted(ignored)) if ignored else "",
        "accounts": str(len(list(state["auth"]["accounts"]))),
        "balances": str(len(owned)),
        "supply": _listed([str(coin) for coin in coins.add(*owned)]),
    }
    return {name: text for name, text in shown.items() if text}


def _listed(texts: Sequence[str]) -> str:
    more = len(texts) - _LISTED
    shown = ", ".join(text[:_LISTED_TEXT] for text in texts[:_LISTED]) or "none"
    return f"{shown} and {more} more" if more > 0 else shown


def _takes_keys(document: Item) -> bool:
    """Return true if validators of x/staking have no key."""
    validators = document["staking"]["validators"]
    return any(each["consensus_pubkey"].value is None for each in validators)


def _with_own_keys(document: Item, genesis: Genesis) -> Item:
    """Return a state where validators of x/staking without a key get the keys of the genesis
    document's validators, by index.

    The genesis state of a development chain is made before its validator's key.
    """
    filled = []
    for at, each in enumerate(document["staking"]["validators"]):
        own = dict(each.members)
        if own.get("consensus_pubkey") is None and at < len(genesis.validators):
            own["consensus_pubkey"] = _key_json(genesis.validators[at].pub_key)
        filled.append(own)
    staking = {**document["staking"].members, "validators": filled}
    return Item({**document.members, "staking": staking})


def _key_json(key: PublicKey) -> dict[str, str]:
    return {
        "@type": f"/cosmos.crypto.{key.type}.PubKey",
        "key": b64encode(key.value).decode(),
    }


def _params_size(params: ConsensusParams) -> int:
    """Return the bytes of the consensus parameters and of their key in the SDK's store."""
    return len(b"Consensus") + len(consensus_params(params))


def prefix_of(document: Item) -> str | None:
    """Return the address prefix of a genesis state; ``None`` if it has no addresses."""
    addresses = [each["address"] for each in document["bank"]["balances"]]
    addresses += [base_of(each)["address"] for each in document["auth"]["accounts"]]
    prefixes = {
        each.read(lambda text: bech32.decode(text)[0], "an address") for each in addresses
    }
    if len(prefixes) > 1:
        raise InvalidState(
            f"expected addresses with one prefix, got {', '.join(sorted(prefixes))}"
        )
    return prefixes.pop() if prefixes else None


def base_of(account: Item) -> Item:
    """Return the base account in an account of any type."""
    for name in ("base_vesting_account", "base_account"):
        account = account[name] if name in account.members else account
    return account


def _write_accounts(context: Context, auth: Item) -> None:
    context.accounts.set_params(_params(auth["params"]))
    accounts = []
    seen: set[bytes] = set()
    for each in auth["accounts"]:
        account = _account(each)
        address = base_of(each)["address"].read(context.codec.parse, "an address")
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
    if kind not in (known := (BASE, MODULE, *KINDS)):
        given["@type"].refuse(f"expected {', '.join(known)}, got {short_repr(kind)}")
    value = encode_value(kind.removeprefix("/"), given)
    stored = MESSAGES.encode("Any", type_url=kind, value=value)

    def checked(_: object) -> Account:
        account = decode(stored)
        if account.vesting:
            account.vesting.check()
        return account

    return given.read(checked, "an account")


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
        context.branch.writes[key] = encode_value("Metadata", each)


def _sum(balance: Item, *parts: Coins) -> Coins:
    return balance.read(lambda _: coins.add(*parts), "coins")
