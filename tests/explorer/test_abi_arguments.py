"""Tests of calldata from text, compared with eth-abi, and of text that fits no type."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from eth_abi.abi import encode
from hypothesis import given
from hypothesis import strategies as st

from flask_noderpc.explorer.abi import Abi, Entry
from flask_noderpc.explorer.abi_arguments import MAX_TEXT, calldata
from flask_noderpc.protocol.secp256k1eth import to_checksum

from .abi_forms import entry
from .test_abi import CASES


def function(*types: str, **more: Any) -> Entry:
    abi = Abi.parse(json.dumps([entry("function", "f", *types) | more]))
    return next(iter(abi.functions.values()))


def _json(value: Any) -> Any:
    """Return a value as people write it in JSON."""
    if isinstance(value, bytes):
        return to_checksum(value) if len(value) == 20 else f"0x{value.hex()}"
    # JSON in a browser has no integers above 2^53.
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _is_kept(name: str, value: Any) -> bool:
    # Bytes of 20 would look like an address here, and a form changes CRLF.
    return not ((name == "bytes" and len(value) == 20) or (name == "string" and "\r" in value))


@given(st.data())
def test_what_is_shown_is_encoded_as_by_eth_abi(data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(CASES), max_size=5))
    types, values, texts = [], [], []
    for name, strategy, show in chosen:
        kept = strategy.filter(partial(_is_kept, name))
        is_list = data.draw(st.booleans())
        value = data.draw(st.lists(kept, max_size=3) if is_list else kept)
        types.append(f"{name}[]" if is_list else name)
        values.append(value)
        texts.append(json.dumps([_json(each) for each in value]) if is_list else show(value))
    found = function(*types)

    assert calldata(found, texts) == found.selector + encode(types, values)


PAIR = [{"name": "a", "type": "uint8"}, {"name": "b", "type": "string[2]"}]


@pytest.mark.parametrize(
    "text",
    ['[{"a": 1, "b": ["x", "y"]}]', '[["0x01", ["x", "y"]]]', ' [{"b":["x","y"],"a":"1"}]'],
)
def test_tuples_are_lists_or_objects(text: str) -> None:
    found = function(inputs=[{"name": "pairs", "type": "tuple[]", "components": PAIR}])

    encoded = encode(["(uint8,string[2])[]"], [[(1, ["x", "y"])]])
    assert calldata(found, [text]) == found.selector + encoded
    assert found.inputs[0].type.shape == "(a: uint8, b: string[2])[]"


def test_functions_and_line_breaks_are_encoded() -> None:
    found = function("function", "string", "bool")
    value = bytes(range(24))
    encoded = encode(["function", "string", "bool"], [value, "a\nb ", True])
    assert calldata(found, [f"0x{value.hex()}", "a\r\nb ", "TRUE"]) == found.selector + encoded


ADDRESS = to_checksum(bytes(range(180, 200)))


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("uint8", "256", "p0: expected an integer from 0 to 2^8 - 1, got '256'"),
        ("uint8", "-1", "from 0 to 2^8 - 1"),
        ("uint8", "", "got ''"),
        ("uint256", "1e18", "got '1e18'"),
        ("uint256", "1_000", "got '1_000'"),
        ("uint256", "9" * 100, "from 0 to 2^256 - 1"),
        ("int8", "128", "from -2^7 to 2^7 - 1"),
        ("bool", "yes", "expected true or false"),
        ("address", "0x12", "an address of 0x and 40 hex digits"),
        ("address", ADDRESS.swapcase().replace("0X", "0x"), "is its checksum"),
        ("bytes4", "0x112233", "expected 0x and 8 hex digits, got '0x112233'"),
        ("bytes", "112233", "an even number of hex digits"),
        ("bytes", "0x123", "an even number of hex digits"),
        ("uint8[2]", "[1]", "a JSON list with 2 elements, got '[1]'"),
        ("uint8[]", "1", "a JSON list, got '1'"),
        ("uint8[]", "[1", "expected JSON of uint8[]"),
        ("uint8[]", "[1, true]", "p0[1]: expected an integer"),
        ("uint8[]", "[1.5]", "p0[0]: expected an integer"),
        ("string[]", "[1]", "p0[0]: expected a string, got '1'"),
        ("bool[]", '["no"]', "p0[0]: expected true or false"),
        ("address[]", "[1]", "p0[0]: expected an address"),
        ("uint8[]", "[" * 5_000, "expected JSON of uint8[]"),
        ("string", "x" * (MAX_TEXT + 1), f"p0: expected at most {MAX_TEXT} characters"),
    ],
)
def test_text_that_fits_no_type_is_refused(kind: str, text: str, expected: str) -> None:
    with pytest.raises(ValueError, match="p0") as refused:
        calldata(function(kind), [text])
    assert expected in str(refused.value)
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize("text", ["{}", '{"a": 1}', "[1]", '{"a": 1, "b": ["x", "y"], "c": 1}'])
def test_an_object_has_the_members_of_its_tuple(text: str) -> None:
    found = function(inputs=[{"name": "", "type": "tuple", "components": PAIR}])
    with pytest.raises(ValueError, match="parameter 1: expected a JSON object or list of"):
        calldata(found, [text])


@pytest.mark.parametrize("name", ["", "a"])
def test_an_object_has_no_values_for_members_with_the_same_name(name: str) -> None:
    members = [{"name": name, "type": "uint8"}] * 2
    found = function(inputs=[{"name": "pair", "type": "tuple", "components": members}])

    assert calldata(found, ["[1, 2]"]) == found.selector + encode(["uint8"] * 2, [1, 2])
    with pytest.raises(ValueError, match="pair: expected a JSON object or list of"):
        calldata(found, [json.dumps({name: 1})])


def test_results_and_errors_are_decoded() -> None:
    documents = [
        entry("error", "Low", "uint8"),
        entry("function", "f") | {"outputs": [{"name": "x", "type": "bool"}]},
    ]
    abi = Abi.parse(json.dumps(documents))
    (found,) = abi.functions.values()
    result = found.result(encode(["bool"], [True]))

    assert result is not None
    assert [(each.name, each.text) for each in result.values] == [("x", "true")]
    assert found.result(b"") is None
    assert abi.error(b"") is None
    assert not found.reads
    panic = abi.error(bytes.fromhex("4e487b71") + encode(["uint256"], [17]))
    assert panic is not None
    assert panic.signature == "Panic(uint256)"


@pytest.mark.parametrize(
    ("more", "mutability"),
    [
        ({"stateMutability": "pure"}, "pure"),
        ({"constant": True}, "view"),
        ({"payable": True}, "payable"),
        ({}, "nonpayable"),
    ],
)
def test_old_compilers_wrote_the_mutability_otherwise(
    more: dict[str, Any], mutability: str
) -> None:
    assert function(**more).mutability == mutability
