"""Hashes of a header and of the data that it commits to; RFC 6962 Merkle trees over SHA-256, as
CometBFT uses them, and their inclusion proofs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

from ...domain.abci import ExecTxResult, ProofOp
from ...domain.block import (
    Block,
    BlockID,
    Commit,
    Evidence,
    Header,
    LightClientAttackEvidence,
    MerkleProof,
    PartSetHeader,
    TxProof,
)
from ...domain.genesis import ConsensusParams
from ...domain.validator import PublicKey, ValidatorSet
from ..protobuf import blob, delimited, integer, message, string, timestamp, varint
from . import messages
from .messages import MESSAGES

# CometBFT: merkle.MaxAunts, the maximum depth of a tree.
_MAX_AUNTS = 100

EMPTY_HASH = sha256(b"").digest()


def leaf_hash(leaf: bytes) -> bytes:
    """Return the hash of a leaf."""
    return sha256(b"\x00" + leaf).digest()


def inner_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of a node with two children."""
    return sha256(b"\x01" + left + right).digest()


def split_point(count: int) -> int:
    """Return the size of the left subtree: the largest power of two below ``count``."""
    return 1 << ((count - 1).bit_length() - 1)


class Tree:
    """Merkle tree whose hashes are computed once for any number of proofs."""

    def __init__(self, leaves: Sequence[bytes]) -> None:
        # Hash the leaves inline, without a call of :func:`leaf_hash`: a block of a large chain
        # has a thousand leaves.
        level = [sha256(b"\x00" + leaf).digest() for leaf in leaves]
        self._levels = [level]
        # Pair the nodes of each level and promote an odd last node to the next level. Without
        # recursion, this gives the same tree as splitting at the largest power of two.
        while len(level) > 1:
            pairs = zip(level[::2], level[1::2], strict=False)
            paired = [sha256(b"\x01" + left + right).digest() for left, right in pairs]
            if len(level) % 2:
                paired.append(level[-1])
            level = paired
            self._levels.append(level)

    @property
    def root(self) -> bytes:
        """Merkle root; an empty tree has the hash of no bytes."""
        top = self._levels[-1]
        return top[0] if top else EMPTY_HASH

    def proof(self, index: int) -> MerkleProof:
        """Return the inclusion proof of a leaf."""
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
    """Return the Merkle root; an empty list has the hash of no bytes."""
    return Tree(leaves).root


def proof(leaves: Sequence[bytes], index: int) -> MerkleProof:
    """Return the inclusion proof of ``leaves[index]`` in the tree with this :func:`root`."""
    return Tree(leaves).proof(index)


def root_of_proof(claim: MerkleProof) -> bytes | None:
    """Return the root computed from a proof, or ``None`` if no tree has such a proof."""
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
    """Return the leaf hash of a key-value pair."""
    # CometBFT: ValueOp.Run in crypto/merkle/proof_value.go.
    return leaf_hash(delimited(key) + delimited(sha256(value).digest()))


def value_op(key: bytes, proof: MerkleProof) -> ProofOp:
    """Return the proof operator from a key's value to the root of its tree."""
    return ProofOp("simple:v", key, MESSAGES.encode("ValueOp", key=key, proof=proof))


# CometBFT: types.BlockPartSizeBytes.
PART_SIZE = 65536


def tx_hash(tx: bytes) -> bytes:
    """Return the hash of a transaction."""
    return sha256(tx).digest()


def header_hash(header: Header) -> bytes:
    """Return the block hash: the Merkle root of the header's fourteen fields, with scalars in
    wrapper messages."""
    return root(
        (
            messages.version(header.version),
            string(1, header.chain_id),
            integer(1, header.height),
            timestamp(header.time),
            messages.block_id(header.last_block_id),
            blob(1, header.last_commit_hash),
            blob(1, header.data_hash),
            blob(1, header.validators_hash),
            blob(1, header.next_validators_hash),
            blob(1, header.consensus_hash),
            blob(1, header.app_hash),
            blob(1, header.last_results_hash),
            blob(1, header.evidence_hash),
            blob(1, header.proposer_address),
        )
    )


def data_hash(txs: Sequence[bytes]) -> bytes:
    """Return the Merkle root of the transactions' hashes."""
    return root([tx_hash(tx) for tx in txs])


def tx_proof(txs: Sequence[bytes], index: int) -> TxProof:
    """Return the inclusion proof of ``txs[index]`` for the :func:`data_hash`."""
    tree = Tree([tx_hash(tx) for tx in txs])
    return TxProof(tree.root, txs[index], tree.proof(index))


def commit_hash(commit: Commit) -> bytes:
    """Return the Merkle root of a commit's signatures."""
    return root(messages.commit_sigs(commit))


def validators_hash(validators: ValidatorSet) -> bytes:
    """Return the Merkle root of the key and power of each validator, in set order."""
    members = validators.validators
    # Pass columns of plain values, which are hashed without a function call for each
    # validator.
    return _members_hash(
        tuple([v.pub_key.type for v in members]),
        tuple([v.pub_key.value for v in members]),
        tuple([v.voting_power for v in members]),
    )


# Cache the hash, as the validator set changes rarely and every header contains two such
# hashes.
@lru_cache(maxsize=32)
def _members_hash(
    types: tuple[str, ...], keys: tuple[bytes, ...], powers: tuple[int, ...]
) -> bytes:
    return root(
        [
            message(1, messages.public_key(PublicKey(kind, key))) + integer(2, power)
            for kind, key, power in zip(types, keys, powers, strict=True)
        ]
    )


def consensus_hash(params: ConsensusParams) -> bytes:
    """Return the hash of ``block.max_bytes`` and ``block.max_gas``; CometBFT does not hash the
    other parameters."""
    block = params.block
    return sha256(integer(1, block.max_bytes) + integer(2, block.max_gas)).digest()


def results_hash(results: Iterable[ExecTxResult]) -> bytes:
    """Return the Merkle root of the deterministic part of each result."""
    return root(
        [
            integer(1, r.code)
            + blob(2, r.data)
            + integer(5, r.gas_wanted)
            + integer(6, r.gas_used)
            for r in results
        ]
    )


def evidence_hash(evidence: Sequence[Evidence], *, plain_keys: bool = False) -> bytes:
    """Return the Merkle root of the evidence, each piece encoded without protobuf's oneof
    wrapper."""
    return root([messages.evidence(item, plain_keys=plain_keys) for item in evidence])


def has_plain_keys(block: Block) -> bool:
    """Return True if the header's evidence hash is computed from the encoding of CometBFT 1.0.

    Evidence of attacks on light clients contains validators, whose keys CometBFT 1.0 encodes
    differently.
    """
    if not any(isinstance(item, LightClientAttackEvidence) for item in block.evidence):
        return False
    return evidence_hash(block.evidence, plain_keys=True) == block.header.evidence_hash


def evidence_hash_of(piece: Evidence) -> bytes:
    """Return the hash of a piece of evidence."""
    if not isinstance(piece, LightClientAttackEvidence):
        return sha256(messages.evidence(piece)).digest()
    # CometBFT: types/evidence.go copies all but the last byte of the header's hash, and the
    # height as Go's zig-zag varint; it does not cover signers and byzantine validators.
    block_hash = header_hash(piece.conflicting_block.signed_header.header)
    return sha256(block_hash[:31] + b"\0" + varint(piece.common_height << 1)).digest()


def part_set(block: Block) -> tuple[PartSetHeader, int]:
    """Return the part set header of a serialized block, and the block's size in bytes."""
    return _part_set(messages.block(block, plain_keys=has_plain_keys(block)))


def _part_set(body: bytes) -> tuple[PartSetHeader, int]:
    parts = [body[at : at + PART_SIZE] for at in range(0, len(body), PART_SIZE)]
    return PartSetHeader(len(parts), root(parts)), len(body)


def block_id(block: Block) -> tuple[BlockID, int]:
    """Return the block ID, and the size of the block in bytes."""
    parts, size = part_set(block)
    return BlockID(header_hash(block.header), parts), size


class BlockHashes(NamedTuple):
    """All hashes of a block."""

    block_id: BlockID
    size: int
    """Size of the serialized block in bytes."""
    tx_hashes: list[bytes]
    data_hash: bytes
    last_commit_hash: bytes
    evidence_hash: bytes


def block_hashes(block: Block) -> BlockHashes:
    """Return all hashes of a block; the block is serialized once for all of them."""
    tx_hashes = [tx_hash(tx) for tx in block.txs]
    sigs = messages.commit_sigs(block.last_commit)
    plain_keys = has_plain_keys(block)
    body = messages.block(
        block, messages.commit(block.last_commit, sigs), plain_keys=plain_keys
    )
    parts, size = _part_set(body)
    return BlockHashes(
        BlockID(header_hash(block.header), parts),
        size,
        tx_hashes,
        root(tx_hashes),
        root(sigs),
        evidence_hash(block.evidence, plain_keys=plain_keys),
    )
