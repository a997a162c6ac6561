"""A key-value store whose app hash is a Merkle root, so that its values can be proved."""

from __future__ import annotations

from itertools import count
from struct import Struct

from ...backends.base.application import BlockRequest, Changes
from ...domain.abci import AppInfo, ProofOp, QueryResult
from ...domain.block import MerkleProof
from ...errors import StoreError, short_repr
from ...protocol.comet.merkle import pair_hash, value_op
from .kv_base import KeyValueApplication
from .tree import Leaf, NodePruned, TreeState, TreeUpdate, find, node_key

CODE_UNKNOWN_PATH = 4
CODE_HEIGHT_PRUNED = 5

STORE = "main"
"""The name of the store, the first part of a proof's path."""

# The first is the path of a light client: CometBFT's DefaultMerkleKeyPathFn in light/rpc.
_PATHS = (f"/store/{STORE}/key", "/key", "")
_NUMBER = Struct(">Q")


class MerkleKVStore(KeyValueApplication):
    """Stores pairs in a Merkle tree, in the order in which their keys were first set.

    The app hash is the root over one leaf, the store's name with the root of the pairs: a
    light client expects a proof in these two steps.
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

    def _begin(self, height: int) -> tuple[bytes, Changes]:
        tree = TreeState()
        return _app_hash(tree), {_tree_key(height): tree.encode()}

    def _write(self, block: BlockRequest, pairs: dict[bytes, bytes]) -> tuple[bytes, Changes]:
        before = self._required_tree(block.height - 1)
        places = self._places(before, pairs)
        leaves = {
            places[key]: Leaf(pair_hash(key, value), value) for key, value in pairs.items()
        }
        update = TreeUpdate(self._state, before, leaves)
        return _app_hash(update.tree), {
            **self._pruned(block.height - self.retained_heights),
            **update.written,
            **{_place_key(key): _NUMBER.pack(place) for key, place in places.items()},
            _tree_key(block.height): update.tree.encode(),
            _replaced_key(block.height): b"".join(map(_NUMBER.pack, update.replaced)),
        }

    def _places(self, tree: TreeState, pairs: dict[bytes, bytes]) -> dict[bytes, int]:
        new_places = count(tree.count)
        places = {key: self._place(key) for key in pairs}
        return {
            key: next(new_places) if place is None else place for key, place in places.items()
        }

    def _pruned(self, height: int) -> Changes:
        """Return the removal of the state at a height: the nodes that the next replaced."""
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
        # The latest header has the app hash before its block: no later state has a proof yet.
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
        place = self._place(key)
        if place is None or place >= tree.count:
            # CometBFT: DefaultProofRuntime knows no proof of absence.
            log = f"does not exist at height {height}, which has no proof"
            return QueryResult(log=log if prove else "does not exist", key=key, height=height)
        value, proof = find(self._state, tree, place)
        ops = _steps(tree, key, proof) if prove else ()
        return QueryResult(
            log="exists", index=place, key=key, value=value, proof_ops=ops, height=height
        )

    def _tree(self, height: int) -> TreeState | None:
        stored = self._state.get(_tree_key(height))
        return None if stored is None else TreeState.decode(stored)

    def _required_tree(self, height: int) -> TreeState:
        tree = self._tree(height)
        if tree is None:
            raise StoreError(f"the state at height {height} is that of another application")
        return tree

    def _place(self, key: bytes) -> int | None:
        stored = self._state.get(_place_key(key))
        return None if stored is None else int.from_bytes(stored)


def _app_hash(tree: TreeState) -> bytes:
    return pair_hash(STORE.encode(), tree.root.hash)


def _steps(tree: TreeState, key: bytes, proof: MerkleProof) -> tuple[ProofOp, ...]:
    """Return the proofs from the value to the root of the pairs, and on to the app hash."""
    name = STORE.encode()
    outer = MerkleProof(1, 0, pair_hash(name, tree.root.hash))
    return value_op(key, proof), value_op(name, outer)


def _tree_key(height: int) -> bytes:
    return b"tree:%d" % height


def _replaced_key(height: int) -> bytes:
    return b"replaced:%d" % height


def _place_key(key: bytes) -> bytes:
    return b"place:" + key
