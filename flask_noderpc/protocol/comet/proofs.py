"""Inclusion proofs of key-value pairs, in the form that CometBFT's light client verifies."""

from __future__ import annotations

from hashlib import sha256

from ...domain.abci import ProofOp
from ...domain.block import MerkleProof
from ..protobuf import blob, delimited, integer, message
from . import merkle


def pair_hash(key: bytes, value: bytes) -> bytes:
    """Leaf hash of a key-value pair."""
    # CometBFT: ValueOp.Run in crypto/merkle/proof_value.go.
    return merkle.leaf_hash(delimited(key) + delimited(sha256(value).digest()))


def value_op(key: bytes, proof: MerkleProof) -> ProofOp:
    """Return the proof operator from a key's value to the root of its tree."""
    # CometBFT: ValueOp{1 key, 2 Proof{1 total, 2 index, 3 leaf_hash, 4 aunts}}.
    body = (
        integer(1, proof.total)
        + integer(2, proof.index)
        + blob(3, proof.leaf_hash)
        + b"".join(message(4, aunt) for aunt in proof.aunts)
    )
    return ProofOp("simple:v", key, blob(1, key) + message(2, body))
