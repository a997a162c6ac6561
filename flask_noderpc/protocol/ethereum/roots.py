"""Roots of the Merkle Patricia trees over a block's transactions and receipts.

The trie is built from all its leaves at once, and no node is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from .keccak import keccak
from .rlp import encode, listed

_NOTHING = encode(b"")

EMPTY_ROOT = keccak(_NOTHING)

_Leaf = tuple[str, bytes]
"""The key in hex, one digit for each step, and the value."""


def ordered_root(values: Sequence[bytes]) -> bytes:
    """The root of the tree that has each value under the RLP of its index."""
    if not values:
        return EMPTY_ROOT
    leaves = sorted((encode(index).hex(), value) for index, value in enumerate(values))
    return keccak(_node(leaves, 0))


def _node(leaves: list[_Leaf], depth: int) -> bytes:
    """The encoded node above sorted leaves that agree in their first ``depth`` digits."""
    first, value = leaves[0]
    if len(leaves) == 1:
        return encode([_path(first[depth:], leaf=True), value])
    shared = _shared(first, leaves[-1][0], depth)
    if shared > depth:
        path = encode(_path(first[depth:shared], leaf=False))
        return listed(path + _reference(leaves, shared))
    # No key begins another, for it is an RLP string: a branch has no value of its own.
    children = [_NOTHING] * 17
    for digit, below in groupby(leaves, key=lambda leaf: leaf[0][depth]):
        children[int(digit, 16)] = _reference(list(below), depth + 1)
    return listed(b"".join(children))


def _reference(leaves: list[_Leaf], depth: int) -> bytes:
    """A node as its parent has it: itself where it is shorter than its hash."""
    node = _node(leaves, depth)
    return node if len(node) < 32 else encode(keccak(node))


def _shared(first: str, last: str, depth: int) -> int:
    """Return the number of leading digits that all of the sorted keys share."""
    while first[depth] == last[depth]:
        depth += 1
    return depth


def _path(digits: str, *, leaf: bool) -> bytes:
    """Yellow Paper, appendix C: two digits a byte, marked for odd length and for a leaf."""
    flag = (2 if leaf else 0) + len(digits) % 2
    return bytes.fromhex(f"{flag:x}{'' if flag % 2 else '0'}{digits}")
