"""Hex encoding of addresses and hashes in events and messages."""

from __future__ import annotations

import re

from .keccak import keccak

_HEX = re.compile(r"0[xX](?:[0-9a-fA-F]{2})*", re.ASCII)


def from_hex(text: str, size: int) -> bytes:
    """Decode ``0x`` and exactly ``size`` bytes of hex; raise :exc:`ValueError` otherwise."""
    if len(text) != 2 + 2 * size or not _HEX.fullmatch(text):
        raise ValueError(f"no {size} bytes of hex")
    return bytes.fromhex(text[2:])


def to_checksum(address: bytes) -> str:
    """Encode an address with its EIP-55 checksum: upper case if the hash's digit is above 7."""
    text = address.hex()
    digest = keccak(text.encode()).hex()
    letters = zip(text, digest, strict=False)
    return "0x" + "".join(c.upper() if digit > "7" else c for c, digit in letters)
