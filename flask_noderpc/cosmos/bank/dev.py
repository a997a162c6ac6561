"""Accounts of a development chain, with a publicly known mnemonic."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from ... import jsoncodec
from ...chain.home import has_genesis, load
from ...chain.source import DevAccounts, accounts_log, log
from ...domain.genesis import Genesis
from ...errors import InvalidSetting
from ...settings import Settings
from ..protocol import coins
from ..protocol.coins import Coin, Coins, InvalidCoins
from ..protocol.mnemonic import PrivateKey, derive
from ..settings import CosmosSettings
from ..staking.records import POWER_REDUCTION
from ..staking.state import NOT_BONDED_POOL
from .accounts import BASE, Params, module_address
from .context import Codec
from .genesis import DEFAULT_PREFIX, check_prefix, prefix_of, read_coins, state_of

MNEMONIC = "test test test test test test test test test test test junk"
"""The publicly known mnemonic of development chains, from which the EVM's development accounts
are also derived."""

COINS = "1000000000000stake,1000000000000token"
"""Default coins of each account."""

_COUNT = 10
# Tokens of the validator, for the voting power that a new chain gives it.
_BONDED = 10 * POWER_REDUCTION


def dev_keys() -> tuple[PrivateKey, ...]:
    """Return the private keys of the ten development accounts."""
    return tuple(derive(MNEMONIC, index) for index in range(_COUNT))


def dev_addresses(prefix: str = DEFAULT_PREFIX) -> tuple[str, ...]:
    """Return the addresses of the ten development accounts."""
    return tuple(Codec(prefix).show(key.public.address) for key in dev_keys())


def app_state(
    prefix: str = DEFAULT_PREFIX, each: str = COINS, *, modules: bool = False
) -> bytes:
    """Return a genesis state with coins for each of the ten development accounts.

    With ``modules``, it has the SDK's modules with their default parameters, and the first
    account is the operator of the chain's validator. Raise
    :exc:`~flask_noderpc.errors.InvalidSetting` for invalid coins, or an invalid prefix.
    """
    check_prefix(prefix)
    try:
        owned = coins.parse(each)
        bonded = _bonded(each) if modules else None
        return _document(prefix, {key.public.address: owned for key in dev_keys()}, bonded)
    except InvalidCoins as error:
        raise InvalidSetting(f"NODERPC_BANK_COINS = {each[:200]!r}: {error}") from None


def _bonded(each: str) -> Coin | None:
    """Return the tokens of the validator: of ``stake``, or of the first coin of a text;
    ``None`` if there are no coins."""
    denoms = [coin.denom for coin in coins.parse(each)]
    if not denoms:
        return None
    return Coin("stake" if "stake" in denoms else denoms[0], _BONDED)


def _document(prefix: str, owned: Mapping[bytes, Coins], bonded: Coin | None = None) -> bytes:
    """Return the ``app_state`` of a chain with the coins ``owned``, by address.

    With ``bonded``, the first account has delegated these coins to a validator, which gets the
    key of the genesis document's first validator, and the state has the SDK's modules with
    their default parameters.
    """
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
    state = {"auth": {"params": params, "accounts": accounts}}
    if bonded is not None:
        state |= _modules(prefix, next(iter(owned)), bonded)
        owned = {**owned, module_address(NOT_BONDED_POOL): (bonded,)}
    balances = [
        {"address": show(address), "coins": _coins_json(owned[address])}
        for address in sorted(owned)
    ]
    state["bank"] = {
        "params": {"send_enabled": [], "default_send_enabled": True},
        "balances": balances,
        "supply": _coins_json(coins.add(*owned.values())),
        "denom_metadata": [],
        "send_enabled": [],
    }
    return jsoncodec.encode(state)


def _coins_json(given: Coins) -> list[dict[str, str]]:
    return [{"denom": coin.denom, "amount": str(coin.value)} for coin in given]


def _modules(prefix: str, operator: bytes, bonded: Coin) -> dict[str, Any]:
    """Return the genesis states of modules, with one validator."""
    validator = {
        "operator_address": Codec(f"{prefix}valoper").show(operator),
        "consensus_pubkey": None,
        "status": "BOND_STATUS_UNBONDED",
        "tokens": str(bonded.value),
        "delegator_shares": str(bonded.value),
        "description": {"moniker": "noderpc"},
        "commission": {
            "commission_rates": {"rate": "0.1", "max_rate": "0.2", "max_change_rate": "0.01"}
        },
        "min_self_delegation": "1",
    }
    delegation = {
        "delegator_address": Codec(prefix).show(operator),
        "validator_address": validator["operator_address"],
        "shares": str(bonded.value),
    }
    return {
        "distribution": {"params": {"community_tax": "0.02", "withdraw_addr_enabled": True}},
        "evidence": {},
        "feegrant": {},
        "authz": {},
        "gov": {
            "starting_proposal_id": "1",
            "params": {
                "min_deposit": [{"denom": bonded.denom, "amount": "10000000"}],
                "expedited_min_deposit": [{"denom": bonded.denom, "amount": "50000000"}],
                # Votes end while one waits.
                "max_deposit_period": "60s",
                "voting_period": "30s",
                "expedited_voting_period": "15s",
                "quorum": "0.334",
                "threshold": "0.5",
                "expedited_threshold": "0.667",
                "veto_threshold": "0.334",
                "min_initial_deposit_ratio": "0",
                "proposal_cancel_ratio": "0.5",
                "burn_vote_veto": True,
                "min_deposit_ratio": "0.01",
            },
        },
        "vesting": {},
        "params": {},
        "upgrade": {},
        "mint": {
            "minter": {"inflation": "0.13"},
            "params": {
                "mint_denom": bonded.denom,
                "inflation_rate_change": "0.13",
                "inflation_max": "0.2",
                "inflation_min": "0.07",
                "goal_bonded": "0.67",
                "blocks_per_year": "6311520",
            },
        },
        "slashing": {
            "params": {
                "signed_blocks_window": "100",
                "min_signed_per_window": "0.5",
                "downtime_jail_duration": "600s",
                "slash_fraction_double_sign": "0.05",
                "slash_fraction_downtime": "0.01",
            }
        },
        "staking": {
            "params": {
                "unbonding_time": "1814400s",
                "max_validators": 100,
                "max_entries": 7,
                "historical_entries": 100,
                "bond_denom": bonded.denom,
                "min_commission_rate": "0",
            },
            "validators": [validator],
            "delegations": [delegation],
        },
    }


def accounts_of(genesis: Genesis) -> dict[str, Coins]:
    """Return the coins of the development accounts in a genesis state, by address; accounts
    that it does not have are omitted."""
    state = state_of(genesis)
    balances = {
        each["address"].text(): read_coins(each["coins"]) for each in state["bank"]["balances"]
    }
    addresses = dev_addresses(prefix_of(state) or DEFAULT_PREFIX)
    return {address: balances[address] for address in addresses if address in balances}


class BankDevAccounts(DevAccounts):
    """Ten accounts with coins, derived from the publicly known mnemonic."""

    def app_state(self, settings: Settings) -> bytes:
        own = settings.of(CosmosSettings)
        return app_state(own.bank_prefix, own.bank_coins, modules=True)

    def log(self, settings: Settings, genesis: Genesis) -> None:
        own = settings.of(CosmosSettings)
        found = accounts_of(genesis)
        if not found:
            log.warning(
                "NODERPC_DEV: the genesis of this chain has no development accounts; set"
                " NODERPC_DATABASE to a new file to start a chain that has them"
            )
            return
        of_new_chain = coins.parse(own.bank_coins)
        if found != dict.fromkeys(dev_addresses(own.bank_prefix), of_new_chain):
            log.warning(
                "NODERPC_BANK_PREFIX and NODERPC_BANK_COINS have no effect, as this chain"
                " began with other values: set NODERPC_DATABASE to a new file (noderpc start:"
                " --home) to start a chain with these"
            )
        # Log at the level warning, as most apps don't show lower ones.
        accounts_log.warning(
            "NODERPC_DEV: the mnemonic of these accounts is public; never send real funds to"
            " them\n%s\n%s",
            MNEMONIC,
            "\n".join(found),
        )

    def banner(self, settings: Settings, home: Path, curl: str) -> Iterator[tuple[str, str]]:
        is_begun = has_genesis(home)
        accounts = accounts_of(load(home, 0, settings.dialect).genesis) if is_begun else {}
        if not accounts:
            return
        yield "accounts", "their keys are public: never send real funds to them"
        yield "mnemonic", MNEMONIC
        for address in accounts:
            yield "accounts", address
        address, owned = list(accounts.items())[-1]
        if owned and not any(api.drives_chain for api in settings.apis()):
            params = {"address": address, "coins": f"10{owned[0].denom}"}
            call = {"jsonrpc": "2.0", "id": 1, "method": "dev_faucet", "params": params}
            yield "faucet", f"{curl} -d '{json.dumps(call)}'"
