"""Read and run the steps of a proof as a light client does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256

from flask_noderpc.domain.abci import ProofOp
from flask_noderpc.domain.block import MerkleProof
from flask_noderpc.protocol.comet.hashes import leaf_hash, root_of_proof


def root_of(steps: Sequence[ProofOp], path: Sequence[bytes], value: bytes) -> bytes | None:
    """Return the root that the steps lead to from a value; ``None`` if they don't fit it."""
    keys, found = list(path), value
    for step in steps:
        assert step.type == "simple:v"
        assert keys.pop() == step.key
        root = _climb(step, found)
        if root is None:
            return None
        found = root
    assert not keys
    return found


def _climb(step: ProofOp, value: bytes) -> bytes | None:
    op = list(_fields(step.data))
    assert op[0] == (1, step.key)
    proof = read_proof(op[1][1])
    hashed = sha256(value).digest()
    leaf = bytes([len(step.key)]) + step.key + bytes([32]) + hashed
    return root_of_proof(proof) if leaf_hash(leaf) == proof.leaf_hash else None


def read_proof(data: bytes) -> MerkleProof:
    """Read Proof{1 total, 2 index, 3 leaf_hash, 4 aunts}."""
    numbers, leaf, aunts = {1: 0, 2: 0}, b"", []
    for number, found in _fields(data):
        if number == 3:
            leaf = found
        elif number == 4:
            aunts.append(found)
        else:
            numbers[number] = int.from_bytes(found)
    return MerkleProof(numbers[1], numbers[2], leaf, tuple(aunts))


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the content of each field; an integer as its big-endian bytes."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, at = _varint(data, at)
        if tag & 7 == 0:
            yield tag >> 3, number.to_bytes(8)
        else:
            yield tag >> 3, data[at : at + number]
            at += number


def _varint(data: bytes, at: int) -> tuple[int, int]:
    found = shift = 0
    while True:
        found |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            return found, at
