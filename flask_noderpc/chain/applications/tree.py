"""A copy-on-write Merkle tree in a key-value state, with its past states.

A node is written once, under a unique number, and never changed. A new state of the tree
shares the unchanged nodes with the last one, so an update writes the path from its leaf to
the root, and a past state can be read until its nodes are pruned.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from struct import Struct

from ...backends.base.application import AppState
from ...domain.block import MerkleProof
from ...protocol.comet.merkle import EMPTY_HASH, inner_hash, split_point

_NODE, _STATE = Struct(">Q32s"), Struct(">QQQ32s")


@dataclass(frozen=True, slots=True)
class Node:
    """Reference to a node; an inner node's record is its children, a leaf's its content."""

    number: int = 0
    hash: bytes = EMPTY_HASH


@dataclass(frozen=True, slots=True)
class Leaf:
    """Hash and content of a leaf."""

    hash: bytes
    content: bytes


@dataclass(frozen=True, slots=True)
class TreeState:
    """Root and size of the tree at one height."""

    count: int = 0
    root: Node = Node()
    next_number: int = 0
    """Number of the next node."""

    def encode(self) -> bytes:
        """Encode the state for the store."""
        return _STATE.pack(self.count, self.next_number, self.root.number, self.root.hash)

    @classmethod
    def decode(cls, stored: bytes) -> TreeState:
        """Decode the result of :meth:`encode`."""
        count, next_number, number, root_hash = _STATE.unpack(stored)
        return cls(count, Node(number, root_hash), next_number)


class NodePruned(LookupError):
    """The state was pruned while it was read."""


def node_key(number: int) -> bytes:
    """Return the key under which a node is stored."""
    return b"node:" + number.to_bytes(8)


def find(state: AppState, tree: TreeState, place: int) -> tuple[bytes, MerkleProof]:
    """Return a leaf's content, and the proof that it is under the root.

    Raise :exc:`NodePruned` if the tree's nodes are no longer stored.
    """
    node, count, inside, aunts = tree.root, tree.count, place, []
    while count > 1:
        left, right = _children(state, node)
        half = split_point(count)
        if inside < half:
            node, aunt, count = left, right, half
        else:
            node, aunt, count, inside = right, left, count - half, inside - half
        aunts.append(aunt.hash)
    proof = MerkleProof(tree.count, place, node.hash, tuple(reversed(aunts)))
    return _stored(state, node), proof


class TreeUpdate:
    """The next state of a tree: the nodes to write, and the nodes that it replaces."""

    def __init__(self, state: AppState, tree: TreeState, leaves: Mapping[int, Leaf]) -> None:
        """Set leaves by their index; new ones follow the last without a gap."""
        self._state = state
        self._next = tree.next_number
        self._leaves = leaves
        self.written: dict[bytes, bytes] = {}
        self.replaced: list[int] = []
        places = sorted(leaves)
        count = max(tree.count, places[-1] + 1) if places else tree.count
        root = self._subtree(tree.root, tree.count, 0, count, places) if count else tree.root
        self.tree = TreeState(count, root, self._next)

    def _subtree(self, old: Node, had: int, start: int, count: int, places: list[int]) -> Node:
        """Return the subtree of ``count`` leaves from ``start``; ``old`` has ``had``."""
        if had == count and not places:
            return old
        if count == 1:
            if had:
                self.replaced.append(old.number)
            leaf = self._leaves[start]
            return self._add(leaf.hash, leaf.content)
        half = split_point(count)
        left, right = old, old
        if had > half:
            # Both trees are split at the same leaf.
            left, right = _children(self._state, old)
            self.replaced.append(old.number)
        cut = bisect_left(places, start + half)
        left = self._subtree(left, min(had, half), start, half, places[:cut])
        right = self._subtree(
            right, max(had - half, 0), start + half, count - half, places[cut:]
        )
        return self._add(inner_hash(left.hash, right.hash), _pack((left, right)))

    def _add(self, node_hash: bytes, stored: bytes) -> Node:
        node = Node(self._next, node_hash)
        self._next += 1
        self.written[node_key(node.number)] = stored
        return node


def _pack(nodes: Iterable[Node]) -> bytes:
    return b"".join(_NODE.pack(node.number, node.hash) for node in nodes)


def _children(state: AppState, node: Node) -> tuple[Node, Node]:
    left, right = _NODE.iter_unpack(_stored(state, node))
    return Node(*left), Node(*right)


def _stored(state: AppState, node: Node) -> bytes:
    record = state.get(node_key(node.number))
    if record is None:
        raise NodePruned(node.number)
    return record
