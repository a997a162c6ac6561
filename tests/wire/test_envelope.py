"""Tests of envelopes: from bytes to calls, and from replies to bytes."""

from __future__ import annotations

import json
import sys
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flask_noderpc import jsoncodec
from flask_noderpc.errors import InvalidRequest, ParseError, RPCError
from flask_noderpc.ethereum.rpc.dialect import GethEnvelope
from flask_noderpc.wire.comet.envelope import CometEnvelope
from flask_noderpc.wire.envelope import BadCall, Call, Envelope
from tests.helpers.growth import check_linear

ENVELOPE = Envelope()
ids = st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False)


@settings(deadline=None)
@given(request_id=ids, method=st.text(), params=st.lists(st.integers(-(1 << 63), 1 << 63)))
def test_a_call_is_read_as_it_was_written(
    request_id: object, method: str, params: object
) -> None:
    body = json.dumps({"id": request_id, "method": method, "params": params}).encode()

    (call,) = ENVELOPE.parse(body, 1).items

    assert isinstance(call, Call)
    assert (call.method, json.loads(call.params)) == (method, params)
    assert call.id == json.dumps(request_id).encode()


@settings(deadline=None)
@given(request_id=ids, data=st.text(), code=st.integers(-32768, -32000))
def test_a_failure_is_json_with_the_id_as_it_came(
    request_id: object, data: str, code: int
) -> None:
    raw = json.dumps(request_id).encode()

    reply = json.loads(ENVELOPE.failure(raw, RPCError(data, code=code, message="m")))

    expected = {"code": code, "message": "m"} | ({} if not data else {"data": data})
    assert reply == {"jsonrpc": "2.0", "id": request_id, "error": expected}


@pytest.mark.parametrize(("member", "expected"), [(True, {"error": ""}), (False, {})])
def test_a_success_has_an_empty_error_where_the_document_has_one(
    member: bool, expected: dict[str, str]
) -> None:
    reply = json.loads(bytes(ENVELOPE.success(b"1", b'{"a":1}', member)))

    assert reply == {"jsonrpc": "2.0", "id": 1, "result": {"a": 1}, **expected}


def test_a_notification_has_no_id() -> None:
    calls = ENVELOPE.parse(b'[{"method":"a"},{"method":"b","id":null}]', 10)

    assert calls.is_batch
    assert calls.items == (Call("a", b"", None), Call("b", b"", None))


@pytest.mark.parametrize(
    ("element", "request_id"),
    [
        (b"1e999", None),
        (b'"x"', None),
        (b"[]", None),
        (b"{}", None),
        (b'{"id":1}', b"1"),
        (b'{"id":1,"method":5}', b"1"),
        (b'{"id":1,"method":1e999}', b"1"),
        (b'{"id":{},"method":"a"}', None),
    ],
)
def test_a_malformed_item_fails_alone_in_its_batch(
    element: bytes, request_id: bytes | None
) -> None:
    good = b'{"id":2,"method":"a"}'

    first, second = ENVELOPE.parse(b"[" + element + b"," + good + b"]", 10).items

    assert isinstance(first, BadCall)
    assert (first.id, first.error.code) == (request_id, -32600)
    assert second == Call("a", b"", b"2")


def test_a_batch_is_neither_empty_nor_too_large() -> None:
    assert len(ENVELOPE.parse(b"[1,2]", 2).items) == 2
    for body in (b"[]", b"[1,2,3]"):
        with pytest.raises(InvalidRequest):
            ENVELOPE.parse(body, 2)


@settings(deadline=None)
@given(st.binary())
def test_any_bytes_are_calls_or_refused(body: bytes) -> None:
    with suppress(ParseError, InvalidRequest):
        assert ENVELOPE.parse(body, 10).items


def test_an_error_reads_as_message_and_data() -> None:
    assert str(ParseError("at byte 1")) == "Parse error. Invalid JSON: at byte 1"
    assert str(RPCError()) == "Internal error"


_SOME: st.SearchStrategy[object] = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.just([])
)
_MEMBERS = {
    "jsonrpc": st.just("2.0") | _SOME,
    "id": _SOME,
    "method": st.sampled_from(["block", "eth_call", "m" * 70, ""]) | _SOME,
    "params": _SOME,
    "ID": _SOME,
}
_ELEMENT = (
    st.fixed_dictionaries({}, optional=_MEMBERS) | st.fixed_dictionaries(_MEMBERS) | _SOME
)


@pytest.mark.parametrize("envelope", [Envelope(), CometEnvelope(), GethEnvelope()])
@settings(deadline=None)
@given(elements=st.lists(_ELEMENT, max_size=4), most=st.integers(1, 4))
def test_a_batch_that_is_read_at_once_is_read_as_its_calls_are(
    envelope: Envelope, elements: list[object], most: int
) -> None:
    def read(body: bytes) -> tuple[list[str], bool] | str:
        try:
            calls = envelope.parse(body, most)
        except RPCError as error:
            return type(error).__name__
        return [repr(item) for item in calls.items], calls.is_batch

    body = json.dumps(elements).encode()
    # With a blank before it, the body takes the slow path.
    assert read(body) == read(b" " + body)


@pytest.mark.parametrize(
    ("following", "answered"),
    [
        (b" {", True),
        (b"]", True),
        (b"{}", True),
        (b'"\xc3\xa9', True),
        (b"\n[" + b"[" * 20_000, True),
        (b"\x00", True),
        (b"\xff", False),
    ],
)
@pytest.mark.parametrize("call", ['{"method":"}\\"]é","id":1}', '{"method":"m","params":[{}]}'])
def test_geth_reads_the_first_value_of_a_body(
    call: str, following: bytes, answered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decode(document: bytes | str, kind: object) -> object:
        try:
            return original(document, kind)
        except jsoncodec.NotJSON as error:
            # The text of a library's error changes between its versions.
            raise type(error)() from None

    original = jsoncodec.decode
    body = call.encode()
    expected = GethEnvelope().parse(body, 10)
    monkeypatch.setattr(jsoncodec, "decode", decode)
    if answered:
        assert GethEnvelope().parse(b"\n" + body + following, 10) == expected
    else:
        with pytest.raises(ParseError):
            GethEnvelope().parse(body + following, 10)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"]",
        b'{"a":1]',
        b"[1",
        b'"a',
        b"1.",
        b"-",
        b"nul",
        b"[" * 20_000,
        b'{"a" 1} {}',
        # The list is longer than the scan reads.
        b"[" + b"[]" * 200_000 + b"] {}",
    ],
)
def test_geth_refuses_a_body_without_a_complete_first_value(body: bytes) -> None:
    with pytest.raises(ParseError):
        GethEnvelope().parse(body, 10)


@pytest.mark.parametrize("body", [b"1 2", b"1.5.5", b"-2e3x", b'"a""b"', b"truefalse", b"0[1"])
def test_geth_reads_a_first_value_that_is_no_call(body: bytes) -> None:
    (item,) = GethEnvelope().parse(body, 10).items

    assert isinstance(item, BadCall)
    assert isinstance(item.error, InvalidRequest)


def test_geth_reads_a_first_value_before_a_deep_one(monkeypatch: pytest.MonkeyPatch) -> None:
    # Libraries such as py_ecc raise the limit; depth is then checked before decoding.
    monkeypatch.setattr(sys, "getrecursionlimit", lambda: 100_000)
    call = b'{"method":"m","id":1}'

    assert GethEnvelope().parse(call + b"[" * 20_000, 10) == GethEnvelope().parse(call, 10)
    with pytest.raises(ParseError):
        GethEnvelope().parse(b"[" * 20_000 + b"]" * 20_000, 10)


@pytest.mark.parametrize("start", ['["', '"', '{"a":"'])
def test_a_string_that_does_not_end_is_read_once(start: str) -> None:
    def parse(body: bytes) -> None:
        with pytest.raises(ParseError):
            GethEnvelope().parse(body, 10)

    check_linear(parse, lambda size: start.encode() + b'\\"' * size, 20_000)
