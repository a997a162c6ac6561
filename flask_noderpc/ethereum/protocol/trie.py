"""Merkle Patricia tries: roots of lists, and reading of tries whose nodes are stored by hash.

Only the root of a list (of transactions or receipts) is computed; no nodes of it are stored.

Yellow Paper, appendix D.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from ...protocol.secp256k1eth import keccak
from ..domain.records import EMPTY_ROOT
from .rlp import Reader, encode, encode_list

_NOTHING = encode(b"")

_Leaf = tuple[str, bytes]
"""A key in hex, with one digit for each level of the trie, and its value."""


def ordered_root(values: Sequence[bytes]) -> bytes:
    """Return the root of the trie whose keys are the RLP of each value's index in the list."""
    if not values:
        return EMPTY_ROOT
    leaves = sorted((encode(index).hex(), value) for index, value in enumerate(values))
    return keccak(_node(leaves, 0))


def _node(leaves: list[_Leaf], depth: int) -> bytes:
    """Return the encoded node above sorted leaves whose first ``depth`` digits are equal."""
    first, value = leaves[0]
    if len(leaves) == 1:
        return encode([encoded_path(first[depth:], leaf=True), value])
    shared = _shared(first, leaves[-1][0], depth)
    if shared > depth:
        path = encode(encoded_path(first[depth:shared], leaf=False))
        return encode_list(path + _reference(leaves, shared))
    # The keys are RLP strings, so no key is a prefix of another and no branch has a value.
    children = [_NOTHING] * 17
    for digit, below in groupby(leaves, key=lambda leaf: leaf[0][depth]):
        children[int(digit, 16)] = _reference(list(below), depth + 1)
    return encode_list(b"".join(children))


def _reference(leaves: list[_Leaf], depth: int) -> bytes:
    """Return a node as its parent contains it: its hash, or the node itself if it is shorter
    than a hash."""
    node = _node(leaves, depth)
    return node if len(node) < 32 else encode(keccak(node))


def _shared(first: str, last: str, depth: int) -> int:
    """Return the number of leading digits that all of the sorted keys share."""
    while first[depth] == last[depth]:
        depth += 1
    return depth


def encoded_path(digits: str, *, leaf: bool) -> bytes:
    """Encode a path, two hex digits in a byte, after a flag for an odd length and for a leaf
    (Yellow Paper, appendix C)."""
    flag = (2 if leaf else 0) + len(digits) % 2
    return bytes.fromhex(f"{flag:x}{'' if flag % 2 else '0'}{digits}")


Record = Callable[[bytes], bytes | None]
"""Function that returns a trie node or contract code by its hash, or ``None``."""

_BRANCH = 17


class NodeMissing(LookupError):
    """A trie node is not in the store."""


def find(record: Record, root: bytes, key: bytes) -> tuple[bytes, tuple[bytes, ...]]:
    """Return the value of a key, empty if it is missing, and the encoded nodes on its path.

    The path is the hash of the key; the nodes prove the value or its absence. Raise
    :exc:`NodeMissing` if a node is not stored.
    """
    if root == EMPTY_ROOT:
        return b"", ()
    digits = keccak(key).hex()
    proof = [load(record, root)]
    node = items(Reader(proof[0]).list("node"))
    while True:
        if len(node) == _BRANCH:
            below, digits = node[int(digits[0], 16)], digits[1:]
        else:
            path, is_leaf = decoded_path(node[0])
            if is_leaf or not digits.startswith(path):
                found = node[1] if is_leaf and digits == path else b""
                assert isinstance(found, bytes)
                return found, tuple(proof)
            below, digits = node[1], digits[len(path) :]
        if isinstance(below, bytes):
            if not below:
                return b"", tuple(proof)
            proof.append(load(record, below))
            below = Reader(proof[-1]).list("node")
        # A node of less than 32 bytes is embedded in its parent, which has no hash of it.
        node = items(below)


def walk(
    record: Record, root: bytes, seen: set[bytes], leaf: Callable[[bytes], object]
) -> Iterator[bytes]:
    """Yield each encoded node whose hash is not in ``seen``, add the hash to ``seen``, and
    call ``leaf`` with the value of each leaf; raise :exc:`NodeMissing`."""
    waiting = [] if root == EMPTY_ROOT else [root]
    while waiting:
        digest = waiting.pop()
        if digest in seen:
            continue
        seen.add(digest)
        node = load(record, digest)
        yield node
        # Child nodes of less than 32 bytes are embedded in this node.
        inside = [Reader(node).list("node")]
        while inside:
            for child in _children(items(inside.pop()), leaf):
                if isinstance(child, bytes):
                    waiting.append(child)
                else:
                    inside.append(child)


def leaves(record: Record, root: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield each leaf of a trie, as the hash of its key and its value; raise
    :exc:`NodeMissing`."""
    waiting: list[tuple[str, bytes | Reader]] = [] if root == EMPTY_ROOT else [("", root)]
    while waiting:
        path, below = waiting.pop()
        if isinstance(below, bytes):
            below = Reader(load(record, below)).list("node")
        node = items(below)
        if len(node) == _BRANCH:
            children = enumerate(node[:-1])
            waiting += [
                (f"{path}{digit:x}", child) for digit, child in children if child != b""
            ]
            continue
        more, is_leaf = decoded_path(node[0])
        if is_leaf:
            assert isinstance(node[1], bytes)
            yield bytes.fromhex(path + more), node[1]
        else:
            waiting.append((path + more, node[1]))


def _children(
    node: list[bytes | Reader], leaf: Callable[[bytes], object]
) -> list[bytes | Reader]:
    if len(node) == _BRANCH:
        # All paths are hashes of the same length, so none ends at a branch; skip its value.
        return [child for child in node[:-1] if child != b""]
    path, below = node
    _, is_leaf = decoded_path(path)
    if not is_leaf:
        return [below]
    assert isinstance(below, bytes)
    leaf(below)
    return []


def load(record: Record, digest: bytes) -> bytes:
    """Return a node or a contract code by hash; raise :exc:`NodeMissing`."""
    found = record(digest)
    if found is None:
        raise NodeMissing(digest.hex())
    return found


def items(node: Reader) -> list[bytes | Reader]:
    """Return the items of a node: strings, and readers of the nodes embedded in it."""
    found: list[bytes | Reader] = []
    while not node.done:
        is_list, _ = node.peek()
        found.append(node.list("node") if is_list else node.string("item"))
    return found


def decoded_path(item: bytes | Reader) -> tuple[str, bool]:
    """Return the hex digits of an encoded path, and whether it belongs to a leaf."""
    assert isinstance(item, bytes)
    text = item.hex()
    flag = int(text[0], 16)
    return text[1 if flag & 1 else 2 :], flag >= 2
