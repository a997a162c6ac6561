"""RFC 6962 Merkle trees over SHA-256, as CometBFT uses them, and inclusion proofs from them."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from ...domain.abci import ProofOp
from ...domain.block import MerkleProof
from ..protobuf import delimited
from .messages import MESSAGES

# CometBFT: merkle.MaxAunts; no tree is deeper.
_MAX_AUNTS = 100

EMPTY_HASH = sha256(b"").digest()


def leaf_hash(leaf: bytes) -> bytes:
    """Hash of one leaf."""
    return sha256(b"\x00" + leaf).digest()


def inner_hash(left: bytes, right: bytes) -> bytes:
    """Hash of two children."""
    return sha256(b"\x01" + left + right).digest()


def split_point(count: int) -> int:
    """The largest power of two below ``count``, the size of the left subtree."""
    return 1 << ((count - 1).bit_length() - 1)


class Tree:
    """Merkle tree, hashed once for any number of proofs."""

    def __init__(self, leaves: Sequence[bytes]) -> None:
        # Without a call for each: a block of a large chain has a thousand of them.
        level = [sha256(b"\x00" + leaf).digest() for leaf in leaves]
        self._levels = [level]
        # Pairing level by level and promoting an odd last node gives the same tree as
        # splitting at the largest power of two, without recursion.
        while len(level) > 1:
            pairs = zip(level[::2], level[1::2], strict=False)
            paired = [sha256(b"\x01" + left + right).digest() for left, right in pairs]
            if len(level) % 2:
                paired.append(level[-1])
            level = paired
            self._levels.append(level)

    @property
    def root(self) -> bytes:
        """Merkle root; the hash of no bytes for an empty list."""
        top = self._levels[-1]
        return top[0] if top else EMPTY_HASH

    def proof(self, index: int) -> MerkleProof:
        """Return the inclusion proof of the leaf."""
        leaves = self._levels[0]
        aunts = []
        position = index
        for level in self._levels[:-1]:
            sibling = position ^ 1
            if sibling < len(level):
                aunts.append(level[sibling])
            position //= 2
        return MerkleProof(len(leaves), index, leaves[index], tuple(aunts))


def root(leaves: Sequence[bytes]) -> bytes:
    """Merkle root; the hash of no bytes for an empty list."""
    return Tree(leaves).root


def proof(leaves: Sequence[bytes], index: int) -> MerkleProof:
    """Return the inclusion proof of ``leaves[index]`` under :func:`root`."""
    return Tree(leaves).proof(index)


def root_of_proof(claim: MerkleProof) -> bytes | None:
    """Return the root computed from a proof; ``None`` if the proof fits no tree."""
    if not 0 <= claim.index < claim.total or len(claim.aunts) > _MAX_AUNTS:
        return None
    return _climb(claim.leaf_hash, claim.index, claim.total, list(claim.aunts))


def _climb(leaf: bytes, index: int, total: int, aunts: list[bytes]) -> bytes | None:
    if total == 1:
        return None if aunts else leaf
    if not aunts:
        return None
    aunt = aunts.pop()
    left_size = split_point(total)
    if index < left_size:
        left = _climb(leaf, index, left_size, aunts)
        return None if left is None else inner_hash(left, aunt)
    right = _climb(leaf, index - left_size, total - left_size, aunts)
    return None if right is None else inner_hash(aunt, right)


def pair_hash(key: bytes, value: bytes) -> bytes:
    """Leaf hash of a key-value pair."""
    # CometBFT: ValueOp.Run in crypto/merkle/proof_value.go.
    return leaf_hash(delimited(key) + delimited(sha256(value).digest()))


def value_op(key: bytes, proof: MerkleProof) -> ProofOp:
    """Return the proof operator from a key's value to the root of its tree."""
    return ProofOp("simple:v", key, MESSAGES.encode("ValueOp", key=key, proof=proof))
