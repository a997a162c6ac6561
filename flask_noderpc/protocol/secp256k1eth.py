"""Keccak-256, and Ethereum's addresses, signatures and keys of secp256k1, which are also those
of CometBFT 0.40's key type ``secp256k1eth``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from importlib.util import find_spec

from ..errors import InvalidTransaction
from ..installation import install_hint


@contextmanager
def hint_at_extra() -> Iterator[None]:
    """Add how to install the extra to a ``ModuleNotFoundError`` that is raised in the
    block."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"Ethereum needs the library {error.name}: {install_hint('evm')}", name=error.name
        ) from None


with hint_at_extra():
    # Select the backend here: eth_hash.auto selects it at the first hash, so a missing library
    # would be reported too late. Prefer pysha3, which is six times as fast but is not built
    # for every system.
    if find_spec("sha3"):
        from eth_hash.backends.pysha3 import keccak256
    else:
        from eth_hash.backends.pycryptodome import keccak256


def keccak(data: bytes) -> bytes:
    """Return the Keccak-256 hash: SHA-3 as submitted, before NIST changed its padding."""
    digest: bytes = keccak256(data)
    return digest


def to_checksum(address: bytes) -> str:
    """Return an address as hex with its EIP-55 checksum: a letter is upper case if the hex
    digit at its position in the address's hash is above 7."""
    text = address.hex()
    digest = keccak(text.encode()).hex()
    letters = zip(text, digest, strict=False)
    return "0x" + "".join(c.upper() if digit > "7" else c for c, digit in letters)


with hint_at_extra():
    from btclib_secp256k1 import keys, recovery

ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141


def recover_signer(digest: bytes, parity: int, r: int, s: int) -> bytes:
    """Return the address whose key signed a digest; raise :exc:`InvalidTransaction` for an
    invalid signature.

    EIP-2: S must be in the lower half, so that no second valid signature can be derived.
    """
    if parity not in (0, 1) or not 0 < r < ORDER or not 0 < s <= ORDER // 2:
        raise InvalidTransaction("invalid transaction v, r, s values")
    address = recover_address(digest, parity, r, s)
    if address is None:
        raise InvalidTransaction("recovery failed")
    return address


def recover_address(digest: bytes, parity: int, r: int, s: int) -> bytes | None:
    """Return the address whose key signed a digest, even if S is in the upper half; ``None`` if
    R is not the coordinate of a point."""
    signature = r.to_bytes(32) + s.to_bytes(32)
    try:
        return _address_of(recovery.recover(digest, signature, parity, compressed=False))
    except ValueError:
        return None


def _address_of(key: bytes) -> bytes:
    # The hash covers the two coordinates, without the format byte before them.
    return keccak(key[1:])[12:]


def address_of_compressed(key: bytes) -> bytes:
    """Return the address of a 33-byte public key; raise :exc:`ValueError` if the key is
    invalid."""
    return _address_of(keys.reserialize(key, compressed=False))


class Key:
    """Private key of 32 bytes."""

    def __init__(self, secret: bytes) -> None:
        self.secret = secret
        self._point = keys.pubkey_from_prvkey(secret, compressed=False)

    @cached_property
    def address(self) -> bytes:
        """Address of the key's account."""
        return _address_of(self._point)

    def sign(self, digest: bytes) -> tuple[int, int, int]:
        """Return parity, R and S of the deterministic signature (RFC 6979)."""
        signature, parity = recovery.sign(digest, self.secret, pubkey=self._point)
        return parity, int.from_bytes(signature[:32]), int.from_bytes(signature[32:])

    def sign_digest(self, digest: bytes) -> bytes:
        """Return the signature in the format of wallets: R, S, and the byte 27 or 28 for the
        parity."""
        parity, r, s = self.sign(digest)
        return r.to_bytes(32) + s.to_bytes(32) + bytes((27 + parity,))
