"""Tests of Merkle roots and proofs against the definition of RFC 6962."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flask_noderpc.domain.block import MerkleProof
from flask_noderpc.protocol.comet import hashes

LEAVES = st.lists(st.binary(max_size=40), min_size=1, max_size=70)


@st.composite
def leaves_and_index(draw: st.DrawFn) -> tuple[list[bytes], int]:
    leaves = draw(LEAVES)
    return leaves, draw(st.integers(0, len(leaves) - 1))


def reference(leaves: list[bytes]) -> bytes:
    """Compute the root as RFC 6962, section 2.1, defines it."""
    if not leaves:
        return sha256().digest()
    if len(leaves) == 1:
        return sha256(b"\x00" + leaves[0]).digest()
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return sha256(b"\x01" + reference(leaves[:split]) + reference(leaves[split:])).digest()


@given(st.lists(st.binary(max_size=40), max_size=70))
def test_the_root_is_that_of_rfc_6962(leaves: list[bytes]) -> None:
    assert hashes.root(leaves) == reference(leaves)


@pytest.mark.parametrize("count", range(1, 70))
def test_every_leaf_of_every_small_tree_climbs_to_the_root(count: int) -> None:
    leaves = [bytes([index]) for index in range(count)]

    roots = {hashes.root_of_proof(hashes.proof(leaves, index)) for index in range(count)}

    assert roots == {hashes.root(leaves)}


@given(leaves_and_index())
def test_a_proof_names_its_leaf(drawn: tuple[list[bytes], int]) -> None:
    leaves, index = drawn

    proof = hashes.proof(leaves, index)

    assert (proof.total, proof.index) == (len(leaves), index)
    assert proof.leaf_hash == hashes.leaf_hash(leaves[index])
    assert hashes.root_of_proof(proof) == hashes.root(leaves)


@given(leaves_and_index(), st.data())
def test_a_changed_aunt_is_refused(drawn: tuple[list[bytes], int], data: st.DataObject) -> None:
    leaves, index = drawn
    proof = hashes.proof([*leaves, b"one more"], index)
    at = data.draw(st.integers(0, len(proof.aunts) - 1))
    other = bytes(255 - byte for byte in proof.aunts[at])
    changed = replace(proof, aunts=(*proof.aunts[:at], other, *proof.aunts[at + 1 :]))

    assert hashes.root_of_proof(changed) != hashes.root([*leaves, b"one more"])


@given(leaves_and_index())
def test_a_changed_leaf_is_refused(drawn: tuple[list[bytes], int]) -> None:
    leaves, index = drawn
    proof = replace(hashes.proof(leaves, index), leaf_hash=bytes(32))

    assert hashes.root_of_proof(proof) != hashes.root(leaves)


@given(leaves_and_index(), st.integers(-2, 80))
def test_a_changed_index_is_refused(drawn: tuple[list[bytes], int], index: int) -> None:
    leaves = [b"%d" % at + leaf for at, leaf in enumerate(drawn[0])]
    proof = hashes.proof(leaves, drawn[1])
    changed = replace(proof, index=index)

    assert (hashes.root_of_proof(changed) == hashes.root(leaves)) == (index == proof.index)


# A total is only bound by the path's length: totals of 5 and 6 leaves give leaf 0 the same
# path.
@given(leaves_and_index())
def test_a_total_that_gives_another_path_length_is_refused(
    drawn: tuple[list[bytes], int],
) -> None:
    leaves, index = drawn
    proof = hashes.proof(leaves, index)
    doubled = replace(proof, total=2 * proof.total)
    cut = replace(proof, total=proof.index)

    assert hashes.root_of_proof(cut) is None
    assert hashes.root_of_proof(doubled) != hashes.root(leaves)


@pytest.mark.parametrize(
    "proof",
    [
        MerkleProof(0, 0, bytes(32)),
        MerkleProof(1, 1, bytes(32)),
        MerkleProof(1, -1, bytes(32)),
        MerkleProof(1, 0, bytes(32), (bytes(32),)),
        MerkleProof(2, 0, bytes(32)),
        MerkleProof(2, 1, bytes(32)),
        MerkleProof(2, 0, bytes(32), (bytes(32), bytes(32))),
        MerkleProof(4, 3, bytes(32), (bytes(32),)),
    ],
)
def test_a_malformed_proof_has_no_root(proof: MerkleProof) -> None:
    assert hashes.root_of_proof(proof) is None


def test_a_leaf_cannot_pass_for_a_node() -> None:
    left, right = hashes.leaf_hash(b"a"), hashes.leaf_hash(b"b")

    assert hashes.leaf_hash(left + right) != hashes.inner_hash(left, right)


@pytest.mark.parametrize(
    ("count", "left"), [(2, 1), (3, 2), (4, 2), (5, 4), (8, 4), (9, 8), (1000, 512)]
)
def test_the_left_subtree_is_the_largest_power_of_two_below(count: int, left: int) -> None:
    assert hashes.split_point(count) == left


def test_the_first_leaf_of_five_has_its_aunts_from_the_bottom_up() -> None:
    leaves = [b"a", b"b", b"c", b"d", b"e"]

    proof = hashes.proof(leaves, 0)

    b, c, d, e = (hashes.leaf_hash(leaf) for leaf in leaves[1:])
    assert proof.aunts == (b, hashes.inner_hash(c, d), e)


def test_a_position_outside_the_tree_has_no_proof() -> None:
    with pytest.raises(IndexError):
        hashes.proof([b"a"], 1)
