"""Keys, addresses and vote signatures; private keys are ed25519."""

from __future__ import annotations

import os
from functools import cached_property
from hashlib import sha256

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)

from ...domain.block import NO_BLOCK as NIL
from ...domain.block import BlockIDFlag, Commit, CommitSig, Vote, VoteType
from ...domain.validator import ED25519, SECP256K1, PublicKey
from . import secp256k1
from .messages import canonical_vote
from .secp256k1 import ripemd160


def address(key: PublicKey) -> bytes:
    """Return the 20-byte address of a key; raise :exc:`ValueError` for other key types."""
    if key.type == ED25519 and len(key.value) == 32:
        return sha256(key.value).digest()[:20]
    if key.type == SECP256K1 and len(key.value) == secp256k1.KEY_SIZE:
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
        return secp256k1.verify(key.value, signature, message)
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
