"""Parameters of EVM methods: a JSON array, parsed by geth's rules and with geth's errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from .... import jsoncodec
from ....wire import params as wire
from ....wire.dialect import ParamRules
from ....wire.json_schema import typed
from ....wire.params import ParamField
from . import hex

_MAX_INT64 = (1 << 63) - 1

# Maximum number of JSON arrays and objects in the parameters of a call. Parsing a million of
# them would block the process.
_MAX_LISTS = 50_000


class Tag(Enum):
    """A block named by its role."""

    LATEST = "latest"
    PENDING = "pending"
    SAFE = "safe"
    FINALIZED = "finalized"
    EARLIEST = "earliest"


_TAGS = {tag.value: tag for tag in Tag}
Height = int | Tag


@dataclass(frozen=True, slots=True)
class ByHash:
    """A block named by its hash."""

    hash: bytes


class GoParam(ParamField):
    """A parameter whose errors name the Go type that geth parses it into."""

    go_type = "string"

    def from_json(self, value: Any) -> Any:
        """Return the value; raise :exc:`ValueError` with geth's text."""
        if not isinstance(value, str):
            raise ValueError(
                f"json: cannot unmarshal non-string into Go value of type {self.go_type}"
            )
        try:
            return self.read(value)
        except ValueError as error:
            raise ValueError(
                f"json: cannot unmarshal {error} into Go value of type {self.go_type}"
            ) from None

    def read(self, text: str) -> Any:
        """Return the value of a JSON string; raise :exc:`ValueError` with the reason."""
        raise NotImplementedError


class Quantity(GoParam):
    """A number of up to 64 bits, as a hex string."""

    go_type = "hexutil.Uint64"

    def read(self, text: str) -> int:
        """Return the number."""
        return hex.read_quantity(text)


class Uint64(ParamField):
    """A number of up to 64 bits, as a JSON number."""

    json_type = "integer"

    def from_json(self, value: Any) -> int:
        """Return the number."""
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise mismatch(value, "uint64")
        if not isinstance(value, int) or not 0 <= value <= hex.MAX_UINT64:
            raise ValueError(
                f"json: cannot unmarshal number {value} into Go value of type uint64"
            )
        return value


class Index(Quantity):
    """An index in a list, as a hex string."""

    go_type = "hexutil.Uint"


class Data(GoParam):
    """Bytes of any length, as a hex string."""

    go_type = "hexutil.Bytes"

    def read(self, text: str) -> bytes:
        """Return the bytes."""
        return hex.read_data(text)


class Hash(GoParam):
    """A hash of 32 bytes, as a hex string."""

    go_type = "common.Hash"

    def read(self, text: str) -> bytes:
        """Return the bytes."""
        return hex.read_fixed(text, 32, self.go_type)


class Address(GoParam):
    """An address of 20 bytes, as a hex string; the checksum in its case is not verified."""

    go_type = "common.Address"

    def read(self, text: str) -> bytes:
        """Return the bytes."""
        return hex.read_fixed(text, 20, self.go_type)


class Bool(ParamField):
    """True or false."""

    json_type = "boolean"

    def from_json(self, value: Any) -> bool:
        """Return the value."""
        if not isinstance(value, bool):
            raise mismatch(value, "bool")
        return value


class String(ParamField):
    """A JSON string."""

    go_type = "string"

    def from_json(self, value: Any) -> str:
        """Return the string unchanged."""
        if not isinstance(value, str):
            raise mismatch(value, self.go_type)
        return value


class Id(String):
    """The ID of a filter or a subscription."""

    go_type = "rpc.ID"


class Anything(ParamField):
    """Any JSON value."""

    json_type = "any"

    def from_json(self, value: Any) -> Any:
        """Return the value."""
        return value


class BlockNumber(ParamField):
    """A block by its height or tag."""

    def from_json(self, value: Any) -> Height:
        """Return a height or a tag."""
        # geth: rpc/types.go accepts a tag or a hex number with or without quotes.
        text = value if isinstance(value, str) else jsoncodec.encode(value).decode()
        if text in _TAGS:
            return _TAGS[text]
        height = hex.read_quantity(text.strip())
        if height > _MAX_INT64:
            raise ValueError("block number larger than int64")
        return height


class PlainBlockNumber(BlockNumber):
    """A block by its height, which may be a JSON number, or by its tag; Otterscan sends
    numbers."""

    in_json = typed("integer", "string")

    def from_json(self, value: Any) -> Height:
        """Return a height or a tag."""
        is_number = isinstance(value, int) and not isinstance(value, bool)
        return super().from_json(f"{value:#x}" if is_number and value >= 0 else value)


def read_page_size(name: str, value: Any, most: int) -> int:
    """Return the number of entries in a page, from a JSON number or a hex string; raise
    :exc:`ValueError` for another value."""
    try:
        size = PlainBlockNumber().from_json(value)
    except ValueError:
        size = 0
    if isinstance(size, int) and 0 < size <= most:
        return size
    raise ValueError(f"{name}: expected a number from 1 to {most}, got {str(value)[:40]!r}")


def is_newest_first(order: object) -> bool:
    """Return true for ``desc``, false for ``asc``; raise :exc:`ValueError` for another
    order."""
    if order not in ("asc", "desc"):
        raise ValueError(f"order: expected asc or desc, got {str(order)[:40]!r}")
    return order == "desc"


class MemberNames:
    """The names of the members that a JSON object may have.

    Names match in any case, and the last of several equal names counts, as in Go's
    encoding/json; geth's own client writes ``Tracer``.
    """

    def __init__(self, *names: str) -> None:
        self._names = {name.lower(): name for name in names}

    def of(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return the members whose names match, by their canonical names."""
        return {
            self._names[name]: each
            for key, each in value.items()
            if (name := key.lower()) in self._names
        }


_BLOCK = MemberNames("blockNumber", "blockHash")


class BlockId(BlockNumber):
    """A block by height, tag or hash, or by the object of EIP-1898."""

    json_type = "any"

    def from_json(self, value: Any) -> Height | ByHash:  # type: ignore[override]
        """Return a height, a tag, or a hash."""
        if isinstance(value, dict):
            return self._object(value)
        if isinstance(value, str) and len(value) == 66:
            return ByHash(_hash(value))
        return super().from_json(value)

    def _object(self, value: Mapping[str, Any]) -> Height | ByHash:
        value = _BLOCK.of(value)
        number, block_hash = value.get("blockNumber"), value.get("blockHash")
        if number is not None and block_hash is not None:
            raise ValueError(
                "cannot specify both BlockHash and BlockNumber, choose one or the other"
            )
        if block_hash is not None:
            return ByHash(Hash().from_json(block_hash))
        if number is not None:
            return super().from_json(number)
        raise ValueError("must specify either BlockHash or BlockNumber")


def _hash(text: str) -> bytes:
    value: bytes = Hash().from_json(text)
    return value


def mismatch(value: Any, go_type: str) -> ValueError:
    """Return geth's error for a JSON value of the wrong type."""
    return ValueError(f"json: cannot unmarshal {_kind(value)} into Go value of type {go_type}")


def _kind(value: Any) -> str:
    match value:
        case bool():
            return "bool"
        case str():
            return "string"
        case int() | float():
            return "number"
        case list():
            return "array"
        case _:
            return "object"


def positional(raw: bytes) -> list[Any]:
    """Return the parameters of a call; raise :exc:`ValueError` with geth's text."""
    if raw.count(b"[") + raw.count(b"{") > _MAX_LISTS:
        raise ValueError(
            f"params: expected at most {_MAX_LISTS} arrays and objects; send several calls"
        )
    try:
        values = jsoncodec.decode(raw)
    except jsoncodec.NotJSON as error:
        raise ValueError(str(error)) from None
    if not isinstance(values, list):
        raise ValueError("non-array args")
    return values


# alloy sends the options of anvil_reorg as an object instead of an array.
_BY_NAME = "tx_block_pairs"


def _members(raw: bytes, names: Sequence[str]) -> Mapping[str, Any]:
    if _BY_NAME in names and raw.lstrip()[:1] == b"{":
        raw = b"[" + raw + b"]"
        (given,) = positional(raw)
        return {name: each for name, each in given.items() if name in names}
    values = positional(raw)
    if len(values) > len(names):
        raise ValueError(f"too many arguments, want at most {len(names)}")
    given = zip(names, values, strict=False)
    return {name: value for name, value in given if value is not None}


def _describe_error(position: int, name: str, error: ValueError, value: Any) -> str:
    return f"invalid argument {position}: {error}"


# Replacements for fields of the app's own routes, which are made from Python annotations.
_READERS: Mapping[type[ParamField], ParamField] = {
    wire.Text: String(),
    wire.Int64: Quantity(),
    wire.Flag: Bool(),
    wire.Bytes: Data(),
}


def _reader(kind: ParamField) -> ParamField:
    return _READERS.get(type(kind), kind)


def _value_if_omitted(position: int, name: str, kind: ParamField) -> Any:
    raise ValueError(f"missing value for required argument {position}")


GETH_PARAMS = ParamRules(
    reader=_reader,
    members=_members,
    describe_error=_describe_error,
    value_if_omitted=_value_if_omitted,
)
"""geth's rules: parameters are an array, and parameters missing at its end have their
defaults."""
