"""Decoding of logs and calldata by a contract's ABI, as Solidity's compiler writes it.

The bytes are whatever a contract emitted: what does not fit the ABI is not decoded.
Solidity: Contract ABI Specification.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .. import jsoncodec

WORD = 32
_MAX_ENTRIES = 5_000
_MAX_TYPES = 6_000
"""Types of all parameters of an ABI, also those inside arrays and tuples."""
_MAX_DEPTH = 16
_MAX_SAME = 16
"""Events of one signature that are tried for a log: they differ in what is indexed."""
_MAX_VALUES = 5_000
"""Values of one log or call: a length in the data costs nothing to write."""

_ARRAY = re.compile(r"(.*)\[(\d{0,9})\]", re.ASCII)
_BASE = re.compile(r"(uint|int|bytes|address|bool|string|function)(\d{0,3})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Type:
    """A type of a value: a base type, an array of one (``items``), or a tuple."""

    name: str
    """Canonical name, as it is hashed."""
    base: str = ""
    size: int = 0
    """Bits of a number, bytes of ``bytesN``, or length of an array; 0 if it is dynamic."""
    items: Type | None = None
    members: tuple[Parameter, ...] = ()
    is_dynamic: bool = False
    """True if a tuple has an offset in its place."""
    head_bytes: int = WORD
    """Bytes in the head of a tuple."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A named value of an event, a function or a tuple."""

    name: str
    type: Type
    indexed: bool = False


@dataclass(frozen=True, slots=True)
class Value:
    """A decoded parameter as text."""

    name: str
    type: str
    text: str


@dataclass(frozen=True, slots=True)
class Decoded:
    """A log or a call: its signature, and its values."""

    signature: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    inputs: tuple[Parameter, ...]

    @property
    def signature(self) -> str:
        return f"{self.name}({','.join(each.type.name for each in self.inputs)})"


class Abi:
    """Events and functions of a contract."""

    def __init__(self, entries: Sequence[tuple[str, _Entry]]) -> None:
        # Only the EVM layer's pages decode, and it has the extra's libraries.
        from ..protocol.secp256k1eth import keccak

        self._events: dict[bytes, list[_Entry]] = {}
        self._functions: dict[bytes, _Entry] = {}
        for kind, entry in entries:
            digest = keccak(entry.signature.encode())
            if kind == "event":
                # Two may differ in what is indexed, which is not hashed.
                self._events.setdefault(digest, []).append(entry)
            else:
                self._functions[digest[:4]] = entry

    @classmethod
    def parse(cls, document: str) -> Abi:
        """Read the JSON of an ABI, or of a compiler's artifact that has one; raise
        :exc:`ValueError`."""
        found = jsoncodec.decode(document)
        if isinstance(found, dict):
            found = found.get("abi")
        if not isinstance(found, list):
            raise ValueError("it is no list of functions and events, and has none as 'abi'")
        if len(found) > _MAX_ENTRIES:
            raise ValueError(f"it has more than {_MAX_ENTRIES} entries")
        return cls(list(_entries(found)))

    def log(self, topics: Sequence[bytes], data: bytes) -> Decoded | None:
        """Decode a log; ``None`` where no event of the ABI fits."""
        for entry in self._events.get(topics[0], ())[:_MAX_SAME] if topics else ():
            indexed = [each for each in entry.inputs if each.indexed]
            rest = tuple(each for each in entry.inputs if not each.indexed)
            if len(indexed) != len(topics) - 1:
                continue
            try:
                texts = {id(each): text for each, text in _of_topics(indexed, topics[1:])}
                values = _Reader(data).tuple_at(rest, 0, 0)
            except ValueError:
                continue
            texts |= {id(each): text for each, text in zip(rest, values, strict=True)}
            return Decoded(
                entry.signature,
                tuple(Value(p.name, p.type.name, texts[id(p)]) for p in entry.inputs),
            )
        return None

    def call(self, data: bytes) -> Decoded | None:
        """Decode calldata; ``None`` where no function of the ABI fits."""
        entry = self._functions.get(data[:4])
        if entry is None or len(data) < 4:
            return None
        try:
            values = _Reader(data[4:]).tuple_at(entry.inputs, 0, 0)
        except ValueError:
            return None
        return Decoded(
            entry.signature,
            tuple(
                Value(p.name, p.type.name, text)
                for p, text in zip(entry.inputs, values, strict=True)
            ),
        )


def _entries(found: list[Any]) -> Iterator[tuple[str, _Entry]]:
    left = iter(range(_MAX_TYPES))
    for row in found:
        if not isinstance(row, dict):
            raise ValueError("an entry is no object")
        # Solidity: the type may be left out of a function.
        kind = row.get("type", "function")
        if kind in ("event", "function") and not row.get("anonymous"):
            yield kind, _Entry(_text(row, "name"), _parameters(row.get("inputs", []), 0, left))


def _parameters(rows: Any, depth: int, left: Iterator[int]) -> tuple[Parameter, ...]:
    if not isinstance(rows, list) or depth > _MAX_DEPTH:
        raise ValueError("parameters are no list, or nested too deeply")
    if len(rows) > _MAX_ENTRIES:
        raise ValueError(f"there are more than {_MAX_ENTRIES} parameters")
    found = []
    for row in rows:
        if not isinstance(row, dict):
            raise ValueError("a parameter is no object")
        kind = _type(_text(row, "type"), row.get("components", []), depth, left)
        name = row.get("name", "")
        found.append(Parameter(str(name), kind, row.get("indexed") is True))
    return tuple(found)


def _text(row: dict[str, Any], member: str) -> str:
    value = row.get(member)
    if not isinstance(value, str):
        raise ValueError(f"an entry has no {member}")
    return value


def _type(name: str, components: Any, depth: int, left: Iterator[int]) -> Type:
    if depth > _MAX_DEPTH:
        raise ValueError("types are nested too deeply")
    if next(left, None) is None:
        raise ValueError(f"it has more than {_MAX_TYPES} types of parameters")
    array = _ARRAY.fullmatch(name)
    if array:
        items = _type(array[1], components, depth + 1, left)
        if array[2] == "0":
            raise ValueError(f"{name[:40]!r} has no items")
        size = int(array[2] or 0)
        is_dynamic = items.is_dynamic or not size
        return Type(
            f"{items.name}[{size or ''}]",
            size=size,
            items=items,
            is_dynamic=is_dynamic,
            head_bytes=WORD if is_dynamic else size * items.head_bytes,
        )
    if name == "tuple":
        members = _parameters(components, depth + 1, left)
        inner = ",".join(member.type.name for member in members)
        is_dynamic = any(member.type.is_dynamic for member in members)
        size = sum(member.type.head_bytes for member in members)
        return Type(
            f"({inner})",
            "tuple",
            members=members,
            is_dynamic=is_dynamic,
            head_bytes=WORD if is_dynamic else size,
        )
    match = _BASE.fullmatch(name)
    if match is None:
        raise ValueError(f"{name[:40]!r} is no type")
    return _base(match[1], match[2], name)


def _base(base: str, digits: str, name: str) -> Type:
    size = int(digits or 0)
    if base in ("uint", "int"):
        size = size or 256
        valid = size % 8 == 0 and 8 <= size <= 256
        return _valid(valid, name, Type(f"{base}{size}", base, size))
    if base == "bytes":
        found = Type(name, base, size, is_dynamic=not size)
        return _valid(size <= WORD and digits != "0", name, found)
    return _valid(not digits, name, Type(name, base, is_dynamic=base == "string"))


def _valid(holds: bool, name: str, found: Type) -> Type:
    if not holds:
        raise ValueError(f"{name[:40]!r} is no type")
    return found


def _of_topics(
    parameters: Sequence[Parameter], topics: Sequence[bytes]
) -> Iterator[tuple[Parameter, str]]:
    for parameter, topic in zip(parameters, topics, strict=True):
        kind = parameter.type
        if kind.is_dynamic or kind.items is not None or kind.base == "tuple":
            # Solidity: of these there is the hash alone.
            yield parameter, f"keccak-256 0x{topic.hex()}"
        else:
            yield parameter, _Reader(topic).value_at(kind, 0, 0)


class _Reader:
    """Reads values from ABI-encoded bytes; raises :exc:`ValueError` where they do not fit."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._left = _MAX_VALUES
        # Several offsets may name the same content.
        self._bytes_left = 2 * len(data)

    def tuple_at(self, members: Sequence[Parameter], at: int, depth: int) -> list[str]:
        """Return the texts of a tuple's members, whose heads begin at an offset."""
        texts, head = [], at
        for member in members:
            texts.append(self._in_tuple(member.type, at, head, depth))
            head += member.type.head_bytes
        return texts

    def _in_tuple(self, kind: Type, start: int, head: int, depth: int) -> str:
        where = start + self._number(head) if kind.is_dynamic else head
        return self.value_at(kind, where, depth)

    def value_at(self, kind: Type, at: int, depth: int) -> str:
        """Return the text of a value at an offset."""
        self._left -= 1
        if self._left < 0 or depth > _MAX_DEPTH:
            raise ValueError("too many values")
        if kind.items is not None:
            return self._array(kind, kind.items, at, depth)
        if kind.base == "tuple":
            texts = self.tuple_at(kind.members, at, depth + 1)
            named = zip(kind.members, texts, strict=True)
            return "(" + ", ".join(f"{m.name}: {t}" if m.name else t for m, t in named) + ")"
        if kind.is_dynamic:
            return self._bytes(kind, at)
        return self._static(kind, self._slice(at, WORD))

    def _array(self, kind: Type, items: Type, at: int, depth: int) -> str:
        length, start = kind.size, at
        if not length:
            length, start = self._number(at), at + WORD
        # Each takes some bytes, unless it is a tuple of nothing.
        if length > self._left or start + length * items.head_bytes > len(self._data):
            raise ValueError("too many items")
        texts = [
            self._in_tuple(items, start, start + index * items.head_bytes, depth + 1)
            for index in range(length)
        ]
        return "[" + ", ".join(texts) + "]"

    def _bytes(self, kind: Type, at: int) -> str:
        content = self._slice(at + WORD, self._number(at))
        self._bytes_left -= len(content)
        if self._bytes_left < 0:
            raise ValueError("the same bytes are there too often")
        if kind.base == "bytes":
            return f"0x{content.hex()}"
        return content.decode("utf-8", "replace")

    @staticmethod
    def _static(kind: Type, word: bytes) -> str:
        number = int.from_bytes(word)
        match kind.base:
            case "uint":
                return str(_within(number, kind.size))
            case "int":
                return str(_signed(word, kind.size))
            case "bool":
                return str(bool(_within(number, 1))).lower()
            case "address":
                from ..protocol.secp256k1eth import to_checksum

                return to_checksum(_within(number, 160).to_bytes(20))
            case _:
                size = kind.size or 24
                if any(word[size:]):
                    raise ValueError("bytes are too long")
                return f"0x{word[:size].hex()}"

    def _number(self, at: int) -> int:
        return int.from_bytes(self._slice(at, WORD))

    def _slice(self, at: int, size: int) -> bytes:
        if at < 0 or at + size > len(self._data):
            raise ValueError("the data ends too early")
        return self._data[at : at + size]


def _within(number: int, bits: int) -> int:
    if number >> bits:
        raise ValueError("a number is too large")
    return number


def _signed(word: bytes, bits: int) -> int:
    number = int.from_bytes(word, signed=True)
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise ValueError("a number is too large")
    return number
