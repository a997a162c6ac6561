"""The accounts that a chain begins with, as geth's genesis documents have them."""

from __future__ import annotations

from typing import Any

from ... import json
from ...domain.evm import AccountOverride, Overrides
from ...errors import ConfigurationError

# https://geth.ethereum.org/docs/fundamentals/private-network: "alloc" by address.


class _Account(json.Struct, forbid_unknown_fields=True):
    balance: str | int | None = None
    nonce: str | int | None = None
    code: str = ""
    storage: dict[str, str] | None = None


class _AppState(json.Struct):
    alloc: dict[str, _Account] | None = None


def accounts(app_state: bytes) -> Overrides:
    """The accounts in ``alloc``; raise :exc:`~flask_noderpc.errors.ConfigurationError`."""
    if not app_state:
        return {}
    try:
        document = json.decode(app_state, _AppState)
        return {
            _bytes(address, 20): AccountOverride(
                nonce=_number(found.nonce),
                balance=_number(found.balance),
                code=_bytes(found.code) if found.code else None,
                state_diff={
                    _bytes(k).rjust(32, b"\0"): _bytes(v).rjust(32, b"\0")
                    for k, v in (found.storage or {}).items()
                },
            )
            for address, found in (document.alloc or {}).items()
        }
    except (ValueError, json.NotJSON) as error:
        raise ConfigurationError(f"accounts in alloc: {error}") from None


def app_state(balances: dict[bytes, int]) -> bytes:
    """The document of accounts that have nothing but a balance, in wei."""
    alloc: dict[str, Any] = {
        f"0x{address.hex()}": {"balance": f"{balance:#x}"}
        for address, balance in balances.items()
    }
    return json.encode({"alloc": alloc})


def _number(value: str | int | None) -> int | None:
    if value is None:
        return None
    number = int(value, 0) if isinstance(value, str) else value
    if not 0 <= number < 1 << 256:
        raise ValueError(f"{value!r} is no number of 256 bits")
    return number


def _bytes(text: str, size: int | None = None) -> bytes:
    value = bytes.fromhex(text.removeprefix("0x"))
    if size is not None and len(value) != size:
        raise ValueError(f"{text!r} is no address")
    return value
