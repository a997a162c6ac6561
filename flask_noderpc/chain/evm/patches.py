"""Transactions that change accounts by hand, for chains of tests.

Such a change is in a block like any other, so the node's surface has it too, and the state
after each block is that of its root.
"""

from __future__ import annotations

import secrets

from ... import json
from ...domain.evm import AccountOverride, Overrides
from ...errors import ConfigurationError, InvalidTransaction
from .genesis import accounts

# No type of a transaction, and no RLP.
_MARK = b"\x7fpatch"


def patch_tx(overrides: Overrides) -> bytes:
    """The transaction that makes a change; no two are the same."""
    alloc = {f"0x{address.hex()}": _shown(each) for address, each in overrides.items()}
    return _MARK + json.encode({"alloc": alloc, "salt": secrets.token_hex(8)})


def _shown(override: AccountOverride) -> dict[str, object]:
    shown: dict[str, object] = {}
    if override.balance is not None:
        shown["balance"] = f"{override.balance:#x}"
    if override.nonce is not None:
        shown["nonce"] = f"{override.nonce:#x}"
    if override.code is not None:
        shown["code"] = f"0x{override.code.hex()}"
    if override.state_diff:
        shown["storage"] = {
            f"0x{slot.hex()}": f"0x{word.hex()}" for slot, word in override.state_diff.items()
        }
    return shown


def is_patch(raw: bytes) -> bool:
    """Whether a transaction is one."""
    return raw.startswith(_MARK)


def overrides_of(raw: bytes) -> Overrides:
    """What a transaction changes; raise :exc:`~flask_noderpc.errors.InvalidTransaction`."""
    try:
        return accounts(raw[len(_MARK) :])
    except ConfigurationError as error:
        raise InvalidTransaction(str(error)) from None
