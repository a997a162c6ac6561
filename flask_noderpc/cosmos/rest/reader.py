"""Conversion of a body's JSON to protobuf, with the error texts of gogoproto's jsonpb."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ...concurrency import in_turns
from ...domain.time import from_go_duration, from_text
from ...protocol.protobuf import Field, integer, message, string, timestamp
from ...wire.comet import gojson
from ..protocol import decimals
from ..protocol.proto import ENUMS, MESSAGES, duration
from .requests import InvalidRequest, go_name, int64, uint64

_MAX_DEPTH = 64
# The SDK's integers have fewer digits.
_INTEGER = re.compile(r"-?[0-9]{1,200}", re.ASCII)
_NUMBERS = {"uint64": uint64, "int64": int64, "uint32": uint64, "int32": int64}
_PACKAGES = {
    "AuthorizationType": "cosmos.staking.v1beta1",
    "BlockIDFlag": "tendermint.types",
    "BondStatus": "cosmos.staking.v1beta1",
    "BroadcastMode": "cosmos.tx.v1beta1",
    "OrderBy": "cosmos.tx.v1beta1",
    "ProposalStatus": "cosmos.gov.v1",
    "SignMode": "cosmos.tx.signing.v1beta1",
    "SignedMsgType": "tendermint.types",
    "VoteOption": "cosmos.gov.v1",
}
# SDK: empty bytes are omitted in requests, except in this one, which the gateway handles.
_BROADCAST = "tx.BroadcastTxRequest"
_INT32 = range(-(1 << 31), 1 << 31)


def read(name: str, given: Any, depth: int = _MAX_DEPTH) -> bytes:
    """Return the encoded message ``name`` for a JSON object; unknown members are ignored.

    Raise :exc:`~flask_noderpc.cosmos.rest.requests.InvalidRequest` for an invalid value.
    """
    if not isinstance(given, dict):
        raise _unfit(given, "map[string]json.RawMessage")
    if not depth:
        raise InvalidRequest("messages are nested too deeply")
    return b"".join(
        _field(field, each, depth - 1)
        for field in MESSAGES[name]
        for each in in_turns(_values(field, given))
        if each != "" or field.type != "bytes" or field.repeated or name == _BROADCAST
    )


def _values(field: Field, given: dict[str, Any]) -> list[Any]:
    value = given.get(field.name, given.get(field.json_name))
    if value is None:
        return []
    if not field.repeated:
        return [value]
    if not isinstance(value, list):
        raise _unfit(value, "[]json.RawMessage")
    return value


def _field(field: Field, value: Any, depth: int) -> bytes:
    if field.type == "Any":
        return message(field.number, _any(value, depth))
    if field.type in MESSAGES:
        return message(field.number, read(field.type, value, depth))
    if field.type in ENUMS:
        return integer(field.number, _enum(field.type, value))
    if field.type in _NUMBERS:
        return integer(field.number, _NUMBERS[field.type](_number(value, field.type)))
    return _OTHERS[field.type](field.number, value)


def _any(value: Any, depth: int) -> bytes:
    url = value.get("@type") if isinstance(value, dict) else None
    if not isinstance(url, str):
        raise InvalidRequest("Any JSON doesn't have '@type'")
    name = url.removeprefix("/")
    if name not in MESSAGES or "." not in name:
        raise InvalidRequest(f"unable to resolve type URL {url}")
    return MESSAGES.encode("Any", type_url=url, value=read(name, value, depth))


def _enum(kind: str, value: Any) -> int:
    package = _PACKAGES[kind]
    if isinstance(value, str):
        numbers = {name: number for number, name in ENUMS[kind].items()}
        if value not in numbers:
            shown = f"{gojson.quoted(value)} for enum {package}.{kind}"
            raise InvalidRequest(f"unknown value {shown}")
        return numbers[value]
    # Accept unknown numbers, as the called method checks them.
    if isinstance(value, bool) or not isinstance(value, int) or value not in _INT32:
        raise _unfit(value, go_name(kind))
    return value


def _number(value: Any, kind: str) -> str:
    # Accept JSON numbers in addition to strings, the usual JSON of 64-bit integers.
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise _unfit(value, kind)
    return str(value)


def _bool(number: int, value: Any) -> bytes:
    if not isinstance(value, bool):
        raise _unfit(value, "bool")
    return integer(number, value)


def _string(number: int, value: Any) -> bytes:
    if not isinstance(value, str):
        raise _unfit(value, "string")
    return string(number, value)


def _bytes(number: int, value: Any) -> bytes:
    if not isinstance(value, str):
        raise _unfit(value, "[]uint8")
    try:
        # Encode the field even if it is empty, as it is present in the JSON.
        return message(number, gojson.base64_bytes(value.encode()))
    except gojson.GoError as error:
        raise InvalidRequest(str(error)) from None


def _timestamp(number: int, value: Any) -> bytes:
    try:
        return message(number, timestamp(from_text(value)))
    except (TypeError, ValueError):
        raise InvalidRequest(f"bad Timestamp: {str(value)[:50]}") from None


def _duration(number: int, value: Any) -> bytes:
    if not isinstance(value, str):
        raise _unfit(value, "string")
    try:
        return message(number, duration(from_go_duration(value)))
    except ValueError as error:
        raise InvalidRequest(f"bad Duration: {error}") from None


def _decimal(number: int, value: Any) -> bytes:
    if not isinstance(value, str):
        raise _unfit(value, "string")
    whole, _, fraction = value.partition(".")
    digits = whole + fraction.ljust(decimals.PLACES, "0")
    if len(fraction) > decimals.PLACES or not _INTEGER.fullmatch(digits):
        raise InvalidRequest(f"failed to set decimal string: {value[:50]}")
    return string(number, str(int(digits)))


def _integer(number: int, value: Any) -> bytes:
    if not isinstance(value, str):
        raise _unfit(value, "string")
    if not _INTEGER.fullmatch(value):
        raise InvalidRequest(f"failed to set integer string: {value[:50]}")
    return string(number, str(int(value)))


_OTHERS: dict[str, Callable[[int, Any], bytes]] = {
    "Dec": _decimal,
    "Duration": _duration,
    "Int": _integer,
    "bool": _bool,
    "string": _string,
    "bytes": _bytes,
    "Timestamp": _timestamp,
}


def _unfit(value: Any, kind: str) -> InvalidRequest:
    return InvalidRequest(f"json: cannot unmarshal {_kind(value)} into Go value of type {kind}")


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"
