"""RLP fields of each transaction type, in order.

The quoted names are geth's types and fields (core/types), which its error texts contain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..domain import records
from ..domain.records import AccessListEntry, Authorization
from .rlp import Item, Malformed, Reader

WORD = 32
"""Size of the EVM's numbers, in bytes."""

Read = Callable[[Reader], Any]


def _unchanged(value: Any) -> Item:
    return value  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class Field:
    """A field: its name in this package and in geth, its decoder, and the conversion of its
    value to an RLP item."""

    name: str
    geth: str
    read: Read
    item: Callable[[Any], Item] = _unchanged


@dataclass(frozen=True, slots=True)
class Form:
    """Fields of an RLP list, in order, with the name of the list's type in geth."""

    geth: str
    fields: tuple[Field, ...]

    def read(self, reader: Reader) -> list[Any]:
        """Decode the next list into one value for each field; raise :exc:`Malformed`."""
        items = reader.list(self.geth)
        values = []
        for field in self.fields:
            if items.done:
                raise Malformed("too few elements", self.geth)
            try:
                values.append(field.read(items))
            except Malformed as error:
                raise error.at(f".{field.geth}") from None
        if not items.done:
            raise Malformed("input list has too many elements", self.geth)
        return values


def _number(kind: str, size: int) -> Read:
    """Return a decoder of numbers of at most ``size`` bytes, without leading zeros."""

    def read(reader: Reader) -> int:
        value = reader.string(kind)
        if len(value) > size:
            raise _too_large(kind)
        return _canonical(value, kind)

    return read


def _big(reader: Reader) -> int:
    """Decode a number of any size, as geth does for types 0 to 2."""
    return _canonical(reader.string("*big.Int"), "*big.Int")


def _canonical(value: bytes, kind: str) -> int:
    if value[:1] == b"\0":
        raise Malformed("non-canonical integer (leading zero bytes)", kind)
    return int.from_bytes(value)


def _too_large(kind: str) -> Malformed:
    if kind == "*uint256.Int":
        return Malformed("value too large for uint256")
    return Malformed("input string too long", kind)


def _fixed(kind: str, size: int) -> Read:
    """Return a decoder of strings of exactly ``size`` bytes."""

    def read(reader: Reader) -> bytes:
        is_list, found = reader.peek()
        if is_list:
            raise Malformed("expected input string or byte", kind)
        if found != size:
            raise Malformed(f"input string too {'long' if found > size else 'short'}", kind)
        return reader.string(kind)

    return read


def _several(kind: str, read_one: Read) -> Read:
    """Return a decoder of lists of any length, whose items ``read_one`` decodes."""

    def read(reader: Reader) -> tuple[Any, ...]:
        items, values = reader.list(kind), []
        while not items.done:
            try:
                values.append(read_one(items))
            except Malformed as error:
                raise error.at(f"[{len(values)}]") from None
        return tuple(values)

    return read


_uint8 = _number("uint8", 1)
_uint64 = _number("uint64", 8)
_uint256 = _number("*uint256.Int", WORD)
_address = _fixed("common.Address", 20)
_hash = _fixed("common.Hash", 32)
_hashes = _several("[]common.Hash", _hash)


def _recipient(reader: Reader) -> bytes | None:
    """Decode an address; return ``None`` for the creation of a contract."""
    kind = "*common.Address"
    is_list, size = reader.peek(kind)
    if size:
        address: bytes = _address(reader)
        return address
    if is_list:
        raise Malformed("wrong kind of empty value (got List, want String)", kind)
    reader.string(kind)
    return None


_ENTRY = Form(
    "types.AccessTuple",
    (Field("address", "Address", _address), Field("storage_keys", "StorageKeys", _hashes)),
)
_AUTHORIZATION = Form(
    "types.SetCodeAuthorization",
    (
        Field("chain_id", "ChainID", _uint256),
        Field("address", "Address", _address),
        Field("nonce", "Nonce", _uint64),
        Field("y_parity", "V", _uint8),
        Field("r", "R", _uint256),
        Field("s", "S", _uint256),
    ),
)


def _entry(reader: Reader) -> AccessListEntry:
    return AccessListEntry(*_ENTRY.read(reader))


def _authorization(reader: Reader) -> Authorization:
    return Authorization(*_AUTHORIZATION.read(reader))


def _entry_items(entries: tuple[AccessListEntry, ...]) -> Item:
    return [[entry.address, entry.storage_keys] for entry in entries]


def _authorization_items(authorizations: tuple[Authorization, ...]) -> Item:
    return [
        [getattr(authorization, field.name) for field in _AUTHORIZATION.fields]
        for authorization in authorizations
    ]


_NONCE = Field("nonce", "Nonce", _uint64)
_GAS = Field("gas", "Gas", _uint64)
_TO = Field("to", "To", _recipient, lambda to: to or b"")
_DATA = Field("data", "Data", lambda reader: reader.string("[]uint8"))
_ENTRIES = Field(
    "access_list", "AccessList", _several("types.AccessList", _entry), _entry_items
)


def _fees(number: Read) -> tuple[Field, ...]:
    return (
        Field("max_priority_fee_per_gas", "GasTipCap", number),
        Field("max_fee_per_gas", "GasFeeCap", number),
    )


def _signature(number: Read) -> tuple[Field, ...]:
    return Field("v", "V", number), Field("r", "R", number), Field("s", "S", number)


def _call(number: Read, to: Field = _TO) -> tuple[Field, ...]:
    return _GAS, to, Field("value", "Value", number), _DATA


_CALLED = Field("to", "To", _address)

FORMS = {
    records.LEGACY: Form(
        "types.LegacyTx",
        (_NONCE, Field("gas_price", "GasPrice", _big), *_call(_big), *_signature(_big)),
    ),
    # EIP-2930.
    records.ACCESS_LIST: Form(
        "types.AccessListTx",
        (
            Field("chain_id", "ChainID", _big),
            _NONCE,
            Field("gas_price", "GasPrice", _big),
            *_call(_big),
            _ENTRIES,
            *_signature(_big),
        ),
    ),
    # EIP-1559.
    records.DYNAMIC_FEE: Form(
        "types.DynamicFeeTx",
        (
            Field("chain_id", "ChainID", _big),
            _NONCE,
            *_fees(_big),
            *_call(_big),
            _ENTRIES,
            *_signature(_big),
        ),
    ),
    # EIP-4844: a blob transaction can't create a contract, so it has a recipient.
    records.BLOB: Form(
        "types.BlobTx",
        (
            Field("chain_id", "ChainID", _uint256),
            _NONCE,
            *_fees(_uint256),
            *_call(_uint256, _CALLED),
            _ENTRIES,
            Field("max_fee_per_blob_gas", "BlobFeeCap", _uint256),
            Field("blob_versioned_hashes", "BlobHashes", _hashes),
            *_signature(_uint256),
        ),
    ),
    # EIP-7702: a transaction with authorizations can't create a contract, either.
    records.SET_CODE: Form(
        "types.SetCodeTx",
        (
            Field("chain_id", "ChainID", _uint256),
            _NONCE,
            *_fees(_uint256),
            *_call(_uint256, _CALLED),
            _ENTRIES,
            Field(
                "authorizations",
                "AuthList",
                _several("[]types.SetCodeAuthorization", _authorization),
                _authorization_items,
            ),
            *_signature(_uint256),
        ),
    ),
}
