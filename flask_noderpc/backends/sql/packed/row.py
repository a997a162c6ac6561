"""A row as bytes: MessagePack behind a CRC-32, which is checked each time it is read.

A bit that flipped on the disk is an error, never an answer. Lists stand in the order of
their fields, without names.
"""

from __future__ import annotations

import zlib
from typing import Any

from .... import jsoncodec

_CRC_BYTES = 4


class DamagedRow(ValueError):
    """A row is not what was written."""

    def __init__(self, kind: str, height: int, cause: str) -> None:
        super().__init__(
            f"the {kind} of height {height} is damaged ({cause}): restore a backup"
        )


def seal(value: object) -> bytes:
    """Return a value as a row."""
    body = jsoncodec.pack(value)
    return zlib.crc32(body).to_bytes(_CRC_BYTES) + body


def opened(row: bytes, kind: str, height: int) -> Any:
    """Return the value of a row; ``kind`` and ``height`` are what :exc:`DamagedRow` names."""
    if not isinstance(row, bytes):
        raise DamagedRow(kind, height, "it is missing")
    body = memoryview(row)[_CRC_BYTES:]
    if zlib.crc32(body) != int.from_bytes(row[:_CRC_BYTES]):
        raise DamagedRow(kind, height, "its checksum differs")
    try:
        return jsoncodec.unpack(body)
    except ValueError as error:
        raise DamagedRow(kind, height, str(error)) from None
