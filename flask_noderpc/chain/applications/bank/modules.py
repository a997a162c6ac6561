"""The genesis state of modules that do nothing here, which queries read.

SDK: proto/cosmos/staking, mint and distribution have the fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....domain.time import from_text
from ....errors import short_repr
from ....protocol.cosmos.keys import from_json
from ....protocol.protobuf import integer, message, string, timestamp, varint
from .context import Codec
from .state import Branch

STAKING, MINT, DISTRIBUTION = "staking", "mint", "distribution"

VALIDATOR = b"staking/\x21"
"""Beginning of the keys of validators."""

VALOPER = "valoper"
"""Follows the prefix of accounts in addresses of validators."""

STATUSES = {"BOND_STATUS_UNBONDED": 1, "BOND_STATUS_UNBONDING": 2, "BOND_STATUS_BONDED": 3}
"""Numbers of the states of a validator."""

_Object = Mapping[str, Any]
_MAX_DIGITS = 20


def params_key(module: str) -> bytes:
    """Return the key of a module's parameters."""
    return module.encode() + b"/params"


def whole_number(given: _Object, name: str, bits: int = 64) -> int:
    """Return a number of the SDK's JSON, 0 where it is absent; raise :exc:`ValueError` for one
    that is none, below zero or of more bits."""
    value = given.get(name) or 0
    text = str(value)
    is_number = text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS
    if not is_number or int(text) >> bits:
        raise ValueError(
            f"{name} {short_repr(value)} is no whole number from 0 to {(1 << bits) - 1}"
        )
    return int(text)


def write(branch: Branch, document: _Object, codec: Codec) -> None:
    """Store what a genesis state has of these modules; raise :exc:`KeyError`,
    :exc:`ValueError` or :exc:`TypeError` for what is none."""
    for module, encode in _PARAMS.items():
        if module in document:
            params = (document[module] or {}).get("params") or {}
            branch.writes[params_key(module)] = encode(params)
    operators = Codec(codec.prefix + VALOPER)
    for each in (document.get(STAKING) or {}).get("validators") or ():
        address = operators.parse(each["operator_address"])
        branch.writes[VALIDATOR + bytes((len(address),)) + address] = _validator(each)


def _decimal(number: int, given: _Object, name: str) -> bytes:
    # The SDK's LegacyDec has 18 places, and is stored without its point.
    return string(number, str(_scaled(given.get(name) or "0", 18)))


def _scaled(text: str, places: int) -> int:
    whole, _, fraction = text.partition(".")
    return int(whole + fraction[:places].ljust(places, "0"))


def _texts(given: _Object, *names: str) -> bytes:
    return b"".join(string(at, given.get(name) or "") for at, name in enumerate(names, 1))


def _seconds(text: str) -> bytes:
    # A Duration has the fields of a Timestamp.
    return timestamp(_scaled(text.removesuffix("s"), 9))


def _staking(given: _Object) -> bytes:
    numbers = ("max_validators", "max_entries", "historical_entries")
    return (
        message(1, _seconds(given.get("unbonding_time") or "0s"))
        + b"".join(
            integer(at, whole_number(given, name, 32)) for at, name in enumerate(numbers, 2)
        )
        + string(5, given.get("bond_denom") or "")
        + _decimal(6, given, "min_commission_rate")
    )


def _mint(given: _Object) -> bytes:
    rates = ("inflation_rate_change", "inflation_max", "inflation_min", "goal_bonded")
    return (
        string(1, given.get("mint_denom") or "")
        + b"".join(_decimal(at, given, name) for at, name in enumerate(rates, 2))
        + integer(6, whole_number(given, "blocks_per_year"))
    )


def _distribution(given: _Object) -> bytes:
    rates = ("community_tax", "base_proposer_reward", "bonus_proposer_reward")
    return b"".join(_decimal(at, given, name) for at, name in enumerate(rates, 1)) + integer(
        4, bool(given.get("withdraw_addr_enabled"))
    )


_PARAMS = {STAKING: _staking, MINT: _mint, DISTRIBUTION: _distribution}


def _validator(given: _Object) -> bytes:
    key, commission = given["consensus_pubkey"], given.get("commission") or {}
    rates = commission.get("commission_rates") or {}
    about = ("moniker", "identity", "website", "security_contact", "details")
    parts = ("rate", "max_rate", "max_change_rate")
    encoded = b"".join(_decimal(at, rates, name) for at, name in enumerate(parts, 1))
    return (
        string(1, given["operator_address"])
        + message(2, from_json(key).any)
        + integer(3, bool(given.get("jailed")))
        + integer(4, STATUSES.get(given.get("status") or "", 0))
        + string(5, str(int(given.get("tokens") or 0)))
        + _decimal(6, given, "delegator_shares")
        + message(7, _texts(given.get("description") or {}, *about))
        + integer(8, whole_number(given, "unbonding_height", 63))
        + message(9, _time(given.get("unbonding_time")))
        + message(10, message(1, encoded) + message(2, _time(commission.get("update_time"))))
        + string(11, str(int(given.get("min_self_delegation") or 0)))
        + integer(12, whole_number(given, "unbonding_on_hold_ref_count", 63))
        + _ids([int(each) for each in given.get("unbonding_ids") or ()])
    )


def _time(text: str | None) -> bytes:
    return timestamp(from_text(text)) if text else b""


def _ids(ids: list[int]) -> bytes:
    return message(13, b"".join(map(varint, ids))) if ids else b""
