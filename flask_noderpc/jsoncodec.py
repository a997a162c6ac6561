"""The one place that calls ``msgspec.json``: strict JSON in, compact JSON out."""

from __future__ import annotations

import os
import re
import sys
from functools import lru_cache
from itertools import accumulate
from typing import Any, TypeVar, overload

import msgspec

from .concurrency import native_lock

Raw = msgspec.Raw
Struct = msgspec.Struct
T = TypeVar("T")


# msgspec goes as deep as Python's own limit, which a library of the host may have raised
# beyond what the stack can bear (py_ecc does).
_SAFE_LIMIT = 10_000
_DEEPEST = 1_000
_STEPS = {"[": 1, "{": 1, "]": -1, "}": -1}
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"?', re.DOTALL)
_NO_BRACKETS = re.compile(r"[^][{}]+")
# msgspec 0.22: what it knows of a dataclass is on the class before it is complete; a decoder
# that another thread makes of it in the meantime reads memory that nobody wrote.
_MAKING = native_lock()
# A child that was made meanwhile would wait for its parent's thread for ever.
os.register_at_fork(
    before=_MAKING.acquire, after_in_parent=_MAKING.release, after_in_child=_MAKING.release
)


class NotJSON(ValueError):
    """The bytes are not one JSON document of the wanted type."""


class TooDeep(NotJSON):
    """Lists and objects stand in each other deeper than is read here."""

    def __init__(self) -> None:
        super().__init__("nested too deeply")


@overload
def decode(document: bytes | str, kind: type[T]) -> T: ...
@overload
def decode(document: bytes | str, kind: Any = ...) -> Any: ...
def decode(document: bytes | str, kind: Any = Any) -> Any:
    """The document as ``kind``; raise :exc:`NotJSON` for anything else.

    msgspec skips over the text of ``Raw`` values without reading their strings,
    so bytes are checked to be UTF-8 first.
    """
    try:
        text = document if isinstance(document, str) else str(document, "utf-8")
        if sys.getrecursionlimit() > _SAFE_LIMIT and _is_deep(text):
            raise TooDeep
        return _decoder(kind).decode(text)
    except RecursionError:
        raise TooDeep from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise NotJSON(str(error)) from None


def _is_deep(text: str) -> bool:
    """Whether lists and objects stand in each other deeper than anybody means them."""
    if text.count("[") + text.count("{") <= _DEEPEST:
        return False
    steps = map(_STEPS.__getitem__, _NO_BRACKETS.sub("", _STRING.sub("", text)))
    return max(accumulate(steps), default=0) > _DEEPEST


# Making one takes longer than decoding most documents.
@lru_cache(maxsize=64)
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    with _MAKING:
        return msgspec.json.Decoder(kind)


def encode(value: object) -> bytes:
    """The value as compact JSON."""
    return msgspec.json.encode(value)


def pretty(value: object) -> bytes:
    """The value as JSON indented by two blanks, as CometBFT writes its files."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2)
