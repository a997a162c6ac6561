"""Private keys of validators, and the signatures of votes."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from hashlib import sha256

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ...domain.block import NO_BLOCK as NIL
from ...domain.block import BlockIDFlag, Commit, CommitSig, Vote, VoteType
from ...domain.validator import BLS12_381, ED25519, SECP256K1, SECP256K1ETH, PublicKey
from .key_types import BLS_TAG, address, needing_extra, verify
from .messages import canonical_vote


class PrivateKey:
    """Ed25519 key derived from its 32-byte seed."""

    def __init__(self, seed: bytes) -> None:
        self.seed = seed
        self._sign: Callable[[bytes], bytes] = Ed25519PrivateKey.from_private_bytes(seed).sign

    @classmethod
    def generate(cls) -> PrivateKey:
        """Return a new random key."""
        return cls(os.urandom(32))

    @cached_property
    def public(self) -> PublicKey:
        """Public key."""
        key = Ed25519PrivateKey.from_private_bytes(self.seed)
        return PublicKey(ED25519, key.public_key().public_bytes_raw())

    @cached_property
    def address(self) -> bytes:
        """Validator address of this key."""
        return address(self.public)

    def sign(self, message: bytes) -> bytes:
        """Return a 64-byte signature."""
        return self._sign(message)

    def sign_vote(self, vote: Vote, chain_id: str) -> CommitSig:
        """Sign a vote for a block, and return the signature as an entry of a commit."""
        return CommitSig(
            BlockIDFlag.COMMIT,
            vote.validator_address,
            vote.timestamp,
            self.sign(canonical_vote(vote, chain_id)),
        )


class Secp256k1PrivateKey(PrivateKey):
    """Secp256k1 key derived from its 32-byte secret.

    Raise :exc:`ValueError` for a secret that is not on the curve, and
    :exc:`~flask_noderpc.protocol.comet.key_types.UnsupportedKey` without ``btclib-secp256k1``.
    """

    def __init__(self, seed: bytes) -> None:
        with needing_extra(SECP256K1):
            from btclib_secp256k1 import dsa, keys
        if len(seed) != 32:
            raise ValueError(f"expected a secret of 32 bytes, got {len(seed)}")
        self.seed = seed
        self._point = keys.pubkey_from_prvkey(seed)
        # CometBFT: crypto/secp256k1. The signature of the message's SHA-256 hash is R and the
        # lower S.
        self._sign = lambda message: dsa.sign(
            sha256(message).digest(), seed, compact=True, pubkey=self._point
        )

    @cached_property
    def public(self) -> PublicKey:
        """Public key."""
        return PublicKey(SECP256K1, self._point)


class Secp256k1EthPrivateKey(Secp256k1PrivateKey):
    """Ethereum key derived from its 32-byte secret; raise as :class:`Secp256k1PrivateKey` does.

    CometBFT 0.40: crypto/secp256k1eth. The signature of the message's Keccak-256 hash is R, the
    lower S, and the recovery number of the key.
    """

    def __init__(self, seed: bytes) -> None:
        super().__init__(seed)
        with needing_extra(SECP256K1ETH):
            from ..secp256k1eth import Key, keccak
        key = Key(seed)

        def sign(message: bytes) -> bytes:
            parity, r, s = key.sign(keccak(message))
            return r.to_bytes(32) + s.to_bytes(32) + bytes([parity])

        self._sign = sign

    @cached_property
    def public(self) -> PublicKey:
        """Public key."""
        return PublicKey(SECP256K1ETH, self._point)


class Bls12381PrivateKey(PrivateKey):
    """BLS12-381 key derived from its 32-byte secret.

    Raise :exc:`ValueError` for a secret that is zero or not below the order of the curve, and
    :exc:`~flask_noderpc.protocol.comet.key_types.UnsupportedKey` without
    ``py-arkworks-bls12381``.
    """

    def __init__(self, seed: bytes) -> None:
        with needing_extra(BLS12_381):
            from py_arkworks_bls12381 import G1Point, G2Point, Scalar
        if len(seed) != 32:
            raise ValueError(f"expected a secret of 32 bytes, got {len(seed)}")
        secret = Scalar.from_be_bytes(seed)
        if secret.is_zero():
            raise ValueError("expected a secret that is not zero")
        self.seed = seed
        self._point = G1Point() * secret
        self._sign = lambda message: (
            G2Point.hash_to_curve(message, BLS_TAG) * secret
        ).to_compressed_bytes()

    @cached_property
    def public(self) -> PublicKey:
        """Public key."""
        return PublicKey(BLS12_381, self._point.to_xy_bytes_be())


def commit_vote(commit: Commit, index: int) -> Vote:
    """Return the precommit for ``commit.signatures[index]``."""
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


def verify_vote(vote: Vote, chain_id: str, key: PublicKey) -> bool:
    """Return True if the key signed the vote; raise ``UnsupportedKey`` if no installed library
    can verify the signature."""
    return verify(key, vote.signature, canonical_vote(vote, chain_id))
