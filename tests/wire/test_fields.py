"""Tests that fields decode what they encode, and nothing else."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from marshmallow import ValidationError
from marshmallow.fields import Integer

from flask_noderpc.domain.time import SECOND
from flask_noderpc.errors import ConfigurationError
from flask_noderpc.wire.fields import (
    Base64,
    Base64OrNull,
    Cursor,
    Flag,
    Hex,
    IntString,
    LowerHex,
    Number,
    RawJSON,
    Text,
    Timestamp,
    Utf8,
    WireField,
)
from flask_noderpc.wire.schema import ListOf, Nested, WireSchema, compiled

# Times from 0001-01-01 to 9999-12-31, in nanoseconds.
times = st.integers(-62_135_596_800 * SECOND, 253_402_300_799 * SECOND)

FIELDS: list[tuple[WireField, st.SearchStrategy[Any]]] = [
    (IntString(), st.integers(-(1 << 63), (1 << 64) - 1)),
    (Number(), st.integers(-(1 << 63), (1 << 63) - 1)),
    (Text(), st.text()),
    (Utf8(), st.text().map(str.encode)),
    (Flag(), st.booleans()),
    (Hex(), st.binary()),
    (LowerHex(), st.binary()),
    (Base64(), st.binary()),
    (Base64OrNull(), st.binary()),
    (Timestamp(), times),
    (ListOf(Hex()), st.lists(st.binary()).map(tuple)),
    (ListOf(Hex(), null_when_empty=True), st.lists(st.binary()).map(tuple)),
]


@pytest.mark.parametrize(("field", "values"), FIELDS, ids=lambda row: type(row).__name__)
@settings(deadline=None)
@given(data=st.data())
def test_encoded_fields_are_decoded_back(
    field: WireField, values: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    value = data.draw(values)

    encoded = json.loads(msgspec.json.encode(field.encode(value)))

    assert field.deserialize(encoded) == value


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (IntString(), 5),
        (IntString(), "+5"),
        (IntString(), "5\n"),
        (IntString(), "9" * 21),
        (IntString(), "٣"),
        (Number(), "5"),
        (Number(), True),
        (Number(), 1.5),
        (Text(), 5),
        (Utf8(), 5),
        (Flag(), 0),
        (Hex(), "zz"),
        (Hex(), "ABC"),
        (Hex(), 5),
        (Base64(), "YQ"),
        (Base64(), "_-8="),
        (Base64(), 5),
        (Timestamp(), "yesterday"),
        (Timestamp(), 5),
        (ListOf(Hex()), "AB"),
        (ListOf(Hex()), 5),
        (ListOf(Hex()), ["zz"]),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, WireField) else repr(value),
)
def test_a_value_of_another_kind_is_not_decoded(field: WireField, value: Any) -> None:
    with pytest.raises(ValidationError):
        field.deserialize(value)


@pytest.mark.parametrize(
    "field", [IntString(), Number(), Flag(), Timestamp(), Cursor(), ListOf(Hex())]
)
def test_an_error_shows_little_of_a_long_value(field: WireField) -> None:
    with pytest.raises(ValidationError) as caught:
        field.deserialize("x" * 100_000)

    assert len(str(caught.value)) < 200


def test_nil_lists_are_null_where_the_node_sends_null() -> None:
    assert Base64OrNull().encode(b"") is None
    assert ListOf(Hex(), null_when_empty=True).encode(()) is None
    assert ListOf(Hex()).encode(()) == []


@pytest.mark.parametrize(("raw", "shown"), [(b'{"a": 1}', {"a": 1}), (b"", {})])
def test_raw_json_passes_through(raw: bytes, shown: object) -> None:
    encoded = msgspec.json.encode(RawJSON().encode(raw))

    assert encoded == (raw or b"{}")
    assert json.loads(RawJSON().decode(shown)) == shown


def test_a_field_without_an_encoding_is_unfinished() -> None:
    for work in (WireField().encode, WireField().decode):
        with pytest.raises(NotImplementedError):
            work(b"")


class Inner(WireSchema):
    number = Number()


class Outer(WireSchema):
    one = Nested(Inner, nullable=True)
    some = ListOf(Nested(Inner, nullable=True), nullable=True)
    none = ListOf(Inner, null_when_empty=True)
    named = Text(data_key="Named", get=lambda value: value.name.upper())
    maybe = ListOf(Inner, get=lambda value: value.none, omit_empty=True)
    called = Text(get=lambda value: value.name, omit_empty=True)


class Thing:
    def __init__(self, one: Any, some: Any, none: Any = (), name: str = "x") -> None:
        self.one, self.some, self.none, self.name = one, some, none, name


class Piece:
    number = 1


@pytest.mark.parametrize(
    "thing",
    [
        Thing(None, None),
        Thing(Piece(), []),
        Thing(Piece(), [Piece(), None], [Piece()]),
        Thing(None, None, name=""),
    ],
)
def test_the_compiled_dump_is_the_schema_s_dump(thing: Thing) -> None:
    assert compiled(Outer)(thing) == Outer().dump(thing)


class Sparse(WireSchema):
    number = Number(omit_empty=True)
    shape = Nested(Inner, omit_empty=True)
    always = Number()


@pytest.mark.parametrize(
    ("number", "shape", "shown"),
    [
        (0, None, {"always": 5}),
        (1, Piece(), {"number": 1, "shape": {"number": 1}, "always": 5}),
    ],
)
def test_empty_fields_are_omitted_where_the_node_omits_them(
    number: int, shape: Piece | None, shown: dict[str, Any]
) -> None:
    value = SimpleNamespace(number=number, shape=shape, always=5)

    assert compiled(Sparse)(value) == Sparse().dump(value) == shown
    assert Sparse().load(shown) == {
        "number": number,
        "shape": shape and {"number": 1},
        "always": 5,
    }


class Doubled(Number):
    def encode(self, value: int) -> int:
        return 2 * int(super().encode(value))


class Prefixed(Hex):
    def encode(self, value: bytes) -> str:
        return "0x" + str(Hex.encode(self, value))


class Upper:
    def encode(self, value: str) -> str:
        return value.upper()


class UpperText(Upper, Text):
    pass


class Joined(ListOf):
    def encode(self, value: Any) -> str:
        return ",".join(value)


class Summed(Nested):
    def encode(self, value: Any) -> int:
        return int(value.number)


class Replaced(WireSchema):
    prefixed = Prefixed()
    upper = UpperText()
    joined = Joined(Text())
    summed = Summed(Inner)


def test_methods_that_a_host_replaces_are_called() -> None:
    inner = SimpleNamespace(number=3)
    value = SimpleNamespace(prefixed=b"a", upper="x", joined=["a", "b"], summed=inner)

    shown = {"prefixed": "0x61", "upper": "X", "joined": "a,b", "summed": 3}
    assert compiled(Replaced)(value) == shown


def test_the_traceback_of_a_dump_shows_the_member() -> None:
    with pytest.raises(AttributeError) as caught:
        compiled(Inner)(object())
    assert "members['number'] = int(value.number)" in str(caught.traceback[-1].statement)


def test_a_field_of_another_kind_is_refused() -> None:
    class Foreign(WireSchema):
        number = Integer()

    with pytest.raises(
        ConfigurationError, match=r"Foreign\.number: expected a field of flask_noderpc"
    ):
        compiled(Foreign)


class Odd(WireSchema):
    twice = Doubled(nullable=True)
    keyword = Number(attribute="from", data_key='a "quoted" \\ key')
    deep = Text(attribute="inner.name")
    listed = ListOf(ListOf(Doubled(nullable=True), null_when_empty=True))


@pytest.mark.parametrize("twice", [None, 0, 4])
def test_fields_of_a_host_and_odd_names_are_compiled(twice: int | None) -> None:
    inner = SimpleNamespace(name="x")
    value = SimpleNamespace(twice=twice, inner=inner, listed=[(), (1, None)], **{"from": 1})

    assert (
        compiled(Odd)(value)
        == Odd().dump(value)
        == {
            "twice": twice and 2 * twice,
            'a "quoted" \\ key': 1,
            "deep": "x",
            "listed": [None, [2, None]],
        }
    )


def test_unknown_members_are_not_loaded() -> None:
    assert Inner().load({"number": 1, "more": 2}) == {"number": 1}


def test_a_shape_is_loaded_into_its_domain_class() -> None:
    from flask_noderpc.domain.block import BlockID
    from flask_noderpc.wire.common import BlockID as Schema

    made = Schema().load({"hash": "AB", "parts": {"total": 1, "hash": "CD"}})

    assert isinstance(made, BlockID)
    assert compiled(Schema)(made) == Schema().dump(made)
