"""Transactions in binary amino and in its JSON, the encoding before protobuf.

go-amino: binary-encode.go and json-encode.go; SDK: x/auth/migrations/legacytx.

Fields are numbered by their order and encoded like protobuf, except that a message in an
``Any`` has a prefix of its type instead of a type URL, that a duration is a number, and that
empty messages are left out.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any

from ... import jsoncodec
from ...domain.time import SECOND, from_text, to_text
from ...protocol.protobuf import (
    Field,
    Malformed,
    Message,
    blob,
    delimited,
    int64,
    integer,
    message,
    string,
    timestamp,
)
from ...wire.comet import gojson
from . import decimals
from .coins import parse_integer
from .fields import ANY, AnyValue
from .keys import Ed25519Key, MultisigKey, Secp256k1Key
from .proto import ENUMS, MESSAGES, declare

declare("""
message StdFee {
  repeated Coin amount = 1; uint64 gas = 2; string payer = 3; string granter = 4;
}
message StdSignature { Any pub_key = 1; bytes signature = 2; }
message StdTx {
  repeated Any msg = 1; StdFee! fee = 2; repeated StdSignature signatures = 3; string memo = 4;
  uint64 timeout_height = 5;
}
message AminoMultisig { uint64 threshold = 1; repeated Any pubkeys = 2; }
""")

_TX = "cosmos-sdk/StdTx"
_KEYS = {
    Secp256k1Key.type_url: "tendermint/PubKeySecp256k1",
    Ed25519Key.type_url: "tendermint/PubKeyEd25519",
    MultisigKey.type_url: "tendermint/PubKeyMultisigThreshold",
}
_MULTISIG = "AminoMultisig"
_DEPTH, _UINT64 = 32, (1 << 64) - 1
_INTEGER = re.compile(r"-?[0-9]{1,100}", re.ASCII)
_DECIMAL = re.compile(r"(-?[0-9]{1,80})(?:\.([0-9]{1,18}))?", re.ASCII)
# Members that amino's JSON has even if they are empty, by message.
_ALWAYS = {
    "StdTx": ("msg", "signatures", "memo", "timeout_height"),
    "StdFee": ("gas",),
    "StdSignature": ("pub_key", "signature"),
    _MULTISIG: ("threshold", "pubkeys"),
}

# SDK: names in JSON that differ from those in protobuf.
_JSON_NAMES = {("cosmos.slashing.v1beta1.MsgUnjail", "validator_addr"): "address"}


def prefix_of(name: str) -> bytes:
    """Return the prefix of a type in binary amino: four bytes of its name's hash."""
    digest = sha256(name.encode()).digest().lstrip(b"\0")
    return digest[3:].lstrip(b"\0")[:4]


_DENOM, _AMOUNT = MESSAGES["Coin"]
# The amount of a coin is text in protobuf.
_COIN = _DENOM, replace(_AMOUNT, type="Int")


def _fields(name: str) -> tuple[Field, ...]:
    return _COIN if name == "Coin" else MESSAGES[name]


class InvalidAmino(ValueError):
    """Error for JSON or bytes that are not a transaction."""


class Amino:
    """Conversion of transactions; ``names`` are the names of types by type URL."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = {**names, **_KEYS}
        self._urls = {name: url for url, name in self._names.items()}
        self._by_prefix = {prefix_of(name): url for url, name in self._names.items()}

    def binary(self, document: str) -> bytes:
        """Return the binary form of a transaction's JSON; raise :exc:`InvalidAmino`."""
        try:
            gojson.check(document.encode())
            given = jsoncodec.decode(document.encode())
        except (gojson.GoError, jsoncodec.NotJSON) as error:
            text = f"cannot parse disfix JSON wrapper: {error}"
            raise InvalidAmino(text) from None
        try:
            name, value = _wrapped(given)
            if name != _TX:
                text = f"UnmarshalJSON wants to decode a {_TX} but found a {name}"
                raise InvalidAmino(text)
            tx = self._from_json("StdTx", value, _DEPTH)
        except gojson.GoError as error:
            raise InvalidAmino(str(error)) from None
        return prefix_of(_TX) + self._converted("StdTx", tx, _DEPTH, is_amino=False)

    def json(self, data: bytes) -> str:
        """Return the JSON of a transaction's binary form; raise :exc:`InvalidAmino`."""
        prefix = prefix_of(_TX)
        if not data.startswith(prefix):
            shown = data[:4].hex().upper() + ("..." if len(data) > 4 else "")
            raise InvalidAmino(
                f"UnmarshalBinaryBare expected to read prefix bytes {prefix.hex().upper()}"
                f" (since it is registered concrete) but got {shown}"
            )
        try:
            tx = self._converted("StdTx", data[len(prefix) :], _DEPTH, is_amino=True)
            value = self._to_json("StdTx", tx)
        except (Malformed, ValueError, OverflowError) as error:
            text = f"unmarshal to legacytx.StdTx failed: {error}"
            raise InvalidAmino(text) from None
        return gojson.encode({"type": _TX, "value": value}).decode()

    def _converted(self, name: str, data: bytes, depth: int, *, is_amino: bool) -> bytes:
        """Return a message in protobuf if it is in amino, otherwise in amino."""
        if not depth:
            raise Malformed("messages are nested too deeply")
        given, found = Message(data), b""
        for at, field in enumerate(_fields(name), 1):
            source, target = (at, field.number) if is_amino else (field.number, at)
            if field.type == "Duration":
                found += _duration(given, source, target, is_amino=is_amino)
            elif field.type not in _LENGTHS and field.type not in MESSAGES:
                found += integer(target, given.integer(source))
            else:
                parts = given.blobs(source)
                for part in parts if field.repeated else parts[-1:]:
                    body = self._part(field, part, depth - 1, is_amino=is_amino)
                    # Amino leaves out empty messages that Go does not point to.
                    keeps = field.repeated or field.mark != "!" or is_amino
                    found += message(target, body) if keeps else blob(target, body)
        return found

    def _part(self, field: Field, data: bytes, depth: int, *, is_amino: bool) -> bytes:
        if field.type == "Any":
            convert = self._from_prefixed if is_amino else self._prefixed
            return convert(data, depth)
        if field.type in MESSAGES:
            return self._converted(field.type, data, depth, is_amino=is_amino)
        return data

    def _prefixed(self, data: bytes, depth: int) -> bytes:
        given: AnyValue = ANY.decode(data)
        url, prefix = given.type_url, prefix_of(self._names[given.type_url])
        if url == MultisigKey.type_url:
            return prefix + self._converted(_MULTISIG, given.value, depth, is_amino=False)
        if url in _KEYS:
            return prefix + delimited(Message(given.value).blob(1))
        return prefix + self._converted(url[1:], given.value, depth, is_amino=False)

    def _from_prefixed(self, data: bytes, depth: int) -> bytes:
        url = self._by_prefix.get(data[:4])
        if url is None:
            raise Malformed(f"unrecognized prefix bytes {data[:4].hex().upper()}")
        name = _MULTISIG if url == MultisigKey.type_url else url[1:]
        if url in _KEYS and name != _MULTISIG:
            # The key is a byte string with its length, like the value of a field.
            body = b"\n" + data[4:]
        else:
            body = self._converted(name, data[4:], depth, is_amino=True)
        return string(1, url) + blob(2, body)

    def _to_json(self, name: str, data: bytes) -> dict[str, Any]:
        given = Message(data)
        found: dict[str, Any] = {}
        for field in _fields(name):
            values = self._json_values(field, given)
            is_always = field.name in _ALWAYS.get(name, ())
            if field.repeated:
                is_always = is_always or (field.type in MESSAGES and field.type != "Any")
                empty: Any = [] if field.type == "Coin" else None
                if values or is_always:
                    found[field.name] = values or empty
            elif is_always or any(values):
                absent = "0" if field.type in _QUOTED else None
                found[field.name] = values[-1] if values else absent
            elif values and field.type in MESSAGES:
                found[field.name] = values[-1]
        return {_JSON_NAMES.get((name, own), own): value for own, value in found.items()}

    def _json_values(self, field: Field, given: Message) -> list[Any]:
        if field.type == "string":
            found: list[Any] = given.texts(field.number)
            return found if field.repeated else found or [""]
        if field.type == "Timestamp":
            # SDK: decoding sets missing times to 1970.
            part = Message(given.blob(field.number))
            return [to_text(int64(part.integer(1)) * SECOND + int64(part.integer(2)))]
        if field.type == "Duration":
            part = Message(given.blob(field.number))
            return [str(int64(part.integer(1)) * SECOND + int64(part.integer(2)))]
        if field.type in _LENGTHS or field.type in MESSAGES:
            parts = given.blobs(field.number)
            if not parts and field.mark == "!" and field.type in MESSAGES:
                parts = [b""]
            return [self._json_value(field.type, each) for each in parts]
        number = given.integer(field.number)
        return [_number(field.type, number)] if number else []

    def _json_value(self, kind: str, data: bytes) -> Any:
        if kind == "bytes":
            return b64encode(data).decode()
        if kind in ("Int", "Dec"):
            found = parse_integer(data.decode() or "0")
            return decimals.show(found) if kind == "Dec" else str(found)
        if kind != "Any":
            return self._to_json(kind, data)
        given: AnyValue = ANY.decode(data)
        value: Any
        if given.type_url == MultisigKey.type_url:
            value = self._to_json(_MULTISIG, given.value)
        elif given.type_url in _KEYS:
            value = b64encode(Message(given.value).blob(1)).decode()
        else:
            value = self._to_json(given.type_url[1:], given.value)
        return {"type": self._names[given.type_url], "value": value}

    def _from_json(self, name: str, given: Any, depth: int) -> bytes:
        if not depth:
            raise InvalidAmino("messages are nested too deeply")
        members = _typed(given, dict, "map[string]json.RawMessage") or {}
        found = b""
        for field in _fields(name):
            value = members.get(_JSON_NAMES.get((name, field.name), field.name))
            if value is None:
                continue
            listed: Iterable[Any] = (value,)
            if field.repeated:
                listed = _typed(value, list, "[]json.RawMessage")
            found += b"".join(self._field(field, each, depth - 1) for each in listed)
        return found

    def _field(self, field: Field, value: Any, depth: int) -> bytes:
        if field.type == "Any":
            return message(field.number, self._any(value, depth))
        if field.type in MESSAGES:
            return message(field.number, self._from_json(field.type, value, depth))
        return _scalar(field, value)

    def _any(self, given: Any, depth: int) -> bytes:
        name, value = _wrapped(given)
        url = self._urls.get(name)
        if url is None:
            raise InvalidAmino(f"unrecognized concrete type name {name}")
        if url == MultisigKey.type_url:
            body = self._from_json(_MULTISIG, value, depth)
        elif url in _KEYS:
            body = blob(1, gojson.base64_bytes(_text(value).encode()))
        else:
            body = self._from_json(url[1:], value, depth)
        return string(1, url) + blob(2, body)


# Types whose values have a length before them, in addition to messages.
_LENGTHS = ("string", "bytes", "Int", "Dec", "Timestamp", "Any")
_QUOTED = ("int64", "uint64")


def _number(kind: str, value: int) -> Any:
    if kind == "bool":
        return bool(value)
    if kind in _QUOTED:
        return str(int64(value) if kind == "int64" else value)
    return value


def _duration(given: Message, source: int, target: int, *, is_amino: bool) -> bytes:
    if is_amino:
        seconds, nanos = divmod(int64(given.integer(source)), SECOND)
        return message(target, integer(1, seconds & _UINT64) + integer(2, nanos))
    part = Message(given.blob(source))
    total = int64(part.integer(1)) * SECOND + int64(part.integer(2))
    return integer(target, total & _UINT64)


def _wrapped(given: Any) -> tuple[str, Any]:
    """Return name and value of a type in JSON."""
    members = _typed(given, dict, "amino.disfixWrapper") or {}
    if not members.get("type"):
        raise InvalidAmino("JSON encoding of interfaces require non-empty type field.")
    if "value" not in members:
        raise InvalidAmino("interface JSON wrapper should have non-empty value field")
    return _text(members["type"]), members["value"]


def _typed(given: Any, kind: type, go_type: str) -> Any:
    if given is not None and not isinstance(given, kind):
        raise gojson.mismatch(jsoncodec.encode(given), go_type)
    return given


def _text(given: Any) -> str:
    return _typed(given, str, "string") or ""


def _scalar(field: Field, value: Any) -> bytes:
    """Return a field of another type than a message, encoded in protobuf."""
    number, kind = field.number, field.type
    if kind == "string":
        # Empty strings are elements of a repeated field, too.
        return (message if field.repeated else blob)(number, _text(value).encode())
    if kind == "bytes":
        return blob(number, gojson.base64_bytes(_text(value).encode()))
    if kind == "bool":
        return integer(number, bool(_typed(value, bool, "bool")))
    if kind in ("Timestamp", "Duration"):
        return message(number, timestamp(_nanoseconds(kind, value)))
    if kind in ("Int", "Dec"):
        return string(number, _big(kind, _text(value)))
    if kind in ENUMS or kind not in _QUOTED:
        found = _typed(value, int, kind)
        return integer(number, found & _UINT64)
    return integer(number, _quoted(value) & _UINT64)


def _quoted(value: Any) -> int:
    if not isinstance(value, str):
        shown = jsoncodec.encode(value).decode()
        text = "Amino:JSON int/int64/uint/uint64 expects quoted values for javascript numeric"
        raise InvalidAmino(f"invalid character -- {text} support, got: {shown}.")
    if not _INTEGER.fullmatch(value):
        gojson.check(value.encode())
        raise InvalidAmino(f"expected a whole number, got {value[:50]}")
    found = int(value)
    if not -(1 << 63) <= found <= _UINT64:
        raise InvalidAmino(f"expected a number of 64 bits, got {value}")
    return found


def _nanoseconds(kind: str, value: Any) -> int:
    if kind == "Duration":
        return _quoted(value)
    try:
        return from_text(_text(value))
    except ValueError as error:
        raise InvalidAmino(str(error)) from None


def _big(kind: str, text: str) -> str:
    if kind == "Int" and _INTEGER.fullmatch(text):
        return str(int(text))
    found = _DECIMAL.fullmatch(text) if kind == "Dec" else None
    if found is None:
        raise InvalidAmino(f'math/big: cannot unmarshal "{text[:50]}" into a *big.Int')
    return str(int(found[1] + (found[2] or "").ljust(decimals.PLACES, "0")))
