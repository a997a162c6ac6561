"""Decoder of logs and calldata by a contract's ABI, in the JSON format of Solidity's compiler.

Contracts can emit any bytes; bytes that do not fit the ABI are not decoded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from eth_abi import decoding
from eth_abi.exceptions import DecodingError
from eth_abi.registry import registry

from .. import jsoncodec
from ..protocol.secp256k1eth import keccak, to_checksum

_MAX_ENTRIES = 5_000
_MAX_TYPES = 6_000
"""Maximum number of types in an ABI, including the types of elements and members."""
_MAX_DEPTH = 16
_MAX_SAME = 16
"""Maximum number of events with the same signature to try for a log; they differ in which
parameters are indexed."""
_MAX_READS = 20_000
"""Maximum number of reads for one log or call, as small data can claim to have a large
array."""
_READS_OF_WORD = 64
"""Maximum number of reads per word of data. Each level of nested tuples doubles the reads of a
member, so this allows six levels."""

_ARRAY = re.compile(r"(.*)\[(\d{0,9})\]", re.ASCII)
# Names of types that may be passed to eth-abi, which caches every name that it parses.
_BASE = re.compile(r"(u?int|bytes)([1-9]\d{0,2})?|address|bool|string|function", re.ASCII)


class _Data(decoding.ContextFramesBytesIO):
    """Stream of encoded values with a limit on reads, as many offsets may point to the same
    value."""

    reads = 0
    content = 0

    def read(self, size: int | None = -1, /) -> bytes:
        """Return ``size`` bytes; raise :exc:`ValueError` if there are fewer."""
        wanted, total = size or 0, len(self.getbuffer())
        self.reads += 1
        self.content += wanted if wanted > 32 else 0
        if self.reads > min(_MAX_READS, _READS_OF_WORD * (total // 32 + 1)):
            raise ValueError("the data has more values than this page decodes")
        if wanted > total - self.tell() or self.content > 2 * total:
            raise ValueError("the data ends too early, or reads the same bytes too often")
        return super().read(wanted)


class _Bytes(decoding.ByteStringDecoder):
    """Decoder of bytes of any length, without the padding that eth-abi expects and Solidity
    does not."""

    def read_data_from_stream(self, stream: decoding.ContextFramesBytesIO) -> bytes:
        """Return the bytes after their length."""
        return stream.read(decoding.decode_uint_256(stream))


class _Struct(decoding.TupleDecoder):
    """Decoder of a tuple, whose decoded value is text."""

    names: Sequence[str] = ()

    def decode(self, stream: decoding.ContextFramesBytesIO) -> Any:
        """Return the members as text in parentheses."""
        # Count a read even for a tuple without members, which has no bytes.
        stream.read(0)
        pairs = zip(self.names, super().decode(stream), strict=True)
        return f"({', '.join(f'{n}: {_shown(v)}' if n else _shown(v) for n, v in pairs)})"


_DECODERS = registry.copy()
for _name, _decoder in {
    "address": decoding.AddressDecoder(decoder_fn=to_checksum),
    "bytes": _Bytes(),
    "string": _Bytes(decoder_fn=lambda data: data.decode("utf-8", "replace")),
}.items():
    _DECODERS.unregister_decoder(_name)
    _DECODERS.register_decoder(_name, _decoder)


def _shown(value: Any) -> str:
    match value:
        case bytes():
            return f"0x{value.hex()}"
        case bool():
            return str(value).lower()
        case tuple():
            return f"[{', '.join(map(_shown, value))}]"
    return str(value)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an event or a function, or a member of a tuple."""

    name: str
    type: str
    """Canonical name of the type, as in the signature that is hashed."""
    decoder: decoding.BaseDecoder
    indexed: bool = False


@dataclass(frozen=True, slots=True)
class Value:
    """The value of a parameter as text."""

    name: str
    type: str
    text: str


@dataclass(frozen=True, slots=True)
class DecodedAbi:
    """Signature and decoded values of a log or a call."""

    signature: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    inputs: tuple[Parameter, ...]

    @property
    def signature(self) -> str:
        return f"{self.name}({','.join(each.type for each in self.inputs)})"

    def decoded(self, texts: Sequence[str]) -> DecodedAbi:
        """Return the decoded values from the text of each parameter."""
        named = zip(self.inputs, texts, strict=True)
        return DecodedAbi(
            self.signature, tuple(Value(p.name, p.type, text) for p, text in named)
        )


class Abi:
    """Events and functions of a contract, by the hash of their signature."""

    def __init__(self, entries: Sequence[tuple[str, _Entry]]) -> None:
        self._events: dict[bytes, list[_Entry]] = {}
        self._functions: dict[bytes, _Entry] = {}
        for kind, entry in entries:
            digest = keccak(entry.signature.encode())
            if kind == "event":
                # Events with the same hash may differ in which parameters are indexed.
                self._events.setdefault(digest, []).append(entry)
            else:
                self._functions[digest[:4]] = entry

    @classmethod
    def parse(cls, document: str) -> Abi:
        """Return the ABI in a JSON document, which may be a compiler's artifact; raise
        :exc:`ValueError`."""
        found = jsoncodec.decode(document)
        if isinstance(found, dict):
            found = found.get("abi")
        if not isinstance(found, list):
            raise ValueError(
                "expected a list of functions and events, or an object with one as 'abi'"
            )
        if len(found) > _MAX_ENTRIES:
            raise ValueError(f"expected at most {_MAX_ENTRIES} entries, got {len(found)}")
        return cls(list(_entries(found)))

    def log(self, topics: Sequence[bytes], data: bytes) -> DecodedAbi | None:
        """Return the decoded log; ``None`` if no event of the ABI fits."""
        for entry in self._events.get(topics[0], ())[:_MAX_SAME] if topics else ():
            rest = [each for each in entry.inputs if not each.indexed]
            if len(entry.inputs) - len(rest) != len(topics) - 1:
                continue
            try:
                indexed, plain = iter(topics[1:]), iter(_texts(rest, data))
                return entry.decoded(
                    [
                        _topic(p, next(indexed)) if p.indexed else next(plain)
                        for p in entry.inputs
                    ]
                )
            except (DecodingError, ValueError):
                continue
        return None

    def call(self, data: bytes) -> DecodedAbi | None:
        """Return the decoded calldata; ``None`` if no function of the ABI fits."""
        entry = self._functions.get(data[:4])
        if entry is None or len(data) < 4:
            return None
        try:
            return entry.decoded(_texts(entry.inputs, data[4:]))
        except (DecodingError, ValueError):
            return None


def _texts(parameters: Sequence[Parameter], data: bytes) -> list[str]:
    decoder = decoding.TupleDecoder(decoders=[each.decoder for each in parameters])
    return list(map(_shown, decoder.decode(_Data(data))))


def _topic(parameter: Parameter, topic: bytes) -> str:
    if isinstance(parameter.decoder, decoding.Fixed32ByteSizeDecoder):
        return _texts([parameter], topic)[0]
    # The topic of any other type is only the hash of the value.
    return f"keccak-256 0x{topic.hex()}"


def _entries(found: list[Any]) -> Iterator[tuple[str, _Entry]]:
    left = iter(range(_MAX_TYPES))
    for row in found:
        if not isinstance(row, dict):
            raise ValueError("expected an object as each entry")
        # The type defaults to "function" in Solidity's ABI specification.
        kind = row.get("type", "function")
        if kind in ("event", "function", "error") and not row.get("anonymous"):
            yield kind, _Entry(_text(row, "name"), _parameters(row.get("inputs", []), 0, left))


def _parameters(rows: Any, depth: int, left: Iterator[int]) -> tuple[Parameter, ...]:
    if not isinstance(rows, list) or depth > _MAX_DEPTH:
        raise ValueError(f"expected a list of parameters, nested at most {_MAX_DEPTH} deep")
    if len(rows) > _MAX_ENTRIES:
        raise ValueError(f"expected at most {_MAX_ENTRIES} parameters, got {len(rows)}")
    found = []
    for row in rows:
        if not isinstance(row, dict):
            raise ValueError("expected an object as each parameter")
        kind, decoder = _type(_text(row, "type"), row.get("components", []), depth, left)
        name, is_indexed = str(row.get("name", "")), row.get("indexed") is True
        found.append(Parameter(name, kind, decoder, is_indexed))
    return tuple(found)


def _text(row: dict[str, Any], member: str) -> str:
    value = row.get(member)
    if not isinstance(value, str):
        raise ValueError(f"expected a string as {member} of each entry and parameter")
    return value


def _type(
    name: str, components: Any, depth: int, left: Iterator[int]
) -> tuple[str, decoding.BaseDecoder]:
    """Return the canonical name of a type, and its decoder."""
    if depth > _MAX_DEPTH:
        raise ValueError(f"expected types that are nested at most {_MAX_DEPTH} deep")
    if next(left, None) is None:
        raise ValueError(f"expected at most {_MAX_TYPES} types of parameters")
    array = _ARRAY.fullmatch(name)
    if array:
        item_name, item = _type(array[1], components, depth + 1, left)
        if array[2] == "0":
            raise ValueError(f"expected an array with at least one element, got {name[:40]!r}")
        size = int(array[2] or 0)
        if not size:
            return f"{item_name}[]", decoding.DynamicArrayDecoder(item_decoder=item)
        sized = decoding.SizedArrayDecoder(array_size=size, item_decoder=item)
        return f"{item_name}[{size}]", sized
    if name == "tuple":
        members = _parameters(components, depth + 1, left)
        names = [member.name for member in members]
        decoder = _Struct(decoders=[member.decoder for member in members], names=names)
        return f"({','.join(member.type for member in members)})", decoder
    return _base(name)


def _base(name: str) -> tuple[str, decoding.BaseDecoder]:
    canonical = f"{name}256" if name in ("uint", "int") else name
    try:
        if _BASE.fullmatch(name):
            return canonical, _DECODERS.get_decoder(canonical)
    except ValueError:
        pass
    raise ValueError(f"expected a Solidity type, got {name[:40]!r}")
