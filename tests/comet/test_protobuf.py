"""Tests of the protobuf encoding rules that hashes depend on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flask_noderpc.protocol import protobuf
from flask_noderpc.protocol.protobuf import Messages


def read_varint(encoded: bytes) -> int:
    return sum((byte & 0x7F) << (7 * at) for at, byte in enumerate(encoded))


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"),
        (1, "01"),
        (127, "7f"),
        (128, "8001"),
        (300, "ac02"),
        (16384, "808001"),
        (2**63 - 1, "ffffffffffffffff7f"),
        (2**64 - 1, "ffffffffffffffffff01"),
        (-1, "ffffffffffffffffff01"),
        (-(2**63), "80808080808080808001"),
    ],
)
def test_a_varint_is_base_128_from_the_low_end(value: int, encoded: str) -> None:
    assert protobuf.varint(value).hex() == encoded


@given(st.integers(-(2**63), -1))
def test_a_negative_varint_takes_ten_bytes(value: int) -> None:
    encoded = protobuf.varint(value)

    assert len(encoded) == 10
    assert read_varint(encoded) - 2**64 == value


@given(st.integers(0, 2**64 - 1))
def test_a_varint_ends_at_the_first_byte_without_the_high_bit(value: int) -> None:
    encoded = protobuf.varint(value)

    assert [byte >> 7 for byte in encoded] == [1] * (len(encoded) - 1) + [0]
    assert read_varint(encoded) == value


def test_an_integer_of_zero_is_left_out() -> None:
    assert protobuf.integer(1, 0) == b""


def test_an_integer_carries_its_field_number() -> None:
    assert protobuf.integer(3, 150).hex() == "189601"


def test_a_field_number_above_fifteen_takes_two_bytes() -> None:
    assert protobuf.integer(16, 1).hex() == "800101"


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, ""),
        (43, "112b00000000000000"),
        (-1, "11ffffffffffffffff"),
        (2**63 - 1, "11ffffffffffffff7f"),
    ],
)
def test_a_fixed_integer_is_eight_little_endian_bytes(value: int, encoded: str) -> None:
    assert protobuf.sfixed64(2, value).hex() == encoded


def test_an_empty_message_is_written() -> None:
    assert protobuf.message(2, b"").hex() == "1200"


def test_a_message_of_128_bytes_has_a_length_of_two() -> None:
    assert protobuf.message(1, bytes(128)).hex() == "0a8001" + "00" * 128


def test_empty_bytes_and_texts_are_left_out() -> None:
    assert protobuf.blob(1, b"") == b""
    assert protobuf.string(1, "") == b""


def test_a_text_is_written_as_utf_8() -> None:
    assert protobuf.string(1, "é").hex() == "0a02c3a9"


@pytest.mark.parametrize(
    ("time_ns", "encoded"),
    [
        (0, ""),
        (1, "1001"),
        (1_000_000_000, "0801"),
        (1_500_000_000, "08011080cab5ee01"),
        # Nanoseconds count forward, even before 1970.
        (-1, "08ffffffffffffffffff0110ff93ebdc03"),
        (-1_000_000_000, "08ffffffffffffffffff01"),
    ],
)
def test_a_time_is_whole_seconds_and_forward_nanoseconds(time_ns: int, encoded: str) -> None:
    assert protobuf.timestamp(time_ns).hex() == encoded


def test_a_delimited_body_stands_behind_its_length() -> None:
    assert protobuf.delimited(bytes(200)) == b"\xc8\x01" + bytes(200)


DECLARED = Messages(
    """
message Leaf { string name = 1; uint64 number = 2; }
message Tree {
  Leaf leaf = 1; repeated Leaf leaves(others) = 2; Tree inner = 3; repeated uint64 ids = 4;
  Timestamp time = 16; repeated string texts = 17; bool flag = 18; bytes data(raw) = 19;
}
message Empty { }
"""
)


@pytest.mark.parametrize(
    ("values", "encoded"),
    [
        ({}, ""),
        ({"leaf": {}}, "0a00"),
        ({"leaf": {"name": "ab", "number": 300}}, "0a070a02616210ac02"),
        ({"leaf": b"\x10\x01"}, "0a021001"),
        ({"others": [{}, SimpleNamespace(name=b"a", number=0)]}, "120012030a0161"),
        ({"inner": {"inner": {"flag": True}}}, "1a051a03900101"),
        ({"ids": [1, 300, 0]}, "220401ac0200"),
        ({"ids": []}, ""),
        ({"time": 0}, "820100"),
        ({"time": 2_000_000_003}, "82010408021003"),
        ({"texts": ["a", ""]}, "8a0101618a0100"),
        ({"flag": False}, ""),
        ({"raw": b"x" * 200}, "9a01c801" + "78" * 200),
    ],
)
def test_a_declared_message_is_encoded_from_its_values(
    values: dict[str, Any], encoded: str
) -> None:
    assert DECLARED.encode("Tree", **values).hex() == encoded


def test_a_message_without_fields_has_no_bytes() -> None:
    assert DECLARED.encode("Empty") == b""


def test_a_declaration_replaces_that_of_the_same_name() -> None:
    other = Messages("message Leaf { bytes name = 9; }", DECLARED)
    assert other.encode("Tree", leaf={"name": b"a"}).hex() == "0a034a0161"
    assert DECLARED.encode("Tree", leaf={"name": "a"}).hex() == "0a030a0161"


def test_an_encoder_given_for_a_type_is_used() -> None:
    known = Messages("message Box { Secret secret = 1; }", encoders={"Secret": bytes.fromhex})
    assert known.encode("Box", secret="0102").hex() == "0a020102"


def test_a_field_is_read_from_the_attribute_that_it_names() -> None:
    known = Messages("message Box { bytes inner(content.value) = 1; }")
    value = SimpleNamespace(content=SimpleNamespace(value=b"a"))
    assert known.encoder("Box")(value).hex() == "0a0161"
