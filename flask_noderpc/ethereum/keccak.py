"""Ethereum's hash."""

from __future__ import annotations

from eth_hash.auto import keccak as _keccak


def keccak(data: bytes) -> bytes:
    """Keccak-256: SHA-3 as it was submitted, before NIST changed its padding."""
    digest: bytes = _keccak(data)
    return digest
