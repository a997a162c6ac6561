"""Tests that the incremental Merkle tree equals hashing all leaves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flask_noderpc.chain.applications.merkle_kvstore import (
    Leaf,
    NodePruned,
    TreeState,
    TreeUpdate,
    find,
    node_key,
)
from flask_noderpc.protocol.comet import hashes
from flask_noderpc.testing.chains import DictState

# For each block: the number of new leaves, and the old leaves that change.
BLOCKS = st.lists(st.tuples(st.integers(0, 20), st.sets(st.integers(0, 60))), max_size=8)


def leaf(text: str) -> Leaf:
    return Leaf(hashes.leaf_hash(text.encode()), text.encode())


def grown(state: DictState, tree: TreeState, leaves: dict[int, str]) -> TreeUpdate:
    growth = TreeUpdate(state, tree, {place: leaf(text) for place, text in leaves.items()})
    state.apply(growth.written)
    return growth


def changes_of(block: int, new: int, touched: set[int], texts: list[str]) -> dict[int, str]:
    changed = {place for place in touched if place < len(texts)}
    fresh = range(len(texts), len(texts) + new)
    return {place: f"{place} in {block}" for place in (*changed, *fresh)}


@given(BLOCKS)
def test_the_incremental_tree_equals_the_tree_over_all_leaves(
    blocks: list[tuple[int, set[int]]],
) -> None:
    state, tree, texts = DictState(), TreeState(), list[str]()
    past = []
    for number, (new, touched) in enumerate(blocks):
        leaves = changes_of(number, new, touched, texts)
        texts = [leaves.get(place, text) for place, text in enumerate(texts)]
        texts += [leaves[place] for place in range(len(texts), len(texts) + new)]
        tree = grown(state, tree, leaves).tree
        past.append((TreeState.decode(tree.encode()), list(texts)))

    for then, known in past:
        whole = hashes.Tree([text.encode() for text in known])
        assert (then.count, then.root.hash) == (len(known), whole.root)
        for place, text in enumerate(known):
            assert find(state, then, place) == (text.encode(), whole.proof(place))


@given(BLOCKS)
def test_only_replaced_nodes_are_unused_by_later_states(
    blocks: list[tuple[int, set[int]]],
) -> None:
    state, tree, texts = DictState(), TreeState(), list[str]()
    for number, (new, touched) in enumerate(blocks):
        leaves = changes_of(number, new, touched, texts)
        growth = grown(state, tree, leaves)
        state.apply({node_key(gone): None for gone in growth.replaced})
        tree = growth.tree
        texts += [""] * new

    for place in range(tree.count):
        find(state, tree, place)
    # A tree of n leaves has n - 1 inner nodes.
    assert len(state) == max(2 * tree.count - 1, 0)


def test_an_update_costs_the_way_to_the_root() -> None:
    state = DictState()
    tree = grown(state, TreeState(), {place: str(place) for place in range(1000)}).tree

    growth = grown(state, tree, {500: "new"})

    assert len(growth.written) == len(growth.replaced) == 11


def test_a_state_without_changes_writes_nothing() -> None:
    state = DictState()
    tree = grown(state, TreeState(), {0: "a", 1: "b"}).tree

    growth = grown(state, tree, {})

    assert (growth.tree, growth.written, growth.replaced) == (tree, {}, [])


def test_a_state_with_pruned_nodes_is_not_read() -> None:
    state = DictState()
    first = grown(state, TreeState(), {0: "a", 1: "b"}).tree
    growth = grown(state, first, {0: "c"})
    state.apply({node_key(gone): None for gone in growth.replaced})

    with pytest.raises(NodePruned):
        find(state, first, 0)
    assert find(state, growth.tree, 0)[0] == b"c"
