"""Proofs that a pair is in a tree, as the light client of CometBFT reads them."""

from __future__ import annotations

from hashlib import sha256

from ...domain.abci import ProofOp
from ...domain.block import MerkleProof
from . import merkle
from .protobuf import blob, delimited, integer, message


def pair_hash(key: bytes, value: bytes) -> bytes:
    """Hash of the leaf that a pair is."""
    # CometBFT: ValueOp.Run in crypto/merkle/proof_value.go.
    return merkle.leaf_hash(delimited(key) + delimited(sha256(value).digest()))


def value_op(key: bytes, proof: MerkleProof) -> ProofOp:
    """The step from a value, under this key, to the root of its tree."""
    # CometBFT: ValueOp{1 key, 2 Proof{1 total, 2 index, 3 leaf_hash, 4 aunts}}.
    body = (
        integer(1, proof.total)
        + integer(2, proof.index)
        + blob(3, proof.leaf_hash)
        + b"".join(message(4, aunt) for aunt in proof.aunts)
    )
    return ProofOp("simple:v", key, blob(1, key) + message(2, body))
