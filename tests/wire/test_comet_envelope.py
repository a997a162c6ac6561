"""Tests of CometBFT's envelope: which bodies are calls, and its errors for others."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flask_noderpc.errors import (
    BatchTooLarge,
    BodyTooLarge,
    InvalidParams,
    ParseError,
    RPCError,
)
from flask_noderpc.wire.comet.envelope import CometEnvelope
from flask_noderpc.wire.envelope import Call, Envelope

ENVELOPE = CometEnvelope()
STRUCT = (
    'struct { JSONRPC string "json:\\"jsonrpc\\""; ID interface {} "json:\\"id,omitempty\\"";'
    ' Method string "json:\\"method\\""; Params json.RawMessage "json:\\"params\\"" }'
)
NO_CALL = Call("", b"", None)


# Nodes of CometBFT 0.38.25 gave these responses.
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{", "unexpected end of JSON input"),
        (b" ", "unexpected end of JSON input"),
        (b"5", f"json: cannot unmarshal number into Go value of type {STRUCT}"),
        (b'"x"', f"json: cannot unmarshal string into Go value of type {STRUCT}"),
        (b"[1]", f"json: cannot unmarshal array into Go value of type {STRUCT}"),
        (b'[{"id":1},5]', f"json: cannot unmarshal array into Go value of type {STRUCT}"),
        (b"[1", "unexpected end of JSON input"),
        (b'{"id":1}x', "invalid character 'x' after top-level value"),
        (b'{"id":true}', "json-rpc ID (true) is of unknown type (bool)"),
        (
            b'{"id":1,"method":5}',
            "json: cannot unmarshal number into Go struct field .method of type string",
        ),
        (
            b'{"jsonrpc":2.0}',
            "json: cannot unmarshal number into Go struct field .jsonrpc of type string",
        ),
    ],
)
def test_malformed_calls_get_gos_errors(body: bytes, reason: str) -> None:
    with pytest.raises(ParseError) as refused:
        ENVELOPE.parse(body, 10)

    assert refused.value.text == f"error unmarshaling request: {reason}"
    assert ENVELOPE.status_of(refused.value) == 500


def test_a_megabyte_that_is_no_json_is_refused_at_once() -> None:
    with pytest.raises(ParseError, match="truncated"):
        ENVELOPE.parse(b'{"id":1,"params":[' + b"1," * 500_000, 10)


@pytest.mark.parametrize(
    ("body", "calls"),
    [
        (b"null", [NO_CALL]),
        (b"{}", [NO_CALL]),
        (b'{"method":"health"}', [NO_CALL]),
        (b'{"id":null,"method":"health"}', [NO_CALL]),
        (b"[]", []),
        (b"[null,{}]", [NO_CALL, NO_CALL]),
        (b'{"id":"","method":null,"params":[1]}', [Call("", b"[1]", b'""')]),
        (b'[{"id":1.7,"method":"a"}]', [Call("a", b"", b"1.7")]),
        (b'{"jsonrpc":"1.0","id":0,"method":"a"}', [Call("a", b"", b"0")]),
    ],
)
def test_calls_and_notifications_are_read(body: bytes, calls: list[Call]) -> None:
    assert list(ENVELOPE.parse(body, 10).items) == calls


def test_a_batch_over_the_limit_is_answered_with_200() -> None:
    with pytest.raises(BatchTooLarge) as refused:
        ENVELOPE.parse(b'[{"id":1},{"id":2}]', 1)

    assert ENVELOPE.status_of(refused.value) == 200
    assert json.loads(ENVELOPE.failure(None, refused.value)) == {
        "jsonrpc": "2.0",
        "error": {
            "code": -32600,
            "message": "Invalid Request",
            "data": "batch request exceeds maximum (1) allowed number of requests",
        },
    }


def test_only_the_document_dialect_adds_hints() -> None:
    error = BodyTooLarge(5)

    said = [json.loads(e.failure(b"1", error))["error"]["data"] for e in (Envelope(), ENVELOPE)]

    assert said[1] == "error reading request body: http: request body too large"
    assert said[0].startswith(said[1])
    assert "NODERPC_MAX_BODY_BYTES" in said[0]


def test_parameters_fail_inside_over_a_websocket() -> None:
    def code(envelope: Envelope, error: RPCError) -> int:
        return envelope.over_websocket(error).code

    assert code(ENVELOPE, InvalidParams("x")) == -32603
    assert code(Envelope(), InvalidParams("x")) == -32602
    assert code(ENVELOPE, ParseError("x")) == -32700


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@settings(deadline=None)
@given(st.fixed_dictionaries({}, optional=dict.fromkeys(("id", "method", "jsonrpc"), values)))
def test_any_object_is_a_call_a_notification_or_refused(message: dict[str, Any]) -> None:
    body = json.dumps(message).encode()
    with suppress(ParseError):
        (call,) = ENVELOPE.parse(body, 10).items

        assert isinstance(call, Call)
        if call.id is not None:
            assert json.loads(call.id) == message["id"]
            assert call.method == (message.get("method") or "")


@settings(deadline=None)
@given(st.binary())
def test_any_bytes_are_calls_or_refused(body: bytes) -> None:
    with suppress(ParseError, BatchTooLarge):
        ENVELOPE.parse(body, 10)
    with suppress(ParseError):
        ENVELOPE.parse_one(body)
