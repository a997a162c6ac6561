"""Tests of decoding by an ABI, compared with eth-abi, and with bytes that fit no ABI."""

from __future__ import annotations

import json
from typing import Any

import pytest
from eth_abi.abi import encode
from hypothesis import given
from hypothesis import strategies as st

from flask_noderpc.explorer.abi import Abi
from flask_noderpc.protocol.secp256k1eth import keccak, to_checksum

from .abi_forms import TRANSFER, entry


def selector(signature: str) -> bytes:
    return keccak(signature.encode())[:4]


ADDRESS = bytes(range(20))


def test_a_log_is_decoded_with_its_topics() -> None:
    abi = Abi.parse(json.dumps([TRANSFER]))
    topics = [keccak(b"Transfer(address,address,uint256)"), bytes(32), ADDRESS.rjust(32, b"\0")]

    found = abi.log(topics, (5).to_bytes(32))

    assert found is not None
    assert found.signature == "Transfer(address,address,uint256)"
    assert [(value.name, value.text) for value in found.values] == [
        ("p0", to_checksum(bytes(20))),
        ("p1", to_checksum(ADDRESS)),
        ("p2", "5"),
    ]
    assert abi.log(topics[:2], (5).to_bytes(32)) is None
    assert abi.log([], b"") is None


def test_a_compilers_artifact_is_read() -> None:
    assert Abi.parse(json.dumps({"abi": [TRANSFER], "bytecode": "0x"})).log([], b"") is None


def test_an_indexed_value_of_any_length_is_its_hash() -> None:
    abi = Abi.parse(json.dumps([entry("event", "Named", "string", indexed=1)]))
    found = abi.log([keccak(b"Named(string)"), keccak(b"a name")], b"")

    assert found is not None
    assert found.values[0].text == f"keccak-256 0x{keccak(b'a name').hex()}"


CASES: tuple[tuple[str, st.SearchStrategy[Any], Any], ...] = (
    ("uint8", st.integers(0, 255), str),
    ("uint256", st.integers(0, 2**256 - 1), str),
    ("int16", st.integers(-(2**15), 2**15 - 1), str),
    ("int256", st.integers(-(2**255), 2**255 - 1), str),
    ("bool", st.booleans(), lambda value: str(value).lower()),
    ("address", st.binary(min_size=20, max_size=20), to_checksum),
    ("bytes4", st.binary(min_size=4, max_size=4), lambda value: f"0x{value.hex()}"),
    ("bytes", st.binary(max_size=70), lambda value: f"0x{value.hex()}"),
    ("string", st.text(max_size=40), str),
)


@given(st.data())
def test_calldata_is_decoded_as_by_eth_abi(data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(CASES), max_size=5))
    types: list[str] = []
    values: list[Any] = []
    texts: list[str] = []
    for name, strategy, show in chosen:
        length = data.draw(st.sampled_from((None, "", "2")))
        if length is None:
            value = data.draw(strategy)
            types, values = [*types, name], [*values, value]
            texts.append(show(value))
        else:
            size = 2 if length else data.draw(st.integers(0, 3))
            value = data.draw(st.lists(strategy, min_size=size, max_size=size))
            types, values = [*types, f"{name}[{length}]"], [*values, value]
            texts.append("[" + ", ".join(map(show, value)) + "]")
    abi = Abi.parse(json.dumps([entry("function", "f", *types)]))

    found = abi.call(selector(f"f({','.join(types)})") + encode(types, values))

    assert found is not None
    assert [value.text for value in found.values] == texts


def test_tuples_are_decoded() -> None:
    parts = [{"name": "a", "type": "uint256"}, {"name": "b", "type": "string"}]
    inputs = [{"name": "list", "type": "tuple[]", "components": parts}]
    abi = Abi.parse(json.dumps([{"type": "function", "name": "f", "inputs": inputs}]))
    types = ["(uint256,string)[]"]

    found = abi.call(selector(f"f({types[0]})") + encode(types, [[(1, "x"), (2, "y")]]))

    assert found is not None
    assert found.values[0].text == "[(a: 1, b: x), (a: 2, b: y)]"


ANY = Abi.parse(
    json.dumps(
        [
            entry("function", "f", "uint256[][]", "string", "bytes[3]", "address[]"),
            {
                "type": "function",
                "name": "g",
                "inputs": [{"name": "", "type": "tuple[]", "components": []}],
            },
        ]
    )
)
F, G = selector("f(uint256[][],string,bytes[3],address[])"), selector("g(()[])")


@given(
    st.lists(st.sampled_from([0, 1, 2, 31, 32, 64, 96, 128, 2**64, 2**256 - 1]), max_size=40)
)
def test_bytes_that_fit_no_type_are_not_decoded(words: list[int]) -> None:
    data = b"".join(word.to_bytes(32) for word in words)
    for name in (F, G):
        found = ANY.call(name + data)
        # The decoded value is bounded by the size of the input, times a factor for its
        # representation.
        assert found is None or sum(len(v.text) for v in found.values) < 20_000


def test_offsets_that_name_the_same_bytes_again_and_again_are_refused() -> None:
    abi = Abi.parse(json.dumps([entry("function", "f", "bytes[]")]))
    count = 1000
    head = [32, count, *([32 * count] * count), 30_000]
    data = b"".join(word.to_bytes(32) for word in head) + bytes(30_000)

    assert abi.call(selector("f(bytes[])") + data) is None


def test_values_that_would_be_read_again_and_again_are_refused() -> None:
    kind: dict[str, Any] = {"name": "", "type": "uint8"}
    for _ in range(14):
        kind = {"name": "", "type": "tuple", "components": [kind]}
    abi = Abi.parse(json.dumps([{"type": "function", "name": "f", "inputs": [kind]}]))

    assert abi.call(selector(f"f({'(' * 14}uint8{')' * 14})") + bytes(32)) is None


def test_text_that_is_not_utf_8_and_bytes_without_padding_are_shown() -> None:
    abi = Abi.parse(json.dumps([entry("function", "f", "string")]))
    head = selector("f(string)") + (32).to_bytes(32)

    found = abi.call(head + (2).to_bytes(32) + b"a\xff")

    assert found is not None
    assert found.values[0].text == "a\N{REPLACEMENT CHARACTER}"
    for length in (3, 2**256 - 1):
        assert abi.call(head + length.to_bytes(32) + b"a\xff") is None


@pytest.mark.parametrize(
    "document",
    [
        "",
        "{",
        "1",
        "{}",
        "[1]",
        '[{"type": "event"}]',
        json.dumps([entry("event", "E", "uint7")]),
        json.dumps([entry("event", "E", "uint264")]),
        json.dumps([entry("event", "E", "bytes33")]),
        json.dumps([entry("event", "E", "fixed128x18")]),
        json.dumps([entry("event", "E", "uint" + "[]" * 40)]),
        json.dumps([entry("event", "E", "uint[0]")]),
        json.dumps([entry("event", "E", "string8")]),
        '[{"name": "f", "inputs": {}}]',
        json.dumps([entry("event", "E")] * 6000),
    ],
)
def test_what_is_no_abi_is_refused(document: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Abi.parse(document)


@pytest.mark.parametrize(
    "document",
    [
        json.dumps([entry("function", "f", *["uint8"] * 400)] * 16),
        json.dumps([entry("function", "f", *["uint8[1][1]"] * 2_100)]),
    ],
    ids=["parameters", "arrays"],
)
def test_an_abi_has_only_so_many_types(document: str) -> None:
    with pytest.raises(ValueError, match="expected at most 6000 types of parameters"):
        Abi.parse(document)
