"""The genesis state of modules that do nothing here, which queries read.

SDK: proto/cosmos/staking, mint and distribution have the fields.
"""

from __future__ import annotations

from ...domain.time import from_text
from ...protocol.protobuf import integer, message, string, timestamp, varint
from ..protocol.keys import from_json
from .context import Codec
from .genesis_json import Item
from .state import Branch

STAKING, MINT, DISTRIBUTION = "staking", "mint", "distribution"

VALIDATOR = b"staking/\x21"
"""Beginning of the keys of validators."""

VALOPER = "valoper"
"""Follows the prefix of accounts in addresses of validators."""

STATUSES = {"BOND_STATUS_UNBONDED": 1, "BOND_STATUS_UNBONDING": 2, "BOND_STATUS_BONDED": 3}
"""Numbers of the states of a validator."""

_MAX_SECONDS = 1 << 63


def params_key(module: str) -> bytes:
    """Return the key of a module's parameters."""
    return module.encode() + b"/params"


def write(branch: Branch, document: Item, codec: Codec) -> None:
    """Store what a genesis state has of these modules; raise
    :exc:`~.genesis_json.InvalidState`."""
    for module, encode in _PARAMS.items():
        if module in document.members:
            branch.writes[params_key(module)] = encode(document[module]["params"])
    operators = Codec(codec.prefix + VALOPER)
    for each in document[STAKING]["validators"]:
        address = each["operator_address"].read(operators.parse, "an address")
        branch.writes[VALIDATOR + bytes((len(address),)) + address] = _validator(each)


def _decimal(number: int, given: Item) -> bytes:
    # The SDK's LegacyDec has 18 places, and is stored without its point.
    text = given.text() or "0"
    return string(number, str(given.read(lambda _: _scaled(text, 18), "a decimal number")))


def _scaled(text: str, places: int) -> int:
    whole, _, fraction = text.partition(".")
    return int(whole + fraction[:places].ljust(places, "0"))


def _texts(given: Item, *names: str) -> bytes:
    return b"".join(string(at, given[name].text()) for at, name in enumerate(names, 1))


def _seconds(given: Item) -> bytes:
    # A Duration has the fields of a Timestamp.
    text = (given.text() or "0s").removesuffix("s")
    duration = given.read(lambda _: _scaled(text, 9), "a duration")
    if not 0 <= duration < _MAX_SECONDS:
        given.refuse(f"expected a duration in seconds such as '1814400s', got {text[:80]!r}")
    return timestamp(duration)


def _amount(number: int, given: Item) -> bytes:
    text = given.text() or "0"
    return string(number, str(given.read(lambda _: int(text), "a whole number")))


def _staking(given: Item) -> bytes:
    numbers = ("max_validators", "max_entries", "historical_entries")
    return (
        message(1, _seconds(given["unbonding_time"]))
        + b"".join(
            integer(at, given[name].whole_number(32)) for at, name in enumerate(numbers, 2)
        )
        + string(5, given["bond_denom"].text())
        + _decimal(6, given["min_commission_rate"])
    )


def _mint(given: Item) -> bytes:
    rates = ("inflation_rate_change", "inflation_max", "inflation_min", "goal_bonded")
    return (
        string(1, given["mint_denom"].text())
        + b"".join(_decimal(at, given[name]) for at, name in enumerate(rates, 2))
        + integer(6, given["blocks_per_year"].whole_number())
    )


def _distribution(given: Item) -> bytes:
    rates = ("community_tax", "base_proposer_reward", "bonus_proposer_reward")
    return b"".join(_decimal(at, given[name]) for at, name in enumerate(rates, 1)) + integer(
        4, given["withdraw_addr_enabled"].flag()
    )


_PARAMS = {STAKING: _staking, MINT: _mint, DISTRIBUTION: _distribution}


def _validator(given: Item) -> bytes:
    key, commission = given["consensus_pubkey"], given["commission"]
    rates = commission["commission_rates"]
    about = ("moniker", "identity", "website", "security_contact", "details")
    parts = ("rate", "max_rate", "max_change_rate")
    encoded = b"".join(_decimal(at, rates[name]) for at, name in enumerate(parts, 1))
    return (
        string(1, given["operator_address"].required_text())
        + message(2, key.read(from_json, "a public key").any)
        + integer(3, given["jailed"].flag())
        + integer(4, STATUSES.get(given["status"].text(), 0))
        + _amount(5, given["tokens"])
        + _decimal(6, given["delegator_shares"])
        + message(7, _texts(given["description"], *about))
        + integer(8, given["unbonding_height"].whole_number(63))
        + message(9, _time(given["unbonding_time"]))
        + message(10, message(1, encoded) + message(2, _time(commission["update_time"])))
        + _amount(11, given["min_self_delegation"])
        + integer(12, given["unbonding_on_hold_ref_count"].whole_number(63))
        + _ids([each.whole_number() for each in given["unbonding_ids"]])
    )


def _time(given: Item) -> bytes:
    text = given.text()
    return timestamp(given.read(lambda _: from_text(text), "a time")) if text else b""


def _ids(ids: list[int]) -> bytes:
    return message(13, b"".join(map(varint, ids))) if ids else b""
