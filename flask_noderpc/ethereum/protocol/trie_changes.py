"""Updates of Merkle Patricia tries whose nodes are stored by hash; one pass sets many keys.

Yellow Paper, appendix D.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from os.path import commonprefix
from typing import NamedTuple, TypeAlias

from ...protocol.secp256k1eth import keccak
from ..domain.records import EMPTY_ROOT
from .rlp import Reader, encode, encode_list
from .trie import Record, decoded_path, encoded_path, items, load

_NOTHING = encode(b"")


class _Leaf(NamedTuple):
    path: str
    value: bytes


class _Extension(NamedTuple):
    path: str
    below: _Node


class _Branch(NamedTuple):
    children: list[_Node]


_Node: TypeAlias = "_Leaf | _Extension | _Branch | bytes | None"
"""A node; bytes are the hash of a node that is not loaded, ``None`` is an empty node."""

_Change = tuple[str, bytes]
"""The rest of a key's path in hex, and the key's new value; an empty value removes the key."""


def changed(
    record: Record, root: bytes, values: Mapping[bytes, bytes]
) -> tuple[bytes, dict[bytes, bytes]]:
    """Set the values of keys, or remove the keys whose new value is empty.

    The paths are the hashes of the keys. Return the new root, and the new nodes by hash. Raise
    :exc:`~.trie.NodeMissing` if a node is not stored.
    """
    changes = sorted((keccak(key).hex(), value) for key, value in values.items())
    trie = _Trie(record)
    node = trie.changed(None if root == EMPTY_ROOT else root, changes)
    if node is None:
        return EMPTY_ROOT, {}
    return node if isinstance(node, bytes) else trie.store_node(
        trie.encoded(node)
    ), trie.written


class _Trie:
    def __init__(self, record: Record) -> None:
        self._record = record
        self.written: dict[bytes, bytes] = {}

    def changed(self, node: _Node, changes: list[_Change]) -> _Node:
        """Apply sorted changes to a node; return the new node, ``None`` if it is empty."""
        if not changes:
            return node
        found = self._read(node)
        if isinstance(found, _Branch):
            return self._branch(found.children, changes)
        if isinstance(found, _Extension):
            return self._split(changes, found.path, found.below)
        if found is not None:
            changes = sorted({found.path: found.value, **dict(changes)}.items())
        changes = [change for change in changes if change[1]]
        if len(changes) > 1:
            return self._split(changes, "", None)
        return _Leaf(*changes[0]) if changes else None

    def _split(self, changes: list[_Change], path: str, below: _Node) -> _Node:
        """Apply changes to the node ``below``, which is at ``path``; return the node above the
        digits that all these paths share."""
        paths = [changes[0][0], changes[-1][0], *([] if below is None else [path])]
        shared = commonprefix(paths)  # noqa: RUF071 # digits
        size = len(shared)
        changes = [(rest[size:], value) for rest, value in changes]
        if below is not None and size == len(path):
            return self._joined(shared, self.changed(below, changes))
        children: list[_Node] = [None] * 16
        if below is not None:
            rest = path[size + 1 :]
            children[int(path[size], 16)] = _Extension(rest, below) if rest else below
        return self._joined(shared, self._branch(children, changes))

    def _branch(self, children: list[_Node], changes: list[_Change]) -> _Node:
        for digit, group in groupby(changes, key=lambda change: change[0][0]):
            index, inside = int(digit, 16), [(rest[1:], value) for rest, value in group]
            children[index] = self.changed(children[index], inside)
        left = [index for index, child in enumerate(children) if child is not None]
        if len(left) > 1:
            return _Branch(children)
        return self._joined(f"{left[0]:x}", children[left[0]]) if left else None

    def _joined(self, path: str, node: _Node) -> _Node:
        """Return a node with ``path`` in front of its own path."""
        if not path or node is None:
            return node
        inside = self._read(node)
        if isinstance(inside, _Leaf):
            return _Leaf(path + inside.path, inside.value)
        if isinstance(inside, _Extension):
            return _Extension(path + inside.path, inside.below)
        return _Extension(path, node)

    def _read(self, node: _Node) -> _Leaf | _Extension | _Branch | None:
        if isinstance(node, bytes):
            return _decoded(Reader(load(self._record, node)).list("node"))
        return node

    def encoded(self, node: _Node) -> bytes:
        """Encode a loaded node, and store the new nodes below it."""
        if isinstance(node, _Leaf):
            return encode([encoded_path(node.path, leaf=True), node.value])
        if isinstance(node, _Extension):
            path = encode(encoded_path(node.path, leaf=False))
            return encode_list(path + self._reference(node.below))
        assert isinstance(node, _Branch)
        return encode_list(b"".join(map(self._reference, node.children)) + _NOTHING)

    def _reference(self, node: _Node) -> bytes:
        """Return a node as its parent contains it: its hash, or the node itself if it is
        shorter than a hash."""
        if node is None:
            return _NOTHING
        if isinstance(node, bytes):
            return encode(node)
        raw = self.encoded(node)
        return raw if len(raw) < 32 else encode(self.store_node(raw))

    def store_node(self, raw: bytes) -> bytes:
        """Add an encoded node to the written ones; return its hash."""
        digest = keccak(raw)
        self.written[digest] = raw
        return digest


def _decoded(reader: Reader) -> _Leaf | _Extension | _Branch:
    found = items(reader)
    if len(found) > 2:
        return _Branch([_below(each) for each in found[:-1]])
    path, is_leaf = decoded_path(found[0])
    if not is_leaf:
        return _Extension(path, _below(found[1]))
    assert isinstance(found[1], bytes)
    return _Leaf(path, found[1])


def _below(item: bytes | Reader) -> _Node:
    return item or None if isinstance(item, bytes) else _decoded(item)
