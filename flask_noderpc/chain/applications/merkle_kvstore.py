"""Key-value application whose app hash is a Merkle root, so that its values can be proven.

Each node of the tree is stored once, under a unique number, and never changed. A new state of
the tree shares the unchanged nodes with the previous state: an update only writes the path
from its leaf to the root, and past states can be read until their nodes are pruned.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from struct import Struct

from ...backends.base.application import AppState, BlockRequest, Changes
from ...backends.base.reads import ChainReads
from ...domain.abci import AppInfo, ProofOp, QueryResult
from ...domain.block import MerkleProof
from ...errors import InvalidBlock, StoreError, short_repr
from ...protocol.comet.hashes import (
    EMPTY_HASH,
    inner_hash,
    pair_hash,
    root_of_proof,
    split_point,
    value_op,
)
from .kvstore import KeyValueApplication

_NODE, _STATE = Struct(">Q32s"), Struct(">QQQ32s")


@dataclass(frozen=True, slots=True)
class Node:
    """Reference to a stored tree node: references to both children for an inner node, the
    content for a leaf."""

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
    """Number that the next new node gets."""

    def encode(self) -> bytes:
        """Encode the state for the store."""
        return _STATE.pack(self.count, self.next_number, self.root.number, self.root.hash)

    @classmethod
    def decode(cls, stored: bytes) -> TreeState:
        """Decode the result of :meth:`encode`."""
        count, next_number, number, root_hash = _STATE.unpack(stored)
        return cls(count, Node(number, root_hash), next_number)


class NodePruned(LookupError):
    """A node of a past state is no longer stored."""


def node_key(number: int) -> bytes:
    """Return the key under which a node is stored."""
    return b"node:" + number.to_bytes(8)


def find(state: AppState, tree: TreeState, position: int) -> tuple[bytes, MerkleProof]:
    """Return a leaf's content and its proof for the tree's root.

    Raise :exc:`NodePruned` if the tree's nodes are no longer stored.
    """
    node, count, inside, aunts = tree.root, tree.count, position, []
    while count > 1:
        left, right = _children(state, node)
        half = split_point(count)
        if inside < half:
            node, aunt, count = left, right, half
        else:
            node, aunt, count, inside = right, left, count - half, inside - half
        aunts.append(aunt.hash)
    proof = MerkleProof(tree.count, position, node.hash, tuple(reversed(aunts)))
    return _stored(state, node), proof


class TreeUpdate:
    """Computes the next state of a tree: the nodes to write, and the nodes that they
    replace."""

    def __init__(self, state: AppState, tree: TreeState, leaves: Mapping[int, Leaf]) -> None:
        """Set ``leaves`` by their index; new leaves must follow the last one without a gap."""
        self._state = state
        self._next = tree.next_number
        self._leaves = leaves
        self.written: dict[bytes, bytes] = {}
        self.replaced: list[int] = []
        positions = sorted(leaves)
        count = max(tree.count, positions[-1] + 1) if positions else tree.count
        root = self._subtree(tree.root, tree.count, 0, count, positions) if count else tree.root
        self.tree = TreeState(count, root, self._next)

    def _subtree(
        self, old: Node, had: int, start: int, count: int, positions: list[int]
    ) -> Node:
        """Return the new subtree of ``count`` leaves from index ``start``; ``positions`` are
        the changed leaves. The previous subtree ``old`` had ``had`` leaves."""
        if had == count and not positions:
            return old
        if count == 1:
            if had:
                self.replaced.append(old.number)
            leaf = self._leaves[start]
            return self._add(leaf.hash, leaf.content)
        half = split_point(count)
        left, right = old, old
        if had > half:
            # Both the old and the new subtree are split at this leaf.
            left, right = _children(self._state, old)
            self.replaced.append(old.number)
        cut = bisect_left(positions, start + half)
        left = self._subtree(left, min(had, half), start, half, positions[:cut])
        right = self._subtree(
            right, max(had - half, 0), start + half, count - half, positions[cut:]
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


CODE_UNKNOWN_PATH = 4
CODE_HEIGHT_PRUNED = 5

STORE = "main"
"""Name of the store, which is the first part of the path in a proof."""

# Paths of queries; light clients use the first (CometBFT: light/rpc, DefaultMerkleKeyPathFn).
_PATHS = (f"/store/{STORE}/key", "/key", "")
_NUMBER = Struct(">Q")


class MerkleKVStore(KeyValueApplication):
    """Application that stores pairs in a Merkle tree, in the order in which their keys were
    first set.

    The app hash is the root of a tree with one leaf, which has the store's name and the root
    of the tree of pairs: light clients expect a proof with these two steps.
    """

    name = "merkle"
    is_chain_only = True

    retained_heights = 100
    """Number of latest heights whose state can be queried."""

    def info(self) -> AppInfo:
        height = self._height()
        tree = self._required_tree(height) if height else TreeState()
        return AppInfo(
            data=f'{{"size":{tree.count}}}',
            version="1.0.0",
            app_version=1,
            last_block_height=height,
            last_block_app_hash=_app_hash(tree),
        )

    def verify_state(self, chain: ChainReads) -> None:
        """Check that the app hash proves each stored pair, and that the number of pairs is
        right."""
        super().verify_state(chain)
        height = self._height()
        tree = self._required_tree(height) if height else TreeState()
        pairs, last = 0, b""
        while keys := self._state.range(_POSITION, last or None):
            for last, _ in keys:
                self._check_pair(tree, last.removeprefix(_POSITION))
            pairs += len(keys)
        if pairs != tree.count:
            raise InvalidBlock(
                f"app_state: expected {tree.count} keys, as the app hash of block {height} has,"
                f" got {pairs}: restore a backup"
            )

    def _check_pair(self, tree: TreeState, key: bytes) -> None:
        position = self._position(key)
        assert position is not None
        try:
            value, proof = find(self._state, tree, position)
            root = root_of_proof(replace(proof, leaf_hash=pair_hash(key, value)))
        except (NodePruned, struct.error):
            root = None
        if root != tree.root.hash:
            raise InvalidBlock(
                f"app_state: the app hash of the latest block does not prove the value of key"
                f" 0x{key.hex()}: restore a backup"
            )

    def _begin(self, height: int) -> tuple[bytes, Changes]:
        tree = TreeState()
        return _app_hash(tree), {_tree_key(height): tree.encode()}

    def _write(self, block: BlockRequest, pairs: dict[bytes, bytes]) -> tuple[bytes, Changes]:
        before = self._required_tree(block.height - 1)
        positions = self._positions(before, pairs)
        leaves = {
            positions[key]: Leaf(pair_hash(key, value), value) for key, value in pairs.items()
        }
        update = TreeUpdate(self._state, before, leaves)
        return _app_hash(update.tree), {
            **self._pruned(block.height - self.retained_heights),
            **update.written,
            **{
                _position_key(key): _NUMBER.pack(position)
                for key, position in positions.items()
            },
            _tree_key(block.height): update.tree.encode(),
            _replaced_key(block.height): b"".join(map(_NUMBER.pack, update.replaced)),
        }

    def _positions(self, tree: TreeState, pairs: dict[bytes, bytes]) -> dict[bytes, int]:
        new_positions = count(tree.count)
        positions = {key: self._position(key) for key in pairs}
        return {
            key: next(new_positions) if position is None else position
            for key, position in positions.items()
        }

    def _pruned(self, height: int) -> Changes:
        """Return the writes that remove the state of a height: the nodes that the next height
        replaced."""
        replaced = self._state.get(_replaced_key(height + 1))
        if replaced is None:
            return {}
        return {
            _tree_key(height): None,
            _replaced_key(height + 1): None,
            **{node_key(number): None for (number,) in _NUMBER.iter_unpack(replaced)},
        }

    def query(self, path: str, data: bytes, height: int, prove: bool) -> QueryResult:
        if path == "/val":
            return self._validator(data)
        if path not in _PATHS:
            log = f"unknown path {short_repr(path)}: known are {_PATHS[0]} and /val"
            return QueryResult(code=CODE_UNKNOWN_PATH, log=log, key=data)
        latest = self._height()
        oldest = max(latest - self.retained_heights + 1, 0)
        # For a proof, query the state before the latest block by default: the latest header
        # has the app hash before its block, so nothing proves the latest state yet.
        height = height or (max(latest - 1, 0) if prove else latest)
        tree = self._tree(height) if oldest <= height <= latest else None
        try:
            if tree is not None:
                return self._read(tree, height, data, prove)
        except NodePruned:
            # New blocks have pruned this state meanwhile.
            pass
        log = f"the state at height {height} is not stored: ask for {oldest} to {latest}"
        return QueryResult(code=CODE_HEIGHT_PRUNED, log=log, key=data, height=latest)

    def _read(self, tree: TreeState, height: int, key: bytes, prove: bool) -> QueryResult:
        position = self._position(key)
        if position is None or position >= tree.count:
            # Return no proof: CometBFT's DefaultProofRuntime has no proofs of absence.
            log = f"does not exist at height {height}, which has no proof"
            return QueryResult(log=log if prove else "does not exist", key=key, height=height)
        value, proof = find(self._state, tree, position)
        ops = _steps(tree, key, proof) if prove else ()
        return QueryResult(
            log="exists", index=position, key=key, value=value, proof_ops=ops, height=height
        )

    def _tree(self, height: int) -> TreeState | None:
        stored = self._state.get(_tree_key(height))
        return None if stored is None else TreeState.decode(stored)

    def _required_tree(self, height: int) -> TreeState:
        tree = self._tree(height)
        if tree is None:
            raise StoreError(
                f"the store has no state of this application at height {height}; set the"
                " NODERPC_APPLICATION with which the chain began"
            )
        return tree

    def _position(self, key: bytes) -> int | None:
        stored = self._state.get(_position_key(key))
        return None if stored is None else int.from_bytes(stored)


def _app_hash(tree: TreeState) -> bytes:
    return pair_hash(STORE.encode(), tree.root.hash)


def _steps(tree: TreeState, key: bytes, proof: MerkleProof) -> tuple[ProofOp, ...]:
    """Return the two steps of a proof: from the value to the root of the pairs, and from there
    to the app hash."""
    name = STORE.encode()
    outer = MerkleProof(1, 0, pair_hash(name, tree.root.hash))
    return value_op(key, proof), value_op(name, outer)


def _tree_key(height: int) -> bytes:
    return b"tree:%d" % height


def _replaced_key(height: int) -> bytes:
    return b"replaced:%d" % height


_POSITION = b"place:"


def _position_key(key: bytes) -> bytes:
    return _POSITION + key
