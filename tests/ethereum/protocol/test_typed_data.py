"""Tests that structured data is hashed as by eth-account, and that invalid data is refused."""

from __future__ import annotations

import re
from typing import Any

import pytest
from eth_account.messages import encode_typed_data
from hypothesis import given, settings
from hypothesis import strategies as st

from flask_noderpc.ethereum.protocol.typed_data import typed_digest
from flask_noderpc.protocol.secp256k1eth import keccak

DOMAIN_TYPES = [
    {"name": "name", "type": "string"},
    {"name": "chainId", "type": "uint256"},
    {"name": "verifyingContract", "type": "address"},
]
DOMAIN = {"name": "Ether Mail", "chainId": 1, "verifyingContract": "0x" + "cc" * 20}
PERSON = [{"name": "name", "type": "string"}, {"name": "wallets", "type": "address[]"}]


def _hex(size: int) -> st.SearchStrategy[str]:
    return st.binary(min_size=size, max_size=size).map(lambda value: "0x" + value.hex())


_PERSON = st.fixed_dictionaries(
    {"name": st.text(), "wallets": st.lists(_hex(20), max_size=3)},
)
_ATOMS: dict[str, st.SearchStrategy[Any]] = {
    "string": st.text(),
    "bool": st.booleans(),
    "address": _hex(20),
    "bytes": st.binary(max_size=40).map(lambda value: "0x" + value.hex()),
    "bytes4": _hex(4),
    "bytes32": _hex(32),
    "uint8": st.integers(0, 255),
    "uint256": st.integers(0, 2**256 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "int256": st.integers(-(2**255), 2**255 - 1),
    "Person": _PERSON,
}


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    kinds = draw(st.lists(st.sampled_from(sorted(_ATOMS)), min_size=1, max_size=6))
    fields, message = [], {}
    for index, kind in enumerate(kinds):
        value, shown = _ATOMS[kind], kind
        for _ in range(draw(st.integers(0, 2))):
            count = draw(st.integers(1, 3))
            shown += draw(st.sampled_from(["[]", f"[{count}]"]))
            value = st.lists(value, min_size=count, max_size=count)
        fields.append({"name": f"f{index}", "type": shown})
        message[f"f{index}"] = draw(value)
    return _document({"Mail": fields, "Person": PERSON}, message)


def _document(types: dict[str, Any], message: dict[str, Any]) -> dict[str, Any]:
    return {
        "types": {"EIP712Domain": DOMAIN_TYPES, **types},
        "primaryType": "Mail",
        "domain": DOMAIN,
        "message": message,
    }


def _expected(document: dict[str, Any]) -> bytes:
    made = encode_typed_data(full_message=document)
    return keccak(b"\x19" + made.version + made.header + made.body)


@given(documents())
@settings(max_examples=150, deadline=None)
def test_it_is_hashed_as_eth_account_hashes_it(document: dict[str, Any]) -> None:
    unused = {k: v for k, v in document["types"].items() if k != "Person"}
    if not any(field["type"].startswith("Person") for field in document["types"]["Mail"]):
        # eth-account requires exactly one type that no other type uses.
        document = {**document, "types": unused}
    assert typed_digest(document) == _expected(document)


def test_the_example_of_the_eip_has_its_hash() -> None:
    person = [{"name": "name", "type": "string"}, {"name": "wallet", "type": "address"}]
    mail = [
        {"name": "from", "type": "Person"},
        {"name": "to", "type": "Person"},
        {"name": "contents", "type": "string"},
    ]
    document = {
        "types": {"Person": person, "Mail": mail},
        "primaryType": "Mail",
        "domain": {
            "name": "Ether Mail",
            "version": "1",
            "chainId": "0x1",
            "verifyingContract": "0xCcCCccccCCCCcCCCCCCcCcCccCcCCCcCcccccccC",
        },
        "message": {
            "from": {"name": "Cow", "wallet": "0xCD2a3d9F938E13CD947Ec05AbC7FE734Df8DD826"},
            "to": {"name": "Bob", "wallet": "0xbBbBBBBbbBBBbbbBbbBbbbbBBbBbbbbBbBbbBBbB"},
            "contents": "Hello, Bob!",
        },
    }
    # The example of EIP-712, Example.js.
    assert typed_digest(document).hex() == (
        "be609aee343fb3c4b28e1df9e632fca64fcfaede20f02e86244efddf30957bd2"
    )


def test_a_domain_is_hashed_by_the_type_that_the_document_declares() -> None:
    document = _document({"Mail": [{"name": "n", "type": "bool"}]}, {"n": True})
    declared = [*reversed(DOMAIN_TYPES), {"name": "more", "type": "bool"}]
    domain_type = (
        b"EIP712Domain(address verifyingContract,uint256 chainId,string name,bool more)"
    )
    words = [
        keccak(domain_type),
        bytes.fromhex("cc" * 20).rjust(32, b"\0"),
        (1).to_bytes(32),
        keccak(b"Ether Mail"),
        (1).to_bytes(32),
    ]
    message = keccak(keccak(b"Mail(bool n)") + (1).to_bytes(32))

    document["types"]["EIP712Domain"] = declared
    document["domain"] = {**DOMAIN, "more": True}

    assert typed_digest(document) == keccak(b"\x19\x01" + keccak(b"".join(words)) + message)


def test_numbers_may_be_texts() -> None:
    types = {"Mail": [{"name": "n", "type": "int256"}]}
    digests = {typed_digest(_document(types, {"n": n})) for n in (-255, "-255", "-0xff")}
    assert len(digests) == 1


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        ("uint8", 256, "expected a value of type uint8, got '256'"),
        ("uint8", -1, "expected a value of type uint8, got '-1'"),
        ("uint7", 1, "expected a value of type uint7, got '1'"),
        ("uint264", 1, "expected a value of type uint264, got '1'"),
        ("uint256", True, "expected a value of type uint256, got 'True'"),
        ("uint256", "9" * 5000, "expected a value of type uint256, got"),
        ("uint256", 1.5, "expected a value of type uint256, got '1.5'"),
        ("bool", 1, "expected a value of type bool, got '1'"),
        ("string", 1, "expected a value of type string, got '1'"),
        ("address", "0x12", "expected a value of type address, got '0x12'"),
        ("bytes", "12", "expected a value of type bytes, got '12'"),
        ("bytes4", "0x123456", "expected a value of type bytes4, got '0x123456'"),
        ("bytes33", "0x" + "00" * 33, "expected a value of type bytes33, got"),
        ("Stranger", {}, "expected a value of type Stranger, got"),
        ("uint8[2]", [1], "Expected 2 items for array type uint8[2], got 1 items"),
        ("uint8[]", 1, "uint8[]: expected a list"),
        ("uint8" + "[]" * 70, [], "expected a list of at most 64 levels"),
    ],
)
def test_a_value_of_another_kind_is_refused(kind: str, value: object, said: str) -> None:
    for _ in range(kind.count("[]") - 1):
        value = [value]
    types = {"Mail": [{"name": "n", "type": kind}]}
    with pytest.raises(ValueError, match=re.escape(said)):
        typed_digest(_document(types, {"n": value}))


MAIL = {"Mail": [{"name": "n", "type": "bool"}]}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"types": []}, "types: expected an object, got []"),
        ({"types": {"Mail": [{"name": "n"}]}}, "expected a list of fields for each struct"),
        ({"types": {"Mail": 5}}, "expected a list of fields for each struct"),
        (
            {"types": {"Mail": [{"name": 1, "type": "bool"}]}},
            "expected strings as the name and type",
        ),
        ({"domain": None}, "domain: expected an object, got None"),
        ({"domain": {**DOMAIN, "more": 1}}, "extra data provided in the message (EIP712Domain"),
        (
            {"primaryType": "Letter"},
            "primaryType: expected a struct that types declares, got 'Letter'",
        ),
        ({"primaryType": ["Mail"]}, "expected a struct that types declares, got"),
        ({"message": {}}, "Mail: expected a value for the field 'n', got none"),
        ({"message": {"n": True, "m": 1}}, "extra data provided in the message (Mail"),
        ({"message": 5}, "Mail: expected an object, got 5"),
    ],
)
def test_a_document_that_is_none_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        typed_digest({**_document(MAIL, {"n": True}), **change})


def test_structs_may_hold_themselves_but_not_for_ever() -> None:
    types = {"Mail": [{"name": "next", "type": "Mail"}]}
    message: dict[str, Any] = {"next": None}
    assert typed_digest(_document(types, message))
    for _ in range(70):
        message = {"next": message}
    with pytest.raises(ValueError, match="at most 64 levels"):
        typed_digest(_document(types, message))


@pytest.mark.parametrize(
    ("types", "said"),
    [
        (
            {f"T{n}": [{"name": "n", "type": f"T{n + 1}"}] for n in range(300)},
            "types: expected at most 500 structs and fields, got ",
        ),
        (
            {"Mail": [{"name": "n" * 33_000, "type": "bool"}]},
            "types: expected at most 32768 characters, got 33",
        ),
        (
            {"Mail": [{"name": "n", "type": "a" * 300 + "[]"}]},
            "types: expected type names of at most 256 characters, got 302",
        ),
    ],
    ids=["structs", "characters", "one type"],
)
def test_definitions_that_would_take_long_to_hash_are_refused(
    types: dict[str, Any], said: str
) -> None:
    document = _document({"Mail": MAIL["Mail"], **types}, {"n": True})
    with pytest.raises(ValueError, match=re.escape(said)):
        typed_digest(document)
