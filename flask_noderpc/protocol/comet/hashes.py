"""Hashes of a header and of the data it commits to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

from ...domain.abci import ExecTxResult
from ...domain.block import (
    Block,
    BlockID,
    Commit,
    Evidence,
    Header,
    LightClientAttackEvidence,
    PartSetHeader,
    TxProof,
)
from ...domain.genesis import ConsensusParams
from ...domain.validator import PublicKey, ValidatorSet
from ..protobuf import blob, integer, message, string, timestamp, varint
from . import merkle, messages

# CometBFT: types.BlockPartSizeBytes.
PART_SIZE = 65536


def tx_hash(tx: bytes) -> bytes:
    """Hash of a transaction."""
    return sha256(tx).digest()


def header_hash(header: Header) -> bytes:
    """Block hash: the Merkle root of the header's fourteen fields, scalars in wrappers."""
    return merkle.root(
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
    """Merkle root over the hashes of the transactions."""
    return merkle.root([tx_hash(tx) for tx in txs])


def tx_proof(txs: Sequence[bytes], index: int) -> TxProof:
    """Inclusion proof of ``txs[index]`` under :func:`data_hash`."""
    tree = merkle.Tree([tx_hash(tx) for tx in txs])
    return TxProof(tree.root, txs[index], tree.proof(index))


def commit_hash(commit: Commit) -> bytes:
    """Merkle root over the signatures."""
    return merkle.root(messages.commit_sigs(commit))


def validators_hash(validators: ValidatorSet) -> bytes:
    """Merkle root over key and power of each validator, in set order."""
    members = validators.validators
    # By columns of plain values, which are hashed without a call for each.
    return _members_hash(
        tuple([v.pub_key.type for v in members]),
        tuple([v.pub_key.value for v in members]),
        tuple([v.voting_power for v in members]),
    )


# Cached: the set changes rarely, and every header contains this hash twice.
@lru_cache(maxsize=32)
def _members_hash(
    types: tuple[str, ...], keys: tuple[bytes, ...], powers: tuple[int, ...]
) -> bytes:
    return merkle.root(
        [
            message(1, messages.public_key(PublicKey(kind, key))) + integer(2, power)
            for kind, key, power in zip(types, keys, powers, strict=True)
        ]
    )


def consensus_hash(params: ConsensusParams) -> bytes:
    """Hash of the block limits; the other parameters are not covered."""
    block = params.block
    return sha256(integer(1, block.max_bytes) + integer(2, block.max_gas)).digest()


def results_hash(results: Iterable[ExecTxResult]) -> bytes:
    """Merkle root over the deterministic part of each result."""
    return merkle.root(
        [
            integer(1, r.code)
            + blob(2, r.data)
            + integer(5, r.gas_wanted)
            + integer(6, r.gas_used)
            for r in results
        ]
    )


def evidence_hash(evidence: Sequence[Evidence], *, plain_keys: bool = False) -> bytes:
    """Merkle root over the evidence, without the oneof wrapper."""
    return merkle.root([messages.evidence(item, plain_keys=plain_keys) for item in evidence])


def has_plain_keys(block: Block) -> bool:
    """Return true if the header covers its evidence in the form of CometBFT 1.0.

    That of attacks on light clients has validators, whose keys 1.0 encodes otherwise.
    """
    if not any(isinstance(item, LightClientAttackEvidence) for item in block.evidence):
        return False
    return evidence_hash(block.evidence, plain_keys=True) == block.header.evidence_hash


def evidence_hash_of(piece: Evidence) -> bytes:
    """Hash of a piece of evidence."""
    if not isinstance(piece, LightClientAttackEvidence):
        return sha256(messages.evidence(piece)).digest()
    # CometBFT: types/evidence.go copies all but the last byte of the header's hash, and the
    # height as Go's zig-zag varint; signers and byzantine validators are not covered.
    block_hash = header_hash(piece.conflicting_block.signed_header.header)
    return sha256(block_hash[:31] + b"\0" + varint(piece.common_height << 1)).digest()


def part_set(block: Block) -> tuple[PartSetHeader, int]:
    """Part set header of the serialised block, and its size in bytes."""
    return _part_set(messages.block(block, plain_keys=has_plain_keys(block)))


def _part_set(body: bytes) -> tuple[PartSetHeader, int]:
    parts = [body[at : at + PART_SIZE] for at in range(0, len(body), PART_SIZE)]
    return PartSetHeader(len(parts), merkle.root(parts)), len(body)


def block_id(block: Block) -> tuple[BlockID, int]:
    """Block id, and the size of the block in bytes."""
    parts, size = part_set(block)
    return BlockID(header_hash(block.header), parts), size


class BlockHashes(NamedTuple):
    """All hashes of a block."""

    block_id: BlockID
    size: int
    """Bytes of the serialised block."""
    tx_hashes: list[bytes]
    data_hash: bytes
    last_commit_hash: bytes
    evidence_hash: bytes


def block_hashes(block: Block) -> BlockHashes:
    """Return all hashes of a block, which is serialised once for them."""
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
        merkle.root(tx_hashes),
        merkle.root(sigs),
        evidence_hash(block.evidence, plain_keys=plain_keys),
    )
