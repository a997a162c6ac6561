"""Dump of a complete state: its root, all trie nodes and all contract codes."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

from ...domain.evm import StateChange
from . import rlp
from .accounts import records
from .keccak import keccak
from .trie import NodeMissing

FRAME_BYTES = 64
"""Maximum bytes around the records of a decompressed dump."""
RECORD_FRAME_BYTES = 4
"""Maximum bytes in front of each record."""


def encode(root: bytes, made_of: Iterable[bytes]) -> bytes:
    """Encode a state as a dump."""
    return zlib.compress(rlp.encode([root, list(made_of)]))


def decode(dump: bytes, max_bytes: int) -> StateChange:
    """Decode the state in a dump; raise :exc:`ValueError` if it is malformed or incomplete."""
    document = _unpacked(dump, max_bytes)
    try:
        found = _read(document)
        for _ in records(found.written.get, found.root):
            pass
    except NodeMissing as error:
        raise ValueError(f"{error} is missing in it") from None
    except (rlp.Malformed, ValueError, IndexError, AssertionError):
        raise ValueError("it can't be read") from None
    return found


def _unpacked(dump: bytes, max_bytes: int) -> bytes:
    unpacked = zlib.decompressobj()
    try:
        document = unpacked.decompress(dump, max_bytes + 1)
    except zlib.error:
        raise ValueError("it can't be read") from None
    if len(document) > max_bytes:
        raise ValueError(f"it is larger than {max_bytes} bytes")
    if not unpacked.eof:
        raise ValueError("its end is missing")
    if unpacked.unused_data:
        raise ValueError("something follows its end")
    return document


def _read(document: bytes) -> StateChange:
    whole = rlp.Reader(document)
    reader = whole.list("dump")
    root, items = reader.string("root"), reader.list("records")
    if not (whole.done and reader.done):
        raise ValueError("it can't be read")
    written: dict[bytes, bytes] = {}
    while not items.done:
        record = items.string("record")
        written[keccak(record)] = record
    return StateChange(root, written)
