"""Protobuf message types: strict checks of their fields, decoding, and amino JSON.

SDK: codec/unknownproto refuses unknown fields, so that data can't be added to a signed
transaction. Non-critical fields, those with bit 11 in their number, are allowed in a
transaction's body.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from string import hexdigits
from typing import Any

from ...domain.time import SECOND, to_text
from ...protocol.protobuf import Malformed, Message, int64
from . import decimals
from .coins import Coin, parse_amount, parse_integer
from .proto import ENUMS, MESSAGES

VARINT, FIXED64, BYTES, START_GROUP, END_GROUP, FIXED32 = range(6)
_NAMES = ("varint", "fixed64", "bytes", "start_group", "end_group", "fixed32")
_NON_CRITICAL = 1 << 10
# Go accepts field numbers up to this one, which are larger than protobuf's maximum.
_MAX_NUMBER = (1 << 31) - 1
_MAX_DEPTH = 64

Values = Mapping[str, Any]
"""Values of a message, by field name."""


class InvalidMessage(ValueError):
    """Error for bytes that do not encode the expected message."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A type of field that is not a message: wire type, decoders and amino JSON."""

    wire: int
    read: Callable[[Message, int], Any]
    read_all: Callable[[Message, int], list[Any]]
    amino: Callable[[Any], Any]
    keeps_zero: bool = False
    """True if amino JSON includes zero."""


def _text(value: bytes) -> str:
    # Don't refuse invalid UTF-8, which gogoproto does not check; as an address it is invalid.
    return value.decode(errors="replace")


TEXT = Scalar(
    BYTES,
    lambda message, number: _text(message.blob(number)),
    lambda message, number: list(map(_text, message.blobs(number))),
    str,
)
"""Strings as ``str``."""
BLOB = Scalar(BYTES, Message.blob, Message.blobs, lambda value: b64encode(value).decode())
"""Bytes as ``bytes``."""
UINT = Scalar(VARINT, Message.integer, lambda message, number: [], str)
"""Integers of 64 bits as ``int``; repeated ones are not supported."""
BOOL = Scalar(
    VARINT, lambda message, number: bool(message.integer(number)), lambda m, n: [], bool
)
"""Booleans as ``bool``; repeated ones are not supported."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a message."""

    name: str
    type: Scalar | Kind
    repeated: bool = False
    signer: bool = False
    """True if the field is a signer's address, or a message that contains one."""
    always: bool = False
    """True if amino JSON includes the field even if it is empty."""
    is_required: bool = False
    """True if an absent message is decoded as an empty one."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A message type: its fields by number."""

    name: str
    """Name of the Go type, which errors contain."""
    fields: Mapping[int, Field] = field(default_factory=dict)
    build: Callable[[dict[str, Any]], Any] = lambda values: values
    """Function that makes the decoded value from the field values; by default a dict."""
    amino: Callable[[Any], Any] | None = None

    def decode(self, data: bytes) -> Any:
        """Decode a message that :class:`FieldCheck` has checked; raise
        :exc:`InvalidMessage`."""
        try:
            message = Message(data)
            values = {f.name: _read(message, number, f) for number, f in self.fields.items()}
            return self.build(values)
        except (Malformed, InvalidMessage) as error:
            raise InvalidMessage(str(error)) from None

    def amino_json(self, value: Any) -> Any:
        """Return the amino JSON of a decoded message."""
        if self.amino is not None:
            return self.amino(value)
        return {
            f.name: _amino(f, value[f.name])
            for f in self.fields.values()
            if f.always or not _is_empty(f, value[f.name])
        }

    def signers(self, value: Values) -> Iterator[str]:
        """Yield the addresses that must sign a decoded message."""
        for f in self.fields.values():
            if f.signer:
                for each in value[f.name] if f.repeated else (value[f.name],):
                    if isinstance(f.type, Kind):
                        yield from f.type.signers(each)
                    else:
                        yield each


def _read(message: Message, number: int, f: Field) -> Any:
    if isinstance(f.type, Kind):
        parts = message.blobs(number)
        if f.repeated:
            return tuple(map(f.type.decode, parts))
        # Protobuf merges several occurrences of a message field that is not repeated.
        return f.type.decode(b"".join(parts)) if parts or f.is_required else None
    if f.repeated:
        return tuple(f.type.read_all(message, number))
    return f.type.read(message, number)


def _is_empty(f: Field, value: Any) -> bool:
    keeps_zero = isinstance(f.type, Scalar) and f.type.keeps_zero
    return value is None if keeps_zero else not value


def _amino(f: Field, value: Any) -> Any:
    of = f.type.amino_json if isinstance(f.type, Kind) else f.type.amino
    if not f.repeated:
        return of(value)
    # SDK: an empty list is null, except for coins.
    return [of(each) for each in value] if value or f.type is COIN else None


def _fee_coin(values: dict[str, Any]) -> Coin:
    try:
        return Coin(values["denom"], parse_amount(values["amount"]))
    except ValueError as error:
        raise InvalidMessage(str(error)) from None


def _coin(values: dict[str, Any]) -> Coin:
    coin = _fee_coin(values)
    # Read a missing amount as zero, as the SDK encodes the decoded message again, with a zero.
    return Coin(coin.denom, coin.amount or 0)


def _amino_coin(coin: Coin) -> dict[str, str]:
    amount = {"amount": str(coin.amount or 0)}
    return {**amount, "denom": coin.denom} if coin.denom else amount


@dataclass(frozen=True, slots=True)
class AnyValue:
    """An encoded message and its type URL; protobuf: ``Any``."""

    type_url: str
    value: bytes


def _integer(message: Message, number: int) -> int | None:
    return _parsed(parse_amount, message.blob(number))


def _decimal(message: Message, number: int) -> int | None:
    data = message.blob(number)
    return _parsed(lambda text: decimals.checked(parse_integer(text)), data) if data else None


def _parsed(parse: Callable[[str], int | None], data: bytes) -> int | None:
    try:
        return parse(_text(data))
    except (ValueError, OverflowError) as error:
        raise InvalidMessage(str(error)) from None


INTEGER = Scalar(
    BYTES, _integer, lambda message, number: [], lambda value: str(value or 0), keeps_zero=True
)
"""Integers of any size as ``int``, ``None`` if absent; repeated ones are not supported."""
DECIMAL = Scalar(
    BYTES,
    _decimal,
    lambda message, number: [],
    lambda value: "0" if value is None else decimals.show(value),
    keeps_zero=True,
)
"""Decimal numbers in units of 10^-18, ``None`` if absent; repeated ones are not supported."""
INT64 = replace(UINT, read=lambda message, number: int64(message.integer(number)))
"""Signed integers of 64 bits as ``int``; repeated ones are not supported."""
ENUM = replace(UINT, read=lambda message, number: int32(message.integer(number)), amino=int)
"""Numbers of an enum as ``int``; repeated ones are not supported."""

_UINT32 = (1 << 32) - 1
# The first second of year 1 and the last of year 9999.
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799


def int32(value: int) -> int:
    """Return the int32 that Go makes of a decoded varint: its lower bits, as a signed
    number."""
    value &= _UINT32
    return value - (1 << 32) if value >> 31 else value


def _time(seconds: int, nanos: int) -> int:
    shown = f"timestamp: &timestamppb.Timestamp{{Seconds: {seconds},\nNanos: {nanos},\n}}"
    if seconds < _FIRST_SECOND:
        raise InvalidMessage(f"{shown} before 0001-01-01")
    if seconds > _LAST_SECOND:
        raise InvalidMessage(f"{shown} after 10000-01-01")
    if not 0 <= nanos < SECOND:
        raise InvalidMessage(f"{shown}: nanos not in range [0, 1e9)")
    return seconds * SECOND + nanos


TIMESTAMP = Kind(
    "*types.Timestamp",
    {1: Field("seconds", UINT), 2: Field("nanos", UINT)},
    lambda values: _time(int64(values["seconds"]), int32(values["nanos"])),
    amino=to_text,
)
"""Type of times, in nanoseconds since 1970."""

# 10,000 years, as protobuf specifies.
_MAX_SECONDS = 315_576_000_000


def _duration(seconds: int, nanos: int) -> int:
    shown = f"duration: &durationpb.Duration{{Seconds: {seconds},\nNanos: {nanos},\n}}"
    if abs(seconds) > _MAX_SECONDS:
        raise InvalidMessage(f"{shown}: seconds out of range")
    if abs(nanos) >= SECOND:
        raise InvalidMessage(f"{shown}: nanos out of range")
    if seconds * nanos < 0:
        raise InvalidMessage(f"{shown}: seconds and nanos have different signs")
    found = seconds * SECOND + nanos
    if not -(1 << 63) <= found < 1 << 63:
        raise InvalidMessage(f"{shown} is out of range for time.Duration")
    return found


DURATION = Kind(
    "*types.Duration",
    TIMESTAMP.fields,
    lambda values: _duration(int64(values["seconds"]), int32(values["nanos"])),
    amino=str,
)
"""Type of durations, in nanoseconds."""

_TYPES: dict[str, Scalar | Kind] = {
    "Duration": DURATION,
    "Timestamp": TIMESTAMP,
    "string": TEXT,
    "bytes": BLOB,
    "bool": BOOL,
    "Int": INTEGER,
    "Dec": DECIMAL,
    "int64": INT64,
}


def _type(name: str) -> Scalar | Kind:
    return ENUM if name in ENUMS else _TYPES.get(name, UINT)


def declared(
    go_name: str,
    name: str,
    build: Callable[[dict[str, Any]], Any] = lambda values: values,
    *,
    signer: str = "",
    omits: Collection[str] = (),
    **types: Scalar | Kind,
) -> Kind:
    """Return the type of the message ``name`` in :data:`MESSAGES`.

    ``build`` makes the decoded value; ``signer`` is the name of the signer's field; ``omits``
    names the repeated fields that amino JSON leaves out if they are empty; ``types`` are field
    types by name, which replace the default ones.
    """
    return Kind(
        go_name,
        {
            f.number: Field(
                f.attribute,
                types.get(f.attribute) or _type(f.type),
                f.repeated,
                signer=f.attribute == signer,
                always=(f.repeated and f.attribute not in omits) or f.mark == "!",
                is_required=f.mark == "!",
            )
            for f in MESSAGES[name]
        },
        build,
    )


FEE_COIN = replace(declared("*types.Coin", "Coin", _fee_coin), amino=_amino_coin)
"""Type of :class:`~flask_noderpc.cosmos.protocol.coins.Coin` fields whose amount may be
missing."""
COIN = _TYPES["Coin"] = replace(FEE_COIN, build=_coin)
"""Type of :class:`~flask_noderpc.cosmos.protocol.coins.Coin` fields."""
ANY_AMINO: dict[str, Callable[[bytes], Any]] = {}
"""Functions that return the amino JSON of a message in an ``Any``, by type URL."""


def _amino_any(given: AnyValue) -> Any:
    if given.type_url not in ANY_AMINO:
        raise InvalidMessage(f"{given.type_url} has no amino JSON; sign in SIGN_MODE_DIRECT")
    return ANY_AMINO[given.type_url](given.value)


ANY = _TYPES["Any"] = replace(
    declared("*types.Any", "Any", lambda values: AnyValue(**values)), amino=_amino_any
)
"""Type of :class:`AnyValue` fields."""


def coins(name: str) -> Field:
    """Return a repeated field of coins."""
    return Field(name, COIN, repeated=True, always=True)


Resolve = Callable[[str], Kind | None]
"""A function that returns a message type by its type URL, or ``None`` if it is unknown."""


class FieldBudget:
    """Limit on the fields of one transaction, including nested ones.

    A field can have two bytes and takes microseconds to parse, so without a limit a
    transaction of a megabyte could take seconds.
    """

    def __init__(self, most: int = 8_192) -> None:
        self._most = self._left = most

    def take(self) -> None:
        """Count one field; raise :exc:`InvalidMessage` if there are too many."""
        self._left -= 1
        if self._left < 0:
            raise InvalidMessage(f"expected at most {self._most} fields in a transaction")


@dataclass(frozen=True, slots=True)
class FieldCheck:
    """Check for unknown fields in a message and in the messages nested in it."""

    resolve: Resolve
    budget: FieldBudget = field(default_factory=FieldBudget)

    def check(
        self, data: bytes, kind: Kind, *, lenient: bool = False, depth: int = _MAX_DEPTH
    ) -> bool:
        """Raise :exc:`InvalidMessage` for an unknown field; return true if there are unknown
        non-critical fields, which ``lenient`` allows."""
        if not depth:
            raise InvalidMessage("recursion limit reached")

        def check_field(number: int, wire: int) -> None:
            self.budget.take()
            _check_field(kind, number, wire, lenient)

        found = False
        for number, _, value in read_fields(data, check_field):
            f = kind.fields.get(number)
            if f is None:
                found = True
            elif isinstance(f.type, Kind):
                found |= self._check_inner(value, f.type, lenient, depth - 1)
        return found

    def _check_inner(self, data: bytes, kind: Kind, lenient: bool, depth: int) -> bool:
        found = self.check(data, kind, lenient=lenient, depth=depth)
        if kind is not ANY:
            return found
        inner = ANY.decode(data)
        known = self.resolve(inner.type_url)
        if known is None:
            raise InvalidMessage(f"unable to resolve type URL {inner.type_url}")
        return self.check(inner.value, known, lenient=lenient, depth=depth) or found


def _check_field(kind: Kind, number: int, wire: int, lenient: bool) -> None:
    f = kind.fields.get(number)
    if f is None:
        if not number & _NON_CRITICAL or not lenient:
            shown = f'{{TagNum: {number}, WireType:"{_wire_name(wire)}"}}'
            raise InvalidMessage(f'errUnknownField "{kind.name}": {shown}')
        return
    wanted = BYTES if isinstance(f.type, Kind) else f.type.wire
    if wire != wanted:
        shown = f'GotWireType: "{_wire_name(wire)}" != WantWireType: "{_wire_name(wanted)}"'
        raise InvalidMessage(f'Mismatched "{kind.name}": {{TagNum: {number}, {shown}}}')


def _wire_name(wire: int) -> str:
    return _NAMES[wire] if wire < len(_NAMES) else f"unknown type: {wire}"


class Unreadable(InvalidMessage):
    """Error for bytes that are not a valid field, with the text of Go's protowire."""


def _unreadable(text: str) -> Unreadable:
    return Unreadable(f"proto: {text}")


# The error has no "proto: " prefix, as it comes from Go's package io.
_CUT_OFF = Unreadable("unexpected EOF")


def _any_field(number: int, wire: int) -> None:
    pass


def read_fields(
    data: bytes, check: Callable[[int, int], None] = _any_field
) -> Iterator[tuple[int, int, bytes]]:
    """Yield number, wire type and value of each field; the value of a varint is its encoding.

    ``check`` is called with number and wire type before the value is read, and may raise
    :exc:`InvalidMessage`.
    """
    at = 0
    while at < len(data):
        try:
            number, wire, at = read_tag(data, at)
        except Unreadable:
            raise InvalidMessage("invalid length") from None
        check(number, wire)
        try:
            start, end = value_at(data, at, number, wire)
        except Unreadable as error:
            raise InvalidMessage(
                f"could not consume field value for tagNum: {number}, wireType:"
                f' "{_wire_name(wire)}"; {error}'
            ) from None
        yield number, wire, data[start:end]
        at = end


def read_tag(data: bytes, at: int) -> tuple[int, int, int]:
    """Return number and wire type of the field at an offset, and the offset of its value;
    raise :exc:`Unreadable`."""
    key, at = read_varint(data, at)
    if not 1 <= key >> 3 <= _MAX_NUMBER:
        raise _unreadable("invalid field number")
    return key >> 3, key & 7, at


def value_at(data: bytes, at: int, number: int, wire: int, depth: int = 0) -> tuple[int, int]:
    """Return the offsets at which a field's value begins and ends; raise :exc:`Unreadable`."""
    start, end = at, at
    if wire == VARINT:
        _, end = read_varint(data, at)
    elif wire == BYTES:
        size, start = read_varint(data, at)
        end = start + size
    elif wire in (FIXED64, FIXED32):
        end = at + (8 if wire == FIXED64 else 4)
    elif wire == START_GROUP:
        end = _group_end(data, at, number, depth)
    else:
        raise _unreadable(
            "mismatching end group marker"
            if wire == END_GROUP
            else "cannot parse reserved wire type"
        )
    if end > len(data):
        raise _CUT_OFF
    return start, end


def _group_end(data: bytes, at: int, number: int, depth: int) -> int:
    if depth > _MAX_DEPTH:
        raise _unreadable("recursion limit reached")
    while True:
        inner, wire, at = read_tag(data, at)
        if wire == END_GROUP:
            if inner != number:
                raise _unreadable("mismatching end group marker")
            return at
        _, at = value_at(data, at, inner, wire, depth + 1)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a varint's value, and the offset after it; raise :exc:`Unreadable`."""
    value = 0
    for position in range(10):
        if at + position >= len(data):
            raise _CUT_OFF
        byte = data[at + position]
        value |= (byte & 0x7F) << 7 * position
        if byte < 0x80:
            if value >> 64:
                break
            return value, at + position + 1
    raise _unreadable("variable length integer overflow")


def hex_bytes(text: str) -> bytes:
    """Decode hex; raise :exc:`ValueError` with the text of Go's encoding/hex."""
    for each in text:
        if each not in hexdigits:
            raise ValueError(f"encoding/hex: invalid byte: U+{ord(each):04X} '{each}'")
    if len(text) % 2:
        raise ValueError("encoding/hex: odd length hex string")
    return bytes.fromhex(text)
