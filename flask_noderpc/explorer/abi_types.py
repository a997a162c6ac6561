"""Types of Solidity's ABI: their names, shapes and decoders.

Contracts can emit any bytes, and anybody can paste an ABI, so both have limits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from eth_abi import decoding
from eth_abi.registry import registry

from ..protocol.secp256k1eth import to_checksum

MAX_ENTRIES = 5_000
_MAX_TYPES = 6_000
"""Maximum number of types in an ABI, including the types of elements and members."""
_MAX_DEPTH = 16
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
class Type:
    """A type with its decoder; an array has ``item``, and a tuple has ``members``."""

    name: str
    """Canonical name, as in the signature that is hashed."""
    decoder: decoding.BaseDecoder
    item: Type | None = None
    size: int | None = None
    """Number of elements of an array; ``None`` if it may have any number."""
    members: tuple[Parameter, ...] | None = None

    @property
    def shape(self) -> str:
        """The name with the names of a tuple's members, to show which JSON is expected."""
        if self.item is not None:
            return f"{self.item.shape}[{self.size or ''}]"
        if self.members is not None:
            members = (f"{each.name}: {each.type.shape}".lstrip(": ") for each in self.members)
            return f"({', '.join(members)})"
        return self.name


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an event, a function or an error, or a member of a tuple."""

    name: str
    type: Type
    indexed: bool = False


def texts(parameters: Sequence[Parameter], data: bytes) -> list[str]:
    """Return the decoded values of parameters as text; raise :exc:`ValueError` or eth-abi's
    ``DecodingError``."""
    decoder = decoding.TupleDecoder(decoders=[each.type.decoder for each in parameters])
    return list(map(_shown, decoder.decode(_Data(data))))


def type_budget() -> Iterator[int]:
    """Return an iterator with one item for each type that an ABI may have."""
    return iter(range(_MAX_TYPES))


def read_parameters(rows: Any, left: Iterator[int], depth: int = 0) -> tuple[Parameter, ...]:
    """Return the parameters in a list of an ABI's JSON, taking one item of ``left`` for each
    type; raise :exc:`ValueError`."""
    if not isinstance(rows, list) or depth > _MAX_DEPTH:
        raise ValueError(f"expected a list of parameters, nested at most {_MAX_DEPTH} deep")
    if len(rows) > MAX_ENTRIES:
        raise ValueError(f"expected at most {MAX_ENTRIES} parameters, got {len(rows)}")
    found = []
    for row in rows:
        if not isinstance(row, dict):
            raise ValueError("expected an object as each parameter")
        kind = _type(read_text(row, "type"), row.get("components", []), depth, left)
        found.append(Parameter(str(row.get("name", "")), kind, row.get("indexed") is True))
    return tuple(found)


def read_text(row: dict[str, Any], member: str) -> str:
    """Return a string of an entry or a parameter; raise :exc:`ValueError` if it is
    missing."""
    value = row.get(member)
    if not isinstance(value, str):
        raise ValueError(f"expected a string as {member} of each entry and parameter")
    return value


def _type(name: str, components: Any, depth: int, left: Iterator[int]) -> Type:
    if depth > _MAX_DEPTH:
        raise ValueError(f"expected types that are nested at most {_MAX_DEPTH} deep")
    if next(left, None) is None:
        raise ValueError(f"expected at most {_MAX_TYPES} types of parameters")
    array = _ARRAY.fullmatch(name)
    if array:
        if array[2] == "0":
            raise ValueError(f"expected an array with at least one element, got {name[:40]!r}")
        item = _type(array[1], components, depth + 1, left)
        return _array(item, int(array[2]) if array[2] else None)
    if name == "tuple":
        members = read_parameters(components, left, depth + 1)
        decoders = [member.type.decoder for member in members]
        decoder = _Struct(decoders=decoders, names=[member.name for member in members])
        names = ",".join(member.type.name for member in members)
        return Type(f"({names})", decoder, members=members)
    return _base(name)


def _array(item: Type, size: int | None) -> Type:
    if size is None:
        decoder = decoding.DynamicArrayDecoder(item_decoder=item.decoder)
        return Type(f"{item.name}[]", decoder, item)
    sized = decoding.SizedArrayDecoder(array_size=size, item_decoder=item.decoder)
    return Type(f"{item.name}[{size}]", sized, item, size)


def _base(name: str) -> Type:
    canonical = f"{name}256" if name in ("uint", "int") else name
    try:
        if _BASE.fullmatch(name):
            return Type(canonical, _DECODERS.get_decoder(canonical))
    except ValueError:
        pass
    raise ValueError(f"expected a Solidity type, got {name[:40]!r}")
