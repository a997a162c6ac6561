"""A whole state as bytes: its root, and all nodes and codes that it is made of."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

from ..domain.evm import StateChange
from . import rlp
from .accounts import records
from .keccak import keccak
from .trie import NodeMissing


def encode(root: bytes, made_of: Iterable[bytes]) -> bytes:
    """The dump of a state."""
    return zlib.compress(rlp.encode([root, list(made_of)]))


def decode(dump: bytes, most_bytes: int) -> StateChange:
    """The state in a dump; raise :exc:`ValueError` for what is none, or not whole."""
    unpacked = zlib.decompressobj()
    try:
        found = _read(unpacked.decompress(dump, most_bytes))
        for _ in records(found.written.get, found.root):
            pass
    except NodeMissing as error:
        raise ValueError(f"{error} is missing in it") from None
    except (zlib.error, rlp.Malformed, ValueError, IndexError, AssertionError):
        raise ValueError(f"it can't be read, or is larger than {most_bytes} bytes") from None
    return found


def _read(document: bytes) -> StateChange:
    reader = rlp.Reader(document).list("dump")
    root, items = reader.string("root"), reader.list("records")
    written: dict[bytes, bytes] = {}
    while not items.done:
        record = items.string("record")
        written[keccak(record)] = record
    return StateChange(root, written)
