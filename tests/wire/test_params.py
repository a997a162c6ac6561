"""Tests that parameter kinds accept what a caller may write, and nothing else."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from marshmallow import ValidationError

from flask_noderpc.wire.params import (
    Bytes,
    Flag,
    Hash,
    Int64,
    ParamField,
    QueryData,
    Text,
    UInt64,
)

int64s = st.integers(-(1 << 63), (1 << 63) - 1)
hashes = st.binary(min_size=32, max_size=32)


@settings(deadline=None)
@given(int64s)
def test_an_integer_is_read_from_every_form(number: int) -> None:
    kind = Int64()

    assert kind.from_uri(str(number)) == number
    assert kind.from_uri(f'"{number}"') == number
    assert kind.from_json(number) == number
    assert kind.from_json(str(number)) == number


@settings(deadline=None)
@given(st.integers(min_value=1 << 63) | st.integers(max_value=-(1 << 63) - 1))
def test_an_integer_of_more_than_64_bits_is_refused(number: int) -> None:
    for read in (Int64().from_uri, Int64().from_json):
        with pytest.raises(ValueError, match="64-bit integer"):
            read(str(number))


@settings(deadline=None)
@given(st.integers(max_value=-1))
def test_a_whole_number_is_not_negative(number: int) -> None:
    with pytest.raises(ValueError, match="whole number"):
        UInt64().from_json(number)


@settings(deadline=None)
@given(st.text())
def test_a_text_is_read_in_quotes_and_from_the_hex_of_its_utf_8(text: str) -> None:
    kind = Text()

    assert kind.from_json(text) == text
    assert kind.from_uri(json.dumps(text)) == text
    assert kind.from_uri(json.dumps(text, ensure_ascii=False)) == text
    assert kind.from_uri("0x" + text.encode().hex()) == text


@settings(deadline=None)
@given(st.binary())
def test_bytes_are_read_from_hex_and_from_base64(value: bytes) -> None:
    kind = Bytes()

    assert kind.from_uri("0x" + value.hex()) == value
    assert kind.from_uri("0X" + value.hex().upper()) == value
    assert kind.from_json(b64encode(value).decode()) == value


@settings(deadline=None)
@given(st.text())
def test_quoted_bytes_are_the_text_s_utf_8(text: str) -> None:
    assert Bytes().from_uri(json.dumps(text)) == text.encode()


@settings(deadline=None)
@given(hashes)
def test_a_hash_is_read_from_every_form(value: bytes) -> None:
    kind, digits, encoded = Hash(), value.hex(), b64encode(value).decode()

    for form in ("0x" + digits, digits, digits.upper(), encoded):
        assert kind.from_uri(form) == value
        assert kind.from_json(form) == value
    assert kind.from_uri(f'"{digits}"') == value


def test_base64_that_begins_like_hex_is_base64() -> None:
    value = b"\xd3\x10" + bytes(30)
    encoded = b64encode(value).decode()
    assert encoded.startswith("0x")

    assert Hash().from_uri(encoded) == Hash().from_json(encoded) == value


@settings(deadline=None)
@given(st.binary())
def test_the_data_of_a_query_is_hex_in_json(value: bytes) -> None:
    assert QueryData().from_json(value.hex()) == value
    assert QueryData().from_json("0x" + value.hex()) == value
    assert QueryData().from_uri("0x" + value.hex()) == value


@pytest.mark.parametrize("text", ["name", "abc", "naïve", "0xzz", "0x0"])
def test_the_data_of_a_query_is_text_where_it_is_no_hex(text: str) -> None:
    assert QueryData().from_json(text) == text.encode()


@pytest.mark.parametrize(("text", "value"), [("true", True), ("false", False)])
def test_a_flag_is_a_word(text: str, value: bool) -> None:
    assert Flag().from_uri(text) is value
    assert Flag().from_uri(f'"{text}"') is value
    assert Flag().from_json(value) is value
    assert Flag().from_json(text) is value


@pytest.mark.parametrize(
    "text", ["/a/b/c", "456", "name=satoshi", "YT1i", "'a'", "[1,2]", "true", 'a"b', "null"]
)
def test_an_unquoted_string_is_taken_literally(text: str) -> None:
    assert Text().from_uri(text) == Text().from_uri(json.dumps(text)) == text
    assert Bytes().from_uri(text) == QueryData().from_uri(text) == text.encode()


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Int64(), "+5"),
        (Int64(), "05"),
        (Int64(), " 5"),
        (Int64(), "5 "),
        (Int64(), "5\n"),
        (Int64(), "0x5"),
        (Int64(), "1e3"),
        (Int64(), "1_000"),
        (Int64(), "٣"),
        (Int64(), '"'),
        (Int64(), '""'),
        (Int64(), '"5'),
        (Int64(), '""5""'),
        (Int64(), "9" * 5000),
        (Flag(), "True"),
        (Flag(), "1"),
        (Flag(), '"True"'),
        (Flag(), '"true'),
        (Text(), '"abc'),
        (Text(), '"a" "b"'),
        (Text(), '"\\ud800"'),
        (Text(), "0x0"),
        (Bytes(), '"abc'),
        (Bytes(), "0xzz"),
        (Bytes(), "0x0"),
        (Bytes(), "0xé0"),
        (Hash(), "abc"),
        (Hash(), "A" * 44),
        (Hash(), "é" * 44),
        (Hash(), "0xzz"),
        (Hash(), '"'),
    ],
    ids=lambda value: repr(value)[:25] if isinstance(value, str) else type(value).__name__,
)
def test_a_uri_value_of_another_kind_is_refused(kind: ParamField, text: str) -> None:
    with pytest.raises(ValueError, match=r"^expected "):
        kind.from_uri(text)


@pytest.mark.parametrize("kind", [Int64(), Flag(), Text(), Bytes(), Hash(), QueryData()])
@pytest.mark.parametrize("value", [1.5, [], {}, [1], None])
def test_a_json_value_of_another_kind_is_refused(kind: ParamField, value: Any) -> None:
    with pytest.raises(ValueError, match=r"^expected "):
        kind.from_json(value)


def test_a_kind_is_a_marshmallow_field() -> None:
    assert Int64().deserialize("5") == 5
    with pytest.raises(ValidationError, match="64-bit integer"):
        Int64().deserialize("x")


def test_a_kind_without_readers_is_unfinished() -> None:
    for read in (ParamField().from_json, ParamField().from_uri):
        with pytest.raises(NotImplementedError):
            read("x")
