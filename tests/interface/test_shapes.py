"""Tests that the checker accepts right responses and refuses wrong ones."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from .shapes import DOCUMENT, SHAPES, Kind, check

HASH = "E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855"
BLOCK_ID = {"hash": HASH, "parts": {"total": 1, "hash": HASH}}
NODE_INFO = {
    "protocol_version": {"p2p": "8", "block": "11", "app": "1"},
    "id": "6eed0c8523f39db9e1c0dcd99c93c3039b6f7b94",
    "listen_addr": "tcp://127.0.0.1:26656",
    "network": "test-chain-x",
    "version": "0.38.25",
    "channels": "40202122233038606100",
    "moniker": "one",
    "other": {"tx_index": "on", "rpc_address": "tcp://127.0.0.1:26657"},
}
TX = {
    "hash": HASH,
    "height": "43",
    "index": 0,
    "tx_result": {
        "log": "",
        "gas_wanted": "0",
        "gas_used": "0",
        "tags": [{"key": "YXBw", "value": "", "index": True}],
    },
    "tx": "bmFtZT1zYXRvc2hp",
}


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("string", ""),
        ("string", "any"),
        ("string(int)", "0"),
        ("string(int)", "-12"),
        ("string(int)", "9223372036854775807"),
        ("number", 0),
        ("number", -1),
        ("number", 1.5),
        ("boolean", False),
        ("hex", HASH),
        ("hex?", HASH),
        ("hex?", ""),
        ("base64", ""),
        ("base64", "bmFtZT1zYXRvc2hp"),
        ("base64", "YQ=="),
        ("timestamp", "2026-11-20T09:33:24Z"),
        ("timestamp", "2026-11-20T09:33:24.427211873Z"),
        ("timestamp", "0001-01-01T00:00:00Z"),
        ("object", {}),
        ("object", {"any": 1}),
        ("0x", "0x1"),
        ("0x", "0xab12"),
        ({"array": "number"}, []),
        ({"array": "number"}, [1, 2]),
        ({"nullable": "number"}, None),
        ({"nullable": "number"}, 1),
        ({}, {}),
        ({"a.b": "number", "a.c": "string"}, {"a": {"b": 1, "c": ""}}),
        ({"shape": "BlockID"}, BLOCK_ID),
        ({"shape": "NodeInfo"}, NODE_INFO),
        ({"shape": "TxLookup"}, TX),
        ({"shape": "TxLookup"}, TX | {"proof": {"root_hash": HASH}}),
    ],
)
def test_a_right_value_gives_no_complaint(kind: Kind, value: object) -> None:
    assert check(value, kind) == []


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("string", None),
        ("string", 1),
        ("string(int)", 1),
        ("string(int)", ""),
        ("string(int)", "+1"),
        ("string(int)", "1.0"),
        ("string(int)", "1\n"),
        ("string(int)", "٣"),
        ("string(int)", None),
        ("number", "1"),
        ("number", True),
        ("number", None),
        ("boolean", 0),
        ("boolean", "true"),
        ("hex", ""),
        ("hex", HASH.lower()),
        ("hex", "0x" + HASH),
        ("hex", "ABC"),
        ("hex", None),
        ("hex?", None),
        ("hex?", "ab"),
        ("base64", None),
        ("base64", "YQ"),
        ("base64", "YR=="),
        ("base64", "YQ==\n"),
        ("base64", "_-8="),
        ("base64", "é"),
        ("timestamp", ""),
        ("timestamp", "2026-11-20T09:33:24"),
        ("timestamp", "2026-11-20T09:33:24+00:00"),
        ("timestamp", "2026-11-20 09:33:24Z"),
        ("timestamp", "2026-11-20T09:33:24.Z"),
        ("timestamp", "2026-11-20T09:33:24.0123456789Z"),
        ("timestamp", "2026-13-20T09:33:24Z"),
        ("timestamp", 0),
        ("object", None),
        ("object", []),
        ("0x", "0xAB"),
        ("0x", "ab"),
        ("0x", "0x"),
        ({"array": "number"}, None),
        ({"array": "number"}, {}),
        ({"nullable": "number"}, ""),
        ({}, None),
        ({}, []),
        ({"shape": "BlockID"}, None),
    ],
)
def test_a_wrong_value_gives_one_complaint(kind: Kind, value: object) -> None:
    assert len(check(value, kind)) == 1


def test_a_missing_field_is_named() -> None:
    assert check({"hash": HASH}, {"shape": "BlockID"}) == ["result.parts: missing"]


def test_a_missing_nested_field_is_named() -> None:
    value = BLOCK_ID | {"parts": {"total": 1}}

    assert check(value, {"shape": "BlockID"}, "id") == ["id.parts.hash: missing"]


def test_an_unexpected_field_is_named() -> None:
    value = BLOCK_ID | {"more": 1}

    assert check(value, {"shape": "BlockID"}) == ["result.more: unexpected"]


def test_an_unexpected_nested_field_is_named() -> None:
    value = BLOCK_ID | {"parts": {"total": 1, "hash": HASH, "more": 1}}

    assert check(value, {"shape": "BlockID"}) == ["result.parts.more: unexpected"]


def test_a_scalar_where_an_object_belongs_is_named() -> None:
    value = BLOCK_ID | {"parts": 1}

    assert check(value, {"shape": "BlockID"}) == ["result.parts: expected object, got 1"]


def test_an_element_is_named_by_its_place() -> None:
    assert check([1, "2"], {"array": "number"}) == ["result[1]: expected number, got '2'"]


def test_every_complaint_is_given() -> None:
    value = {"hash": "no", "parts": {"total": "1"}}

    assert len(check(value, {"shape": "BlockID"})) == 3


def test_the_id_of_a_node_is_lower_case() -> None:
    value = NODE_INFO | {"id": str(NODE_INFO["id"]).upper()}

    assert check(value, {"shape": "NodeInfo"}) == [
        "result.id: expected lower hex, got '6EED0C8523F39DB9E1C0DCD99C93C3039B6F7B94'"
    ]


def test_the_proof_of_a_transaction_is_an_object() -> None:
    value = TX | {"proof": ""}

    assert check(value, {"shape": "TxLookup"}) == ["result.proof: expected object, got ''"]


def test_only_a_transaction_has_a_proof_beside_its_fields() -> None:
    value = BLOCK_ID | {"proof": {}}

    assert check(value, {"shape": "BlockID"}) == ["result.proof: unexpected"]


def test_a_type_that_does_not_exist_is_no_answer() -> None:
    with pytest.raises(KeyError):
        check(1, "integer")


def results() -> list[tuple[str, Kind]]:
    named: list[Any] = DOCUMENT["routes"] + DOCUMENT["evm"]
    return [(item["name"], item["result"]) for item in named]


def sample(kind: Kind) -> Any:
    """Return a valid value of the type, with one element in every array."""
    if isinstance(kind, str):
        return deepcopy(SAMPLES[kind])
    if set(kind) == {"shape"}:
        fields = SHAPES[str(kind["shape"])]
        if fields is SHAPES["NodeInfo"]:
            return deepcopy(NODE_INFO)
        return sample(fields)
    if set(kind) == {"array"}:
        return [sample(kind["array"])]
    if set(kind) == {"nullable"}:
        return sample(kind["nullable"])
    value: dict[str, Any] = {}
    for path, expected in kind.items():
        *parents, last = path.split(".")
        inner = value
        for parent in parents:
            inner = inner.setdefault(parent, {})
        inner[last] = sample(expected)
    return value


SAMPLES: dict[str, Any] = {
    "string": "text",
    "string(int)": "1",
    "number": 1,
    "boolean": True,
    "hex": HASH,
    "hex?": "",
    "base64": "YQ==",
    "timestamp": "2026-11-20T09:33:24Z",
    "object": {},
    "0x": "0x1",
}


@pytest.mark.parametrize(("name", "kind"), results())
def test_a_full_answer_of_every_route_passes(name: str, kind: Kind) -> None:
    assert check(sample(kind), kind, name) == []


@pytest.mark.parametrize(("name", "kind"), results())
def test_null_is_no_answer_of_any_route(name: str, kind: Kind) -> None:
    assert check(None, kind, name) != []
