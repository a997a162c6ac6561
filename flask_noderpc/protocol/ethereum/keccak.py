"""Ethereum's hash."""

from __future__ import annotations

from .extra import of_the_extra

with of_the_extra():
    # Not eth_hash.auto: it looks for a backend at its first hash, and says too late that there
    # is none.
    from eth_hash.backends.pycryptodome import keccak256


def keccak(data: bytes) -> bytes:
    """Keccak-256: SHA-3 as it was submitted, before NIST changed its padding."""
    digest: bytes = keccak256(data)
    return digest
