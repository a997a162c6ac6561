"""A row as bytes: MessagePack behind a CRC-32, which is checked each time it is read.

The checksum begins with that of the row's own key, so that a row of another height is none of
this one. A bit that flipped on the disk is an error, never an answer. Lists stand in the order
of their fields, without names.
"""

from __future__ import annotations

import zlib
from typing import Any

from .... import jsoncodec

Key = tuple[int, int | None]

_CRC_BYTES = 4
# Bytes of a key in an error.
_SHOWN = 64


class DamagedRow(ValueError):
    """A row is not what was written."""

    def __init__(self, kind: str, height: int, cause: str) -> None:
        super().__init__(
            f"the {kind} of height {height} is damaged ({cause}): restore a backup"
        )


class DamagedValue(DamagedRow):
    """A row with a key of bytes is not what was written."""

    def __init__(self, table: str, key: bytes) -> None:
        shown = key[:_SHOWN].hex() + ("..." if len(key) > _SHOWN else "")
        ValueError.__init__(
            self,
            f"{table}: the row of key 0x{shown} is damaged (its checksum differs): restore a"
            " backup",
        )


def key_checksum(key: bytes, content: bytes) -> int:
    """Return the checksum for the column beside a row with a key of bytes."""
    return zlib.crc32(content, zlib.crc32(key))


def checked(table: str, key: bytes, content: bytes, checksum: int | None) -> bytes:
    """Return the content of such a row; raise :exc:`DamagedValue` if it is not what was
    written."""
    if checksum != zlib.crc32(content, zlib.crc32(key)):
        raise DamagedValue(table, key)
    return content


def seal(value: object, kind: str, height: int, *key: object) -> bytes:
    """Return a value as a row of this kind, height and rest of its key, which the checksum
    covers, too."""
    return _with_checksum(jsoncodec.pack(value), _key_checksum(kind, height, *key))


def with_form(form: bytes) -> tuple[bytes, ...]:
    """Return the last field of a row: rows without a form do not have it."""
    return (form,) if form else ()


def opened(row: bytes, kind: str, height: int, *key: object) -> Any:
    """Return the value of a row; raise :exc:`DamagedRow` if it is not what was sealed so."""
    body = _checked(row, kind, height, *key)
    try:
        return jsoncodec.unpack(body)
    except ValueError as error:
        raise DamagedRow(kind, height, str(error)) from None


def resealed(row: bytes, kind: str, key: Key, new_key: Key) -> bytes:
    """Return a row as one of another key."""
    body = bytes(_checked(row, kind, *key))
    return _with_checksum(body, _key_checksum(kind, *new_key))


def _checked(row: bytes, kind: str, height: int, *key: object) -> memoryview:
    if not isinstance(row, bytes):
        raise DamagedRow(kind, height, "it is missing")
    body = memoryview(row)[_CRC_BYTES:]
    expected = zlib.crc32(body, _key_checksum(kind, height, *key))
    if expected != int.from_bytes(row[:_CRC_BYTES]):
        raise DamagedRow(kind, height, "its checksum differs")
    return body


def _with_checksum(body: bytes, start: int) -> bytes:
    return zlib.crc32(body, start).to_bytes(_CRC_BYTES) + body


def _key_checksum(kind: str, height: int, *key: object) -> int:
    return zlib.crc32(f"{kind} {height} {key}".encode())
