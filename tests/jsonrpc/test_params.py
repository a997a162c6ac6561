"""Tests of parameter classes, which are read from a query string or from JSON."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flask_noderpc.errors import InvalidParams
from flask_noderpc.jsonrpc.params import NoParams, ParamLoader, Params, param, specs
from flask_noderpc.wire.params import Flag, Int64, Text


@dataclass(frozen=True, slots=True)
class Sample(Params):
    """One parameter of each kind."""

    needed: int = param(Int64(), doc="Must be given.")
    word: str = param(Text(), default="none", doc="May be given.")
    on: bool = param(Flag(), default=False, wire="On", doc="Named otherwise on the wire.")


LOADER = ParamLoader(Sample)


def test_specs_lists_the_parameters_of_a_class() -> None:
    rows = [(row.name, row.wire, row.required, row.default) for row in specs(Sample)]

    assert rows == [
        ("needed", "needed", True, None),
        ("word", "word", False, "none"),
        ("on", "On", False, False),
    ]
    assert specs(NoParams) == ()


def test_a_query_string_is_read() -> None:
    found = LOADER.from_uri({"needed": "5", "word": '"x"', "On": "true", "on": "junk"})

    assert found == Sample(5, "x", True)


@pytest.mark.parametrize("empty", ["", "null"])
def test_empty_and_null_values_of_a_query_are_not_given(empty: str) -> None:
    assert LOADER.from_uri({"needed": "5", "word": empty, "On": empty}) == Sample(5)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"needed":5,"word":"x","On":true,"more":[1]}',
        b'{"needed":"5","word":"x","On":true,"needed":5}',
        b'[5,"x",true]',
        b' [ "5" , "x" , true ] ',
    ],
)
def test_json_is_read_by_name_and_by_place(raw: bytes) -> None:
    assert LOADER.from_json(raw) == Sample(5, "x", True)


@pytest.mark.parametrize(
    "raw", [b'{"needed":5}', b"[5]", b"[5,null]", b'{"needed":5,"On":null}']
)
def test_omitted_parameters_get_their_defaults(raw: bytes) -> None:
    assert LOADER.from_json(raw) == Sample(5)


@pytest.mark.parametrize("raw", [b"", b"null", b"{}", b"[]", b"[null]", b'{"needed":null}'])
def test_a_missing_required_parameter_is_named(raw: bytes) -> None:
    with pytest.raises(InvalidParams, match="needed: expected a value, got none"):
        LOADER.from_json(raw)


@pytest.mark.parametrize("raw", [b"5", b'"x"', b"true", b"1.5"])
@pytest.mark.parametrize("kind", [Sample, NoParams])
def test_only_objects_and_arrays_hold_parameters(raw: bytes, kind: type[Params]) -> None:
    with pytest.raises(InvalidParams, match="must be an object or an array"):
        ParamLoader(kind).from_json(raw)


@pytest.mark.parametrize("raw", [b"", b"null", b"{}", b"[]", b'{"more":1}'])
def test_no_params_ignores_unknown_parameters(raw: bytes) -> None:
    assert ParamLoader(NoParams).from_json(raw) == NoParams()


def test_more_values_than_parameters_are_refused() -> None:
    with pytest.raises(InvalidParams, match=r"at most 3 .*\(needed, word, On\), got 4"):
        LOADER.from_json(b"[1,2,3,4]")


def test_integers_out_of_range_are_refused() -> None:
    with pytest.raises(InvalidParams, match="params can't be parsed"):
        LOADER.from_json(b"[1e999]")


def test_a_failure_names_the_parameter_and_shows_the_value_in_short() -> None:
    with pytest.raises(InvalidParams) as caught:
        LOADER.from_json(b'{"needed":5,"On":"' + b"y" * 500 + b'"}')

    text = caught.value.text or ""
    assert text.startswith('On: expected true or false, got "yyy')
    assert text.endswith("...")
    assert len(text) < 120


@settings(deadline=None)
@given(st.text())
def test_whatever_a_query_holds_is_read_or_refused(text: str) -> None:
    with suppress(InvalidParams):
        assert LOADER.from_uri({"needed": "1", "word": text}).needed == 1
