"""Signing hash of structured data (EIP-712), by geth's rules.

eth-account is not used here: it hashes the domain by its own type instead of the document's,
fills in missing fields, ignores undeclared fields, and accepts a string as bytes or as a
boolean, so the signature would be for another document than the caller's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...errors import short_repr
from ...protocol.secp256k1eth import keccak
from .crypto import from_hex

_DOMAIN = "EIP712Domain"

# Types of the domain's fields, in order, for a document that does not declare EIP712Domain.
_DOMAIN_FIELDS = {
    "name": "string",
    "version": "string",
    "chainId": "uint256",
    "verifyingContract": "address",
    "salt": "bytes32",
}

_ARRAY = re.compile(r"(.+)\[(\d*)\]", re.ASCII)
_NUMBER = re.compile(r"(u?)int(\d{0,3})", re.ASCII)
_WORD_BYTES = re.compile(r"bytes(\d{1,2})", re.ASCII)

# Maximum depth of nested structs and lists, more than real documents have. The encoder calls
# itself for each level, so unlimited depth would overflow the stack.
_DEEPEST = 64

# The hash of a struct's type covers all types that it uses, so hashing each of n types that use
# one another takes n times their total length. Real documents have about 50 fields.
_MAX_DECLARATIONS = 500
_MAX_DECLARED_CHARACTERS = 32_768
# Maximum length of a type name: a list's type is parsed again for each element.
_MAX_TYPE_NAME = 256

Types = dict[str, tuple[tuple[str, str], ...]]
"""Fields of each struct by its name, as pairs of field name and field type."""


def typed_digest(document: object) -> bytes:
    """Return the signing hash of a document; raise :exc:`ValueError` if it is invalid."""
    members = _object(document, "typed data")
    domain = _object(members.get("domain"), "domain")
    types = _types(_object(members.get("types"), "types"))
    if _DOMAIN not in types:
        types[_DOMAIN] = tuple(kv for kv in _DOMAIN_FIELDS.items() if kv[0] in domain)
    primary = members.get("primaryType")
    if not isinstance(primary, str) or primary not in types:
        raise ValueError(
            f"primaryType: expected a struct that types declares, got {str(primary)[:100]!r};"
            " declare it in types"
        )
    encoder = _Encoder(types)
    signed = encoder.struct(_DOMAIN, domain)
    if primary != _DOMAIN:
        signed += encoder.struct(primary, members.get("message"))
    return keccak(b"\x19\x01" + signed)


def _object(value: object, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{what}: expected an object, got {short_repr(value)}")
    return value


def _types(members: Mapping[str, Any]) -> Types:
    try:
        types = {
            name: tuple((field["name"], field["type"]) for field in fields)
            for name, fields in members.items()
        }
    except (TypeError, KeyError):
        raise ValueError(
            "types: expected a list of fields for each struct, such as"
            ' [{"name": "to", "type": "address"}], got another value'
        ) from None
    if not all(
        isinstance(text, str) for fields in types.values() for f in fields for text in f
    ):
        raise ValueError(
            "types: expected strings as the name and type of each field, got another value"
        )
    _check_size(types)
    return types


def _check_size(types: Types) -> None:
    count = len(types) + sum(map(len, types.values()))
    if count > _MAX_DECLARATIONS:
        raise ValueError(
            f"types: expected at most {_MAX_DECLARATIONS} structs and fields, got {count}"
        )
    declared = [text for fields in types.values() for field in fields for text in field]
    size = sum(map(len, (*types, *declared)))
    if size > _MAX_DECLARED_CHARACTERS:
        raise ValueError(
            f"types: expected at most {_MAX_DECLARED_CHARACTERS} characters, got {size}"
        )
    longest = max((len(kind) for fields in types.values() for _, kind in fields), default=0)
    if longest > _MAX_TYPE_NAME:
        raise ValueError(
            f"types: expected type names of at most {_MAX_TYPE_NAME} characters, got {longest}"
        )


class _Encoder:
    """Encoder of the structs of a document: a field becomes a word, a struct its hash."""

    def __init__(self, types: Types) -> None:
        self._types = types
        self._type_hashes: dict[str, bytes] = {}

    def struct(self, name: str, value: object, depth: int = 0) -> bytes:
        """Return the hash of a struct."""
        if depth > _DEEPEST:
            raise ValueError(
                f"typed data: expected at most {_DEEPEST} levels of structs and lists, got"
                " more; flatten the message"
            )
        members, fields = _object(value, name), self._types[name]
        # geth: signer/core/apitypes.
        if len(members) > len(fields):
            raise ValueError(f"there is extra data provided in the message ({name})")
        words = [self._type_hash(name)]
        for field, kind in fields:
            if field not in members:
                raise ValueError(
                    f"{name}: expected a value for the field {field!r}, got none; add it"
                )
            words.append(self._word(kind, members[field], depth + 1))
        return keccak(b"".join(words))

    def _type_hash(self, name: str) -> bytes:
        if name not in self._type_hashes:
            others = sorted(self._used_by(name) - {name})
            text = "".join(map(self._signature, (name, *others)))
            self._type_hashes[name] = keccak(text.encode())
        return self._type_hashes[name]

    def _used_by(self, name: str) -> set[str]:
        """Return the names of a struct and of all structs that it uses."""
        found, waiting = {name}, [name]
        while waiting:
            kinds = {kind.partition("[")[0] for _, kind in self._types[waiting.pop()]}
            fresh = {kind for kind in kinds if kind in self._types} - found
            found |= fresh
            waiting.extend(fresh)
        return found

    def _signature(self, name: str) -> str:
        fields = ",".join(f"{kind} {field}" for field, kind in self._types[name])
        return f"{name}({fields})"

    def _word(self, kind: str, value: object, depth: int) -> bytes:
        array = _ARRAY.fullmatch(kind)
        if array is not None:
            return self._array(kind, array, value, depth)
        if kind in self._types:
            # A null struct, which ends a recursion, is a word of zeros, as in wallets.
            return bytes(32) if value is None else self.struct(kind, value, depth)
        return _atom(kind, value)

    def _array(self, kind: str, array: re.Match[str], value: object, depth: int) -> bytes:
        if depth > _DEEPEST or not isinstance(value, list):
            raise ValueError(
                f"{kind}: expected a list of at most {_DEEPEST} levels, got {short_repr(value)}"
            )
        # This is eth-account's error text, which the tests of web3.py expect.
        if array[2] and int(array[2]) != len(value):
            raise ValueError(
                f"Expected {array[2]} items for array type {kind}, got {len(value)} items"
            )
        return keccak(b"".join(self._word(array[1], each, depth + 1) for each in value))


def _atom(kind: str, value: object) -> bytes:
    """Return a value that is neither a struct nor a list as a word of 32 bytes."""
    if kind == "string" and isinstance(value, str):
        return keccak(value.encode())
    if kind == "bool" and isinstance(value, bool):
        return value.to_bytes(32)
    number = _NUMBER.fullmatch(kind)
    if number is not None:
        return _number(kind, value, is_signed=not number[1], bits=int(number[2] or 256))
    try:
        if isinstance(value, str):
            return _bytes(kind, value)
    except ValueError:
        pass
    raise ValueError(f"expected a value of type {kind[:100]}, got {str(value)[:100]!r}")


def _bytes(kind: str, text: str) -> bytes:
    sized = _WORD_BYTES.fullmatch(kind)
    if kind == "bytes":
        return keccak(from_hex(text, (len(text) - 2) // 2))
    if kind == "address":
        return from_hex(text, 20).rjust(32, b"\0")
    if sized is not None and 0 < int(sized[1]) <= 32:
        return from_hex(text, int(sized[1])).ljust(32, b"\0")
    raise ValueError(kind)


def _number(kind: str, value: object, *, is_signed: bool, bits: int) -> bytes:
    try:
        if isinstance(value, str):
            # Accept decimal or hex; 80 characters are enough and take little time to convert.
            value = int(value[:80], 16 if value.lstrip("-")[:2] in ("0x", "0X") else 10)
        elif not isinstance(value, int) or isinstance(value, bool):
            raise ValueError
        if bits % 8 or not 0 < bits <= 256:
            raise ValueError
        value.to_bytes(bits // 8, signed=is_signed)
        return value.to_bytes(32, signed=is_signed)
    except (ValueError, OverflowError):
        raise ValueError(f"expected a value of type {kind}, got {str(value)[:100]!r}") from None
