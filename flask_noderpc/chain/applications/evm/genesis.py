"""Genesis accounts in the format of geth's genesis documents."""

from __future__ import annotations

from typing import Any

from .... import jsoncodec
from ....domain.evm import AccountOverride, Overrides
from ....errors import ConfigurationError, short_repr

# https://geth.ethereum.org/docs/fundamentals/private-network: "alloc" by address.


class _Account(jsoncodec.Struct, forbid_unknown_fields=True):
    balance: str | int | None = None
    nonce: str | int | None = None
    code: str = ""
    storage: dict[str, str] | None = None


class _AppState(jsoncodec.Struct):
    alloc: dict[str, _Account] | None = None


def accounts(app_state: bytes) -> Overrides:
    """Parse ``alloc``; raise :exc:`~flask_noderpc.errors.ConfigurationError`."""
    if not app_state:
        return {}
    try:
        alloc = jsoncodec.decode(app_state, _AppState).alloc or {}
        overrides = {_bytes(address, 20): _override(acct) for address, acct in alloc.items()}
        if len(overrides) < len(alloc):
            raise ValueError("alloc has an account twice")
        return overrides
    except (ValueError, jsoncodec.NotJSON) as error:
        raise ConfigurationError(f"accounts in alloc: {error}") from None


def _override(account: _Account) -> AccountOverride:
    slots = (account.storage or {}).items()
    return AccountOverride(
        nonce=_number(account.nonce, 64),
        balance=_number(account.balance, 256),
        code=_bytes(account.code) if account.code else None,
        state_diff={_word(slot): _word(value) for slot, value in slots},
    )


def app_state(balances: dict[bytes, int]) -> bytes:
    """Encode a genesis state of accounts with a balance in wei and no code."""
    alloc: dict[str, Any] = {
        f"0x{address.hex()}": {"balance": f"{balance:#x}"}
        for address, balance in balances.items()
    }
    return jsoncodec.encode({"alloc": alloc})


def _number(value: str | int | None, bits: int) -> int | None:
    if value is None:
        return None
    number = int(value, 0) if isinstance(value, str) else value
    if not 0 <= number < 1 << bits:
        raise ValueError(f"{short_repr(value)} is no number of {bits} bits")
    return number


def _word(text: str) -> bytes:
    value = _bytes(text).rjust(32, b"\0")
    if len(value) > 32:
        raise ValueError(f"{short_repr(text)} is longer than a word")
    return value


def _bytes(text: str, size: int | None = None) -> bytes:
    value = bytes.fromhex(text.removeprefix("0x"))
    if size is not None and len(value) != size:
        raise ValueError(f"{short_repr(text)} is no address")
    return value
