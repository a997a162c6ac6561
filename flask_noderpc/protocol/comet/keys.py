"""Keys, addresses and signatures: ed25519, and secp256k1 for verification.

OpenSSL 3.0.0 to 3.0.6 have RIPEMD-160 in a provider that is not loaded. The fallback follows
the paper of Dobbertin, Bosselaers and Preneel: two parallel lines of five rounds of sixteen
steps for each block of 64 bytes.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Callable, Sequence
from functools import cached_property
from hashlib import sha256

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from ...domain.block import NO_BLOCK as NIL
from ...domain.block import BlockIDFlag, Commit, CommitSig, Vote, VoteType
from ...domain.validator import ED25519, SECP256K1, PublicKey
from .messages import canonical_vote

SECP256K1_KEY_SIZE = 33

_SECP256K1_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141


def verify_secp256k1(key: bytes, signature: bytes, message: bytes) -> bool:
    """Return True if the compressed key signed the message.

    CometBFT: crypto/secp256k1/secp256k1.go. A signature is R and S, 32 bytes each, and S is
    in the lower half, so that nobody can make a second signature of one.
    """
    if len(signature) != 64 or len(key) != SECP256K1_KEY_SIZE:
        return False
    r, s = int.from_bytes(signature[:32]), int.from_bytes(signature[32:])
    if s > _SECP256K1_ORDER // 2:
        return False
    try:
        public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256K1(), key)
        public.verify(encode_dss_signature(r, s), message, ec.ECDSA(SHA256()))
    except (InvalidSignature, ValueError):
        return False
    return True


_RIPEMD_MASK = 0xFFFFFFFF

_RIPEMD_START = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0)

# For each line: the constants of the rounds, the word of each step, and its shift.
_LEFT_K = (0x00000000, 0x5A827999, 0x6ED9EBA1, 0x8F1BBCDC, 0xA953FD4E)
_RIGHT_K = (0x50A28BE6, 0x5C4DD124, 0x6D703EF3, 0x7A6D76E9, 0x00000000)

_RIPEMD_RHO = (7, 4, 13, 1, 10, 6, 15, 3, 12, 0, 9, 5, 2, 14, 11, 8)
_RIPEMD_SHIFTS = (
    (11, 14, 15, 12, 5, 8, 7, 9, 11, 13, 14, 15, 6, 7, 9, 8),
    (12, 13, 11, 15, 6, 9, 9, 7, 12, 15, 11, 13, 7, 8, 7, 7),
    (13, 15, 14, 11, 7, 7, 6, 8, 13, 14, 13, 12, 5, 5, 6, 9),
    (14, 11, 12, 14, 8, 6, 5, 5, 15, 12, 15, 14, 9, 9, 8, 6),
    (15, 12, 13, 13, 9, 5, 8, 6, 14, 11, 12, 11, 8, 6, 5, 5),
)

_Mix = Callable[[int, int, int], int]
_RIPEMD_MIXES: tuple[_Mix, ...] = (
    lambda x, y, z: x ^ y ^ z,
    lambda x, y, z: x & y | ~x & z,
    lambda x, y, z: (x | ~y) ^ z,
    lambda x, y, z: x & z | y & ~z,
    lambda x, y, z: x ^ (y | ~z),
)


def _orders(first: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Return the word order of each of the five rounds; each permutes the previous one."""
    orders = [tuple(first)]
    while len(orders) < 5:
        orders.append(tuple(_RIPEMD_RHO[word] for word in orders[-1]))
    return tuple(orders)


_LEFT_ORDERS = _orders(range(16))
_RIGHT_ORDERS = _orders([(9 * index + 5) % 16 for index in range(16)])


def ripemd160(data: bytes) -> bytes:
    """Return the 20-byte hash."""
    try:
        return hashlib.new("ripemd160", data, usedforsecurity=False).digest()
    except ValueError:
        return ripemd160_py(data)


def ripemd160_py(data: bytes) -> bytes:
    """Return the hash, computed without OpenSSL."""
    state: tuple[int, ...] = _RIPEMD_START
    padding = b"\x80" + bytes(-(len(data) + 9) % 64) + struct.pack("<Q", 8 * len(data))
    padded = data + padding
    for at in range(0, len(padded), 64):
        state = _compressed(state, struct.unpack_from("<16I", padded, at))
    return struct.pack("<5I", *state)


def _compressed(state: tuple[int, ...], words: Sequence[int]) -> tuple[int, ...]:
    left = _line(state, words, _LEFT_ORDERS, _LEFT_K, _RIPEMD_MIXES)
    right = _line(state, words, _RIGHT_ORDERS, _RIGHT_K, _RIPEMD_MIXES[::-1])
    return tuple(
        (state[(i + 1) % 5] + left[(i + 2) % 5] + right[(i + 3) % 5]) & _RIPEMD_MASK
        for i in range(5)
    )


def _line(
    state: tuple[int, ...],
    words: Sequence[int],
    orders: Sequence[Sequence[int]],
    constants: Sequence[int],
    mixes: Sequence[_Mix],
) -> tuple[int, ...]:
    a, b, c, d, e = state
    for order, constant, mix, shifts in zip(
        orders, constants, mixes, _RIPEMD_SHIFTS, strict=True
    ):
        for word in order:
            total = a + (mix(b, c, d) & _RIPEMD_MASK) + words[word] + constant
            rotated_sum = (_rotated(total, shifts[word]) + e) & _RIPEMD_MASK
            a, b, c, d, e = e, rotated_sum, b, _rotated(c, 10), d
    return a, b, c, d, e


def _rotated(value: int, by: int) -> int:
    value &= _RIPEMD_MASK
    return (value << by | value >> (32 - by)) & _RIPEMD_MASK


def address(key: PublicKey) -> bytes:
    """Return the 20-byte address of a key; raise :exc:`ValueError` for other key types."""
    if key.type == ED25519 and len(key.value) == 32:
        return sha256(key.value).digest()[:20]
    if key.type == SECP256K1 and len(key.value) == SECP256K1_KEY_SIZE:
        # CometBFT: crypto/secp256k1/secp256k1.go, the same as in Bitcoin.
        return ripemd160(sha256(key.value).digest())
    raise ValueError(f"no address rule for a {key.type} key of {len(key.value)} bytes")


class PrivateKey:
    """An ed25519 key made from its 32-byte seed."""

    def __init__(self, seed: bytes) -> None:
        self.seed = seed
        self._key = Ed25519PrivateKey.from_private_bytes(seed)

    @classmethod
    def generate(cls) -> PrivateKey:
        """Return a new random key."""
        return cls(os.urandom(32))

    @cached_property
    def public(self) -> PublicKey:
        """Public key."""
        return PublicKey(ED25519, self._key.public_key().public_bytes_raw())

    @cached_property
    def address(self) -> bytes:
        """The validator address of this key."""
        return address(self.public)

    def sign(self, message: bytes) -> bytes:
        """Return a 64-byte signature."""
        return self._key.sign(message)


def verify(key: PublicKey, signature: bytes, message: bytes) -> bool:
    """Return True if the key signed the message."""
    if key.type == SECP256K1:
        return verify_secp256k1(key.value, signature, message)
    if key.type != ED25519:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(key.value).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def commit_vote(commit: Commit, index: int) -> Vote:
    """Return the precommit of ``commit.signatures[index]``."""
    sig = commit.signatures[index]
    return Vote(
        type=VoteType.PRECOMMIT,
        height=commit.height,
        round=commit.round,
        block_id=commit.block_id if sig.block_id_flag == BlockIDFlag.COMMIT else NIL,
        timestamp=sig.timestamp,
        validator_address=sig.validator_address,
        validator_index=index,
        signature=sig.signature,
    )


def sign_commit_vote(vote: Vote, chain_id: str, key: PrivateKey) -> CommitSig:
    """Sign a vote and return its signature entry of a commit."""
    return CommitSig(
        BlockIDFlag.COMMIT,
        vote.validator_address,
        vote.timestamp,
        key.sign(canonical_vote(vote, chain_id)),
    )


def verify_vote(vote: Vote, chain_id: str, key: PublicKey) -> bool:
    """Return True if the key signed the vote."""
    return verify(key, vote.signature, canonical_vote(vote, chain_id))
