"""Keccak-256, addresses, signatures and keys of Ethereum; geth: package crypto."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from importlib.util import find_spec

from ...errors import InvalidTransaction
from ..domain.records import Authorization
from . import rlp


@contextmanager
def of_the_extra() -> Iterator[None]:
    """Add the ``pip install`` command to a ``ModuleNotFoundError`` of the imports inside."""
    try:
        yield
    except ModuleNotFoundError as error:
        hint = "pip install 'flask-noderpc[evm]'"
        raise ModuleNotFoundError(
            f"Ethereum needs {error.name}: {hint}", name=error.name
        ) from None


with of_the_extra():
    # Not eth_hash.auto: it looks for a backend at its first hash, and says too late that there
    # is none. pysha3 takes a sixth of the time, and is not built for every system.
    if find_spec("sha3"):
        from eth_hash.backends.pysha3 import keccak256
    else:
        from eth_hash.backends.pycryptodome import keccak256


def keccak(data: bytes) -> bytes:
    """Keccak-256: SHA-3 as it was submitted, before NIST changed its padding."""
    digest: bytes = keccak256(data)
    return digest


def from_hex(text: str, size: int) -> bytes:
    """Decode ``0x`` and exactly ``size`` bytes of hex; raise :exc:`ValueError` otherwise."""
    if len(text) == 2 + 2 * size and text[:2] in ("0x", "0X"):
        value = bytes.fromhex(text[2:])
        # fromhex skips spaces, and then there are fewer.
        if len(value) == size:
            return value
    raise ValueError(f"no {size} bytes of hex")


def to_checksum(address: bytes) -> str:
    """Encode an address with its EIP-55 checksum: upper case if the hash's digit is above 7."""
    text = address.hex()
    digest = keccak(text.encode()).hex()
    letters = zip(text, digest, strict=False)
    return "0x" + "".join(c.upper() if digit > "7" else c for c, digit in letters)


with of_the_extra():
    from btclib_secp256k1 import keys, recovery

ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141

# EIP-7702: in front of what an account signs to let another's code act for it.
_AUTHORIZES = b"\x05"


def authority_of(given: Authorization) -> bytes | None:
    """EIP-7702: the account that lets another's code act for it; ``None`` for nobody."""
    signed = rlp.encode([given.chain_id, given.address, given.nonce])
    try:
        return signer(keccak(_AUTHORIZES + signed), given.y_parity, given.r, given.s)
    except InvalidTransaction:
        return None


def signer(digest: bytes, parity: int, r: int, s: int) -> bytes:
    """The address whose key signed a digest; raise :exc:`InvalidTransaction` for nobody's.

    EIP-2: S is in the lower half, so that nobody can make a second signature of one.
    """
    if parity not in (0, 1) or not 0 < r < ORDER or not 0 < s <= ORDER // 2:
        raise InvalidTransaction("invalid transaction v, r, s values")
    address = recovered(digest, parity, r, s)
    if address is None:
        raise InvalidTransaction("recovery failed")
    return address


def recovered(digest: bytes, parity: int, r: int, s: int) -> bytes | None:
    """Return the address whose key made a signature, whose S may be in the upper half, too;
    ``None`` if R is not the coordinate of a point."""
    signature = r.to_bytes(32) + s.to_bytes(32)
    try:
        return _address_of(recovery.recover(digest, signature, parity, compressed=False))
    except ValueError:
        return None


def _address_of(key: bytes) -> bytes:
    # The hash is of the two coordinates, without the byte in front of them.
    return keccak(key[1:])[12:]


def address_of_compressed(key: bytes) -> bytes:
    """The address of a public key of 33 bytes; raise :exc:`ValueError` if it is none."""
    return _address_of(keys.reserialize(key, compressed=False))


class Key:
    """A private key of 32 bytes."""

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
        """Return R, S and 27 or 28, the format of wallets for messages."""
        parity, r, s = self.sign(digest)
        return r.to_bytes(32) + s.to_bytes(32) + bytes((27 + parity,))


def personal_digest(message: bytes) -> bytes:
    """Return the signing hash of a message (EIP-191), which no transaction can have."""
    return keccak(b"\x19Ethereum Signed Message:\n%d%b" % (len(message), message))


# m/44'/60'/0'/0/0 to 9 of "test test test test test test test test test test test junk".
DEV_KEYS = tuple(
    Key(bytes.fromhex(secret))
    for secret in (
        "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
        "59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
        "5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
        "7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
        "47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a",
        "8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba",
        "92db14e403b83dfe3df233f83dfa3a0d7096f21ca9b0d6d6b8d88b2b4ec1564e",
        "4bbbf85ce3377467afe5d46f804f221813b2bb87f24d81f60f1fcdbf7cbf4356",
        "dbda1821b80551c9d65939329250298aa3472ba22feea921c0cf5d620ea67b97",
        "2a871d0798f97d79848a013d4936a73bf4cc922c825d33c1cf7073dff6d409c6",
    )
)
"""Publicly known keys of the accounts of every development chain."""
