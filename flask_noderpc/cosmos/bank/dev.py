"""Accounts of a development chain, whose mnemonic is public."""

from __future__ import annotations

import logging

from ...domain.genesis import Genesis
from ...errors import InvalidSetting
from ..protocol import coins
from ..protocol.coins import Coins, InvalidCoins
from ..protocol.mnemonic import PrivateKey, derive
from .context import Codec
from .genesis import DEFAULT_PREFIX, check_prefix, document, prefix_of, read_coins, state_of

MNEMONIC = "test test test test test test test test test test test junk"
"""Known to everybody, as that of the EVM's development accounts."""

COINS = "1000000000000stake,1000000000000token"
"""Default coins of each account."""

_COUNT = 10

log = logging.getLogger("flask_noderpc.dev")
# A logger of its own: ``noderpc start`` shows them itself.
accounts_log = log.getChild("accounts")


def dev_keys() -> tuple[PrivateKey, ...]:
    """Return the keys of the ten accounts."""
    return tuple(derive(MNEMONIC, index) for index in range(_COUNT))


def dev_addresses(prefix: str = DEFAULT_PREFIX) -> tuple[str, ...]:
    """Return the addresses of the accounts."""
    return tuple(Codec(prefix).show(key.public.address) for key in dev_keys())


def app_state(prefix: str = DEFAULT_PREFIX, each: str = COINS) -> bytes:
    """Return the genesis state in which each of ten accounts, whose mnemonic anybody knows,
    has coins; raise :exc:`~flask_noderpc.errors.InvalidSetting` for coins, or a prefix, that
    are none."""
    check_prefix(prefix)
    try:
        owned = coins.parse(each)
    except InvalidCoins as error:
        raise InvalidSetting(f"NODERPC_BANK_COINS = {each!r}: {error}") from None
    return document(prefix, {key.public.address: owned for key in dev_keys()})


def accounts_of(genesis: Genesis) -> dict[str, Coins]:
    """Return the addresses of the accounts that a chain began with, and what they had."""
    state = state_of(genesis)
    balances = {
        each["address"].text(): read_coins(each["coins"]) for each in state["bank"]["balances"]
    }
    addresses = dev_addresses(prefix_of(state) or DEFAULT_PREFIX)
    return {address: balances[address] for address in addresses if address in balances}


def log_accounts(genesis: Genesis, new: tuple[str, str]) -> None:
    """Log the accounts, and a warning if the genesis does not have them, or others than a new
    chain of this prefix and these coins would have."""
    prefix, each = new
    found = accounts_of(genesis)
    if not found:
        log.warning(
            "NODERPC_DEV: this chain began without the development accounts;"
            " NODERPC_DATABASE at a new file makes a chain that has them"
        )
        return
    if found != dict.fromkeys(dev_addresses(prefix), coins.parse(each)):
        log.warning(
            "NODERPC_BANK_PREFIX and NODERPC_BANK_COINS are those of a new chain, and this one"
            " began with others: NODERPC_DATABASE at a new file (noderpc start: --home) makes"
            " a chain that has them"
        )
    # Most hosts show no log lines below a warning.
    accounts_log.warning(
        "NODERPC_DEV: anybody knows the mnemonic of these accounts; never send them anything"
        " of worth\n%s\n%s",
        MNEMONIC,
        "\n".join(found),
    )
