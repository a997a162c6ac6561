"""Accounts by address, from geth's genesis documents and from the state dumps of anvil.

The member "alloc" of a genesis: https://geth.ethereum.org/docs/fundamentals/private-network.
"""

from __future__ import annotations

import re
import zlib
from binascii import unhexlify
from collections.abc import Mapping
from typing import Any

from ... import jsoncodec
from ...errors import short_repr
from ..domain.execution import AccountOverride, Overrides

_HEX, _DECIMAL = re.compile(r"0[xX][0-9a-fA-F]*"), re.compile(r"[0-9]+", re.ASCII)
_WORD = re.compile(r"[0-9a-fA-F]{0,64}")
# zlib's ``wbits``: write gzip, and read zlib or gzip as the header says.
_GZIP, _ZLIB_OR_GZIP = 31, 47
_GZIP_MARK = b"\x1f\x8b"


class _Account(jsoncodec.Struct, forbid_unknown_fields=True):
    balance: str | int | None = None
    nonce: str | int | None = None
    code: str = ""
    storage: dict[str, str | int] | None = None
    # Members that other tools add; they are ignored, as they are not part of the state.
    secretKey: Any = None  # noqa: N815  # as JSON has it
    comment: Any = None
    builtin: Any = None
    codeHash: Any = None  # noqa: N815


class _Genesis(jsoncodec.Struct):
    alloc: dict[str, _Account] | None = None


class _Dump(jsoncodec.Struct):
    accounts: dict[str, _Account]


def genesis_accounts(document: bytes) -> Overrides:
    """Return the accounts in ``alloc`` of a genesis document; raise :exc:`ValueError` for an
    invalid account, or :exc:`~flask_noderpc.jsoncodec.NotJSON`."""
    return _overrides(jsoncodec.decode(document, _Genesis).alloc or {})


def is_anvil_dump(dump: bytes) -> bool:
    """Return true if a dump has anvil's format: JSON, usually compressed with gzip."""
    return dump.startswith((_GZIP_MARK, b"{"))


def dumped_accounts(dump: bytes, max_bytes: int) -> Overrides:
    """Return the accounts in a dump of anvil, without its blocks and transactions; raise
    :exc:`ValueError`."""
    document = decompress(dump, max_bytes) if dump.startswith(_GZIP_MARK) else dump
    try:
        return _overrides(jsoncodec.decode(document, _Dump).accounts)
    except jsoncodec.NotJSON as error:
        raise ValueError(f"expected JSON: {error}; pass the whole dump") from None


def decompress(dump: bytes, max_bytes: int) -> bytes:
    """Decompress a dump, which is zlib or gzip data; raise :exc:`ValueError` if it is damaged,
    or has more than ``max_bytes`` after decompression."""
    unpacking = zlib.decompressobj(_ZLIB_OR_GZIP)
    try:
        document = unpacking.decompress(dump, max_bytes + 1)
    except zlib.error:
        raise ValueError("got damaged zlib or gzip data; dump the state again") from None
    if len(document) > max_bytes:
        raise ValueError(
            f"expected at most {max_bytes} bytes after decompression, got more; raise"
            " NODERPC_MAX_RESPONSE_BYTES"
        )
    if not unpacking.eof:
        raise ValueError("got data without its end; pass the whole dump")
    if unpacking.unused_data:
        raise ValueError("got more data after the end of the dump; pass only the dump")
    return document


def encode_dump(accounts: Mapping[str, object]) -> bytes:
    """Encode accounts as a dump that anvil loads without changing its blocks."""
    document: dict[str, object] = {
        "block": None,
        "accounts": accounts,
        "best_block_number": None,
        "blocks": [],
        "transactions": [],
        "historical_states": None,
    }
    packing = zlib.compressobj(wbits=_GZIP)
    return packing.compress(jsoncodec.encode(document)) + packing.flush()


def _overrides(alloc: Mapping[str, _Account]) -> Overrides:
    found = {_address(address): _override(account) for address, account in alloc.items()}
    if len(found) < len(alloc):
        raise ValueError(
            "expected each address once, got one in two spellings; remove one of them"
        )
    return found


def _override(account: _Account) -> AccountOverride:
    slots = (account.storage or {}).items()
    return AccountOverride(
        nonce=_number(account.nonce, 64),
        balance=_number(account.balance, 256),
        code=_bytes(account.code) if account.code else None,
        state_diff={_word(slot): _word(value) for slot, value in slots},
    )


def _number(value: str | int | None, bits: int) -> int | None:
    if value is None:
        return None
    number = value if isinstance(value, int) else _number_of(value)
    if number is None or not 0 <= number < 1 << bits:
        raise ValueError(
            f"expected a number of at most {bits} bits, as JSON, decimal text, or hex text with"
            f" 0x; got {short_repr(value)}"
        )
    return number


def _number_of(text: str) -> int | None:
    if _HEX.fullmatch(text):
        return int(text[2:] or "0", 16) if len(text) <= 80 else None
    return int(text) if _DECIMAL.fullmatch(text) and len(text) <= 80 else None


def _word(value: str | int) -> bytes:
    """Return 32 bytes from a number, or from hex that may lack leading zeros."""
    digits = value.removeprefix("0x") if isinstance(value, str) else f"{value:x}"
    if not _WORD.fullmatch(digits):
        raise ValueError(f"expected a word of at most 64 hex digits, got {short_repr(value)}")
    return int(digits or "0", 16).to_bytes(32)


def _address(text: str) -> bytes:
    found = _bytes(text)
    if len(found) != 20:
        raise ValueError(f"expected an address of 40 hex digits, got {short_repr(text)}")
    return found


def _bytes(text: str) -> bytes:
    try:
        # bytes.fromhex would accept spaces.
        return unhexlify(text.removeprefix("0x"))
    except ValueError:
        raise ValueError(f"expected hex, got {short_repr(text)}") from None
