"""Strict JSON decoding and compact encoding with ``msgspec.json``, MessagePack, and decoding
of text as in Go."""

from __future__ import annotations

import codecs
import os
import re
import sys
from collections.abc import Iterable
from functools import lru_cache
from itertools import accumulate
from typing import Any, TypeVar, overload

import msgspec

from .concurrency import in_turns, native_lock

Raw = msgspec.Raw
Struct = msgspec.Struct
T = TypeVar("T")
Document = bytes | bytearray | memoryview | Raw
_LARGE_BYTES = 1 << 20


# msgspec decodes nested values up to Python's recursion limit. If a library has raised the
# limit beyond the size of the stack, as py_ecc does, the nesting is checked before.
_SAFE_LIMIT = 10_000
_MAX_DEPTH = 1_000
_STEPS = {"[": 1, "{": 1, "]": -1, "}": -1}
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"?', re.DOTALL)
_NO_BRACKETS = re.compile(r"[^][{}]+")
# Create one decoder at a time: msgspec 0.22 stores its metadata of a dataclass on the class
# before it is complete, and a decoder that another thread creates then reads uninitialized
# memory.
_DECODER_LOCK = native_lock()
# Hold the lock during a fork: if another thread held it, the child would wait for it forever.
os.register_at_fork(
    before=_DECODER_LOCK.acquire,
    after_in_parent=_DECODER_LOCK.release,
    after_in_child=_DECODER_LOCK.release,
)


class NotJSON(ValueError):
    """The bytes are not one JSON document of the expected type."""


class TooDeep(NotJSON):
    """Lists and objects are nested too deeply."""

    def __init__(self) -> None:
        super().__init__("nested too deeply")


@overload
def decode(document: Document | str, kind: type[T]) -> T: ...
@overload
def decode(document: Document | str, kind: Any = ...) -> Any: ...
def decode(document: Document | str, kind: Any = Any) -> Any:
    """Decode a JSON document as ``kind``; raise :exc:`NotJSON` if it is something else.

    Bytes are first checked to be UTF-8, because msgspec does not check strings inside of
    ``Raw`` values.
    """
    try:
        text = document if isinstance(document, str) else _checked(document)
        if sys.getrecursionlimit() > _SAFE_LIMIT and is_deep(text):
            raise TooDeep
        return _decoder(kind).decode(text)
    except RecursionError:
        raise TooDeep from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise NotJSON(str(error)) from None


def _checked(document: Document) -> Document | str:
    """Return the document as text or unchanged bytes; raise ``UnicodeDecodeError`` if it is
    not UTF-8.

    A large document is checked in pieces and returned as bytes: as a ``str`` it could take
    four times as much memory.
    """
    with memoryview(document) as view:
        size = len(view)
        if size <= _LARGE_BYTES:
            return str(view, "utf-8")
        decoder = codecs.getincrementaldecoder("utf-8")()
        for at in range(0, size, _LARGE_BYTES):
            decoder.decode(view[at : at + _LARGE_BYTES], at + _LARGE_BYTES >= size)
    return document


def is_deep(text: Document | str) -> bool:
    """Return true if lists and objects are nested so deeply that a decoder may use up the
    stack."""
    if not isinstance(text, str):
        # Decode each byte to a character, as brackets and quotes are single bytes in UTF-8.
        text = str(text, "latin-1")
    if text.count("[") + text.count("{") <= _MAX_DEPTH:
        return False
    steps = map(_STEPS.__getitem__, _NO_BRACKETS.sub("", _STRING.sub("", text)))
    return max(accumulate(steps), default=0) > _MAX_DEPTH


# Cache decoders, because creating one takes longer than decoding most documents.
@lru_cache(maxsize=64)
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    with _DECODER_LOCK:
        return msgspec.json.Decoder(kind)


# Decode JSON as a whole up to this size: it takes little memory.
_SMALL_BYTES = 1 << 10


def is_large(document: Document) -> bool:
    """Return true for a document that should not be decoded as a whole: the objects take up to
    ten times its size."""
    return memoryview(document).nbytes > _LARGE_BYTES


def opened(value: Any) -> Any:
    """Return the content of a ``Raw``, and other values unchanged. Lists of more than 1 KiB
    have ``Raw`` elements, which are opened one by one to save memory."""
    if type(value) is not Raw:
        return value
    view = memoryview(value)
    begin = bytes(view[:1]) if len(view) > _SMALL_BYTES else b""
    if begin == b"[":
        return decode(view, list[Raw])
    if begin == b"{":
        members: dict[str, Raw] = decode(view, dict[str, Raw])
        return {name: opened(each) for name, each in members.items()}
    return decode(view)


def encode_each(values: Iterable[object]) -> Raw:
    """Encode a list value by value, as JSON to be embedded in another document; let other
    requests run in between."""
    body = bytearray(b"[")
    for value in in_turns(values):
        body += msgspec.json.encode(value)
        body += b","
    # Replace the last comma.
    body[max(1, len(body) - 1) :] = b"]"
    return Raw(body)


def encode(value: object) -> bytes:
    """Encode a value as compact JSON."""
    return msgspec.json.encode(value)


def pretty(value: object) -> bytes:
    """Encode a value as JSON indented by two spaces, as in CometBFT's files; raise
    :exc:`NotJSON` for a ``Raw`` that is not JSON."""
    try:
        return msgspec.json.format(msgspec.json.encode(value), indent=2)
    except RecursionError:
        raise TooDeep from None
    except msgspec.MsgspecError as error:
        raise NotJSON(str(error)) from None


_PACKER = msgspec.msgpack.Encoder()
_UNPACKER = msgspec.msgpack.Decoder()
_ELEMENTS = msgspec.msgpack.Decoder(list[Raw])


def pack(value: object) -> bytes:
    """Encode lists, bytes, strings and integers of 64 bits as MessagePack."""
    return _PACKER.encode(value)


def pack_each(values: Iterable[object]) -> bytearray:
    """Encode a list as MessagePack, value by value, with a length of 32 bits, while
    :func:`pack` writes the shortest one."""
    # 0xdd begins an array whose length has 32 bits.
    packed = bytearray(b"\xdd\0\0\0\0")
    count = 0
    for value in values:
        packed += _PACKER.encode(value)
        count += 1
    packed[1:5] = count.to_bytes(4)
    return packed


def unpack(packed: Document) -> Any:
    """Decode MessagePack; raise :exc:`ValueError` for other bytes."""
    return _unpack(packed, _UNPACKER)


def elements(packed: Document) -> list[Raw]:
    """Return the packed elements of a list in MessagePack; raise :exc:`ValueError` for other
    bytes."""
    return _unpack(packed, _ELEMENTS)


def _unpack(packed: Document, decoder: msgspec.msgpack.Decoder[T]) -> T:
    try:
        return decoder.decode(packed)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from None


_GO_ERRORS = "go-replace"


def _replace_bytes(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "\ufffd" * (error.end - error.start), error.end


codecs.register_error(_GO_ERRORS, _replace_bytes)


def text_of(value: bytes) -> str:
    """Decode UTF-8; each invalid byte becomes one U+FFFD."""
    # As in Go (unicode/utf8, DecodeRune), an invalid sequence is one byte long. Python's
    # "replace" would make a single U+FFFD of a truncated character of several bytes.
    return value.decode("utf-8", _GO_ERRORS)
