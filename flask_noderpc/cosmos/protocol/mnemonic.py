"""Derivation of keys from a mnemonic: BIP 39, BIP 32, and the SDK's path of BIP 44."""

from __future__ import annotations

import hmac
import unicodedata
from functools import lru_cache
from hashlib import pbkdf2_hmac, sha256

from btclib_secp256k1 import dsa, keys

from .keys import Secp256k1Key

# BIP 32: the first hardened index, and the order of the curve.
_HARDENED = 1 << 31
_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
# BIP 39: allowed numbers of words, and PBKDF2 rounds.
_WORDS = (12, 15, 18, 21, 24)
_ROUNDS = 2048
COIN_TYPE = 118
"""The coin type of Cosmos in SLIP 44."""


class PrivateKey:
    """A private secp256k1 key."""

    def __init__(self, secret: bytes) -> None:
        self.secret = secret
        self.public = Secp256k1Key(keys.pubkey_from_prvkey(secret))

    def sign(self, message: bytes) -> bytes:
        """Return R and S, in 64 bytes, of the deterministic signature of a message's
        SHA-256."""
        digest = sha256(message).digest()
        return dsa.sign(digest, self.secret, compact=True, pubkey=self.public.key)


def seed(mnemonic: str) -> bytes:
    """Return the seed of a mnemonic without a passphrase.

    Raise :exc:`ValueError` for an invalid number of words. The checksum is not verified, as
    that needs the word list.
    """
    words = unicodedata.normalize("NFKD", mnemonic).split()
    if len(words) not in _WORDS:
        raise ValueError(
            f"mnemonic: expected 12, 15, 18, 21 or 24 words, got {len(words)} words"
        )
    return pbkdf2_hmac("sha512", " ".join(words).encode(), b"mnemonic", _ROUNDS)


@lru_cache(maxsize=100)
def derive(mnemonic: str, index: int = 0) -> PrivateKey:
    """Return the key at ``m/44'/118'/0'/0/index``; raise as :func:`seed` does."""
    found = _split(hmac.digest(b"Bitcoin seed", seed(mnemonic), "sha512"))
    for step in (44 + _HARDENED, COIN_TYPE + _HARDENED, _HARDENED, 0, index):
        found = _child(*found, step)
    return PrivateKey(found[0])


def _split(digest: bytes) -> tuple[bytes, bytes]:
    return digest[:32], digest[32:]


def _child(secret: bytes, code: bytes, index: int) -> tuple[bytes, bytes]:
    own = b"\0" + secret if index >= _HARDENED else keys.pubkey_from_prvkey(secret)
    tweak, code = _split(hmac.digest(code, own + index.to_bytes(4), "sha512"))
    number = (int.from_bytes(tweak) + int.from_bytes(secret)) % _ORDER
    return number.to_bytes(32), code
