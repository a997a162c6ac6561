"""Accounts that are added to the ``app_state`` of a genesis document; SDK:
x/genutil/helpers.go, AddGenesisAccount."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from ...chain.home import genesis_path
from ...domain.genesis import Genesis
from ...errors import ConfigurationError, InvalidSetting, short_repr
from ..protocol import bech32, coins
from ..protocol.coins import Coins
from .accounts import BASE
from .context import Codec
from .errors import TxError
from .genesis import base_of, prefix_of, read_coins, state_of
from .genesis_json import Item

T = TypeVar("T")

log = logging.getLogger(__name__)


def with_account(
    app_state: Any, address: str, amount: str, *, prefix: str, may_exist: bool = False
) -> dict[str, Any]:
    """Return the state with an account that has coins, which are added to the supply.

    ``prefix`` is the address prefix of a state without addresses. With ``may_exist``, the coins
    of an account that the state has are increased. Raise
    :exc:`~flask_noderpc.errors.ConfigurationError` for an invalid state, address or amount.
    """
    try:
        return _with_account(Item(app_state), address, amount, prefix, may_exist)
    except (TxError, ValueError) as error:
        raise ConfigurationError(f"app_state of the genesis document: {error}") from None


def _with_account(
    state: Item, address: str, amount: str, prefix: str, may_exist: bool
) -> dict[str, Any]:
    codec = Codec(prefix_of(state) or prefix)
    _given("ADDRESS", partial(_check_prefix, codec.prefix), address)
    key, added = _given("ADDRESS", codec.parse, address), _given("COINS", coins.parse, amount)
    if not added:
        raise InvalidSetting("COINS: expected at least one coin, such as 1000stake, got none")
    address = codec.show(key)
    auth, bank = state["auth"], state["bank"]
    accounts = [each.value for each in auth["accounts"]]
    numbers = [base_of(each)["account_number"].whole_number() for each in auth["accounts"]]
    known = {codec.parse(base_of(each)["address"].text()) for each in auth["accounts"]}
    owned = {
        codec.parse(each["address"].text()): read_coins(each["coins"])
        for each in bank["balances"]
    }
    if not may_exist and key in known | owned.keys():
        raise ConfigurationError(
            f"the account {address} exists already; add coins to it with --append"
        )
    if key not in known:
        accounts.append(_base_account(address, max(numbers, default=-1) + 1))
    supply = read_coins(bank["supply"]) or coins.add(*owned.values())
    owned[key] = coins.add(owned.get(key, ()), added)
    return {
        **state.members,
        "auth": {**auth.members, "accounts": accounts},
        "bank": {
            **bank.members,
            # SDK: SanitizeGenesisBalances sorts them by address.
            "balances": [_balance(codec.show(each), owned[each]) for each in sorted(owned)],
            "supply": _coins(coins.add(supply, added)),
        },
    }


def _check_prefix(expected: str, address: str) -> None:
    prefix, _ = bech32.decode(address)
    if prefix != expected:
        raise ValueError(f"expected an address with the prefix {expected!r}, got {prefix!r}")


def _given(name: str, parse: Callable[[str], T], text: str) -> T:
    try:
        return parse(text)
    except (TxError, ValueError) as error:
        raise InvalidSetting(f"{name} = {short_repr(text)}: {error}") from None


def _base_account(address: str, number: int) -> Mapping[str, Any]:
    own = {"address": address, "pub_key": None, "account_number": str(number), "sequence": "0"}
    return {"@type": BASE, **own}


def _balance(address: str, owned: Coins) -> Mapping[str, Any]:
    return {"address": address, "coins": _coins(owned)}


def _coins(given: Coins) -> list[dict[str, str]]:
    return [{"denom": coin.denom, "amount": str(coin.value)} for coin in given]


def warn(home: Path, genesis: Genesis) -> None:
    """Log a warning if the chain began without accounts, whose coins pay for transactions."""
    state = state_of(genesis)
    if any(state["auth"]["accounts"]) or any(state["bank"]["balances"]):
        return
    log.warning(
        "%s: the chain %s has no accounts, so it accepts no transactions; for tests, run"
        " `noderpc start --dev --application bank`, which begins a chain with ten accounts;"
        " otherwise run `noderpc init --home NEW` and `noderpc genesis add-account ADDRESS"
        " 1000stake --home NEW` before `noderpc start --application bank --home NEW`",
        genesis_path(home),
        genesis.chain_id,
    )
