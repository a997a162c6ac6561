"""Tests of parameters by CometBFT's rules, with its error texts."""

from __future__ import annotations

import json
from base64 import b64encode
from contextlib import suppress
from dataclasses import dataclass, make_dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flask_noderpc.cometbft.routes import COMETBFT_ROUTES
from flask_noderpc.errors import InvalidParams
from flask_noderpc.jsonrpc.params import NoParams, ParamLoader, Params, param
from flask_noderpc.wire.comet import gojson
from flask_noderpc.wire.comet.params import COMET_PARAMS, READERS
from flask_noderpc.wire.params import (
    Bytes,
    Cursor,
    Flag,
    Hash,
    HexHash,
    Int,
    Int64,
    ParamField,
    Text,
    Texts,
    UInt64,
)

LOADERS: dict[str, ParamLoader[Any]] = {
    route.name: ParamLoader(route.params, COMET_PARAMS) for route in COMETBFT_ROUTES
}
IN_URI = "error converting http params to arguments: "
IN_JSON = "error converting json params to arguments: "
GOLDEN = Path(__file__).parents[1] / "golden" / "params_0.38.25.jsonl"
NO_VALUE = "looking for beginning of value"

any_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


def taking(**kinds: tuple[ParamField, Any]) -> type[Params]:
    """Return a class of parameters, each with a kind and a default."""
    rows = [
        (name, Any, param(kind, default=default, doc="."))
        for name, (kind, default) in kinds.items()
    ]
    return make_dataclass("Taking", rows, bases=(Params,), frozen=True, slots=True)


ONE_OF: dict[str, type[Params]] = {
    "Int64": taking(v=(Int64(), None)),
    "Int": taking(v=(Int(), None)),
    "UInt64": taking(v=(UInt64(), 0)),
    "Flag": taking(v=(Flag(), False)),
    "Text": taking(v=(Text(), "")),
    "Texts": taking(v=(Texts(), ())),
    "Hash": taking(v=(Hash(), b"")),
    "Bytes": taking(v=(Bytes(), b"")),
    "HexHash": taking(v=(HexHash(), b"")),
    "Page": taking(height=(Int64(), None), page=(Int(), None), per_page=(Int(), None)),
    "None": NoParams,
}


def uri(route: str, **values: str) -> Params:
    found: Params = LOADERS[route].from_uri(values)
    return found


def from_json(route: str, params: str) -> Params:
    found: Params = LOADERS[route].from_json(params.encode())
    return found


@pytest.mark.parametrize(
    ("route", "name", "text", "value"),
    [
        ("block", "height", '"5"', 5),
        ("block", "height", "5", 5),
        ("block", "height", "-5", -5),
        ("block", "height", '" 5 "', 5),
        ("block", "height", '"null"', 0),
        ("block", "height", "", None),
        ("block", "height", "null", None),
        ("block", "bogus", "1", None),
        ("validators", "page", '"1"', 1),
        ("genesis_chunked", "chunk", "18446744073709551615", (1 << 64) - 1),
        ("tx", "prove", "true", True),
        ("tx", "prove", " false ", False),
        ("tx", "prove", " null ", False),
        ("tx", "hash", "0x00Ff", b"\x00\xff"),
        ("tx", "hash", "0X", b""),
        ("tx", "hash", '"00"', b"00"),
        ("tx", "hash", "[1, 255,null]", b"\x01\xff\x00"),
        ("tx", "hash", "[]", b""),
        ("tx", "hash", " null", b""),
        ("header_by_hash", "hash", '"00"', b"00"),
        ("header_by_hash", "hash", "0x00", b"\x00"),
        ("abci_query", "data", '"na\\"me"', b'na"me'),
        ("abci_query", "path", "0x2f73746f7265", "/store"),
        ("abci_query", "path", '"\\ud800"', "\ufffd"),
        ("abci_query", "path", " null", ""),
        ("broadcast_tx_sync", "tx", '"a=b"', b"a=b"),
        ("broadcast_tx_sync", "tx", ' "YT1i"', b"a=b"),
    ],
)
def test_a_uri_is_read(route: str, name: str, text: str, value: object) -> None:
    found = uri(route, **{name: text})

    assert getattr(found, name, None) == value


# Texts of a live node of CometBFT 0.38, and of its source.
@pytest.mark.parametrize(
    ("route", "name", "text", "reason"),
    [
        *(
            (
                "block",
                "height",
                text,
                f'invalid 64-bit integer encoding "{text}", expected string',
            )
            for text in ("abc", "1.5", "true", "'5'", "+5", " 5")
        ),
        (
            "block",
            "height",
            'a"\\é\x01\n\u200b\U000e0001',
            "invalid 64-bit integer encoding"
            ' "a\\"\\\\é\\x01\\n\\u200b\\U000e0001", expected string',
        ),
        ("block", "height", "007", "invalid character '0' after top-level value"),
        (
            "block",
            "height",
            "9223372036854775808",
            "json: cannot unmarshal number 9223372036854775808 into Go value of type int64",
        ),
        (
            "block",
            "height",
            '"1.5"',
            "json: cannot unmarshal number 1.5 into Go value of type int64",
        ),
        (
            "block",
            "height",
            '"true"',
            "json: cannot unmarshal bool into Go value of type int64",
        ),
        ("block", "height", "0x05", "got a hex string arg, but expected 'int64'"),
        ("block", "height", '"', "unexpected end of JSON input"),
        ("validators", "page", "0x05", "got a hex string arg, but expected 'int'"),
        (
            "validators",
            "per_page",
            '"[]"',
            "json: cannot unmarshal array into Go value of type int",
        ),
        (
            "unconfirmed_txs",
            "limit",
            '"{}"',
            "json: cannot unmarshal object into Go value of type int",
        ),
        (
            "genesis_chunked",
            "chunk",
            "-1",
            "json: cannot unmarshal number -1 into Go value of type uint",
        ),
        ("tx", "prove", "1", "json: cannot unmarshal number into Go value of type bool"),
        ("tx", "prove", '"true"', "json: cannot unmarshal string into Go value of type bool"),
        ("tx", "prove", "True", f"invalid character 'T' {NO_VALUE}"),
        ("tx", "prove", "maybe", f"invalid character 'm' {NO_VALUE}"),
        ("tx", "prove", "0x01", "got a hex string arg, but expected 'bool'"),
        ("tx", "hash", "0xzz", "encoding/hex: invalid byte: U+007A 'z'"),
        ("tx", "hash", "0x0\n", "encoding/hex: invalid byte: U+000A"),
        ("tx", "hash", "0x0", "encoding/hex: odd length hex string"),
        ("tx", "hash", "abc", f"invalid character 'a' {NO_VALUE}"),
        ("tx", "hash", "é", f"invalid character 'Ã' {NO_VALUE}"),
        ("tx", "hash", "123", "json: cannot unmarshal number into Go value of type []uint8"),
        (
            "tx",
            "hash",
            "[1,256]",
            "json: cannot unmarshal number 256 into Go value of type uint8",
        ),
        ("tx", "hash", '[1,"2"]', "json: cannot unmarshal string into Go value of type uint8"),
        ("header_by_hash", "hash", "abc", "invalid hex string: abc"),
        ("abci_query", "data", "abc", "invalid hex string: abc"),
        ("abci_query", "data", "123", "invalid hex string: 123"),
        ("abci_query", "path", "/store", f"invalid character '/' {NO_VALUE}"),
        ("abci_query", "path", '"/store', "unexpected end of JSON input"),
        (
            "broadcast_tx_sync",
            "tx",
            "123",
            "json: cannot unmarshal number into Go value of type types.Tx",
        ),
        (
            "tx_search",
            "query",
            "tx.height=1",
            "invalid character 'x' in literal true (expecting 'r')",
        ),
        ("tx_search", "order_by", "asc", f"invalid character 'a' {NO_VALUE}"),
    ],
)
def test_a_uri_is_refused_in_go_s_words(route: str, name: str, text: str, reason: str) -> None:
    with pytest.raises(InvalidParams) as caught:
        uri(route, **{name: text})

    assert caught.value.text == IN_URI + reason


@pytest.mark.parametrize(
    ("route", "params", "name", "value"),
    [
        ("block", '{"height":"5","more":1}', "height", 5),
        ("block", '{"Height":"5"}', "height", None),
        ("block", '{"height":null}', "height", None),
        ("block", "null", "height", None),
        ("block", "{}", "height", None),
        ("block", "", "height", None),
        ("block", ' [ "5" ] ', "height", 5),
        ("validators", '["5",null,"7"]', "per_page", 7),
        ("blockchain", '["1","2"]', "max_height", 2),
        ("tx", '{"hash":"AP8=","prove":true}', "hash", b"\x00\xff"),
        ("tx", '{"hash":"AP\\n8="}', "hash", b"\x00\xff"),
        ("header_by_hash", '{"hash":"00fF"}', "hash", b"\x00\xff"),
        ("abci_query", '{"data":"6e"}', "data", b"n"),
        ("abci_query", '{"path":"/\\u00e9"}', "path", "/é"),
        ("events", '{"filter":{"query":"x"}}', "filter", "x"),
    ],
)
def test_json_is_read(route: str, params: str, name: str, value: object) -> None:
    assert getattr(from_json(route, params), name) == value


def test_64_hex_digits_are_base64() -> None:
    # In CometBFT a hash in hex is valid base64, and so means another hash.
    assert from_json("tx", json.dumps(["ab" * 32, False])) == LOADERS["tx"].from_json(
        json.dumps({"hash": b64encode(bytes.fromhex("69b69b" * 16)).decode()}).encode()
    )


@pytest.mark.parametrize(
    ("route", "params", "reason"),
    [
        ("block", '{"height":5}', 'invalid 64-bit integer encoding "5", expected string'),
        (
            "block",
            '{"height":[1, 2]}',
            'invalid 64-bit integer encoding "[1, 2]", expected string',
        ),
        ("block", '{"height":"abc"}', f"invalid character 'a' {NO_VALUE}"),
        ("block", '{"height":"0x5"}', "invalid character 'x' after top-level value"),
        ("block", '{"height":""}', "unexpected end of JSON input"),
        ("validators", '["1",2,"3"]', 'invalid 64-bit integer encoding "2", expected string'),
        ("tx", '{"hash":"0x000"}', "illegal base64 data at input byte 4"),
        ("tx", '{"hash":"AP8"}', "illegal base64 data at input byte 0"),
        ("tx", '{"hash":"+9//="}', "illegal base64 data at input byte 4"),
        ("tx", '{"hash":"!"}', "illegal base64 data at input byte 0"),
        ("tx", '{"hash":"AA="}', "illegal base64 data at input byte 3"),
        ("tx", '{"hash":"AA=A"}', "illegal base64 data at input byte 2"),
        ("tx", '{"hash":"AA==A"}', "illegal base64 data at input byte 4"),
        ("tx", '{"hash":true}', "json: cannot unmarshal bool into Go value of type []uint8"),
        (
            "broadcast_tx_sync",
            '{"tx":{}}',
            "json: cannot unmarshal object into Go value of type types.Tx",
        ),
        ("header_by_hash", '{"hash":"0x00"}', "encoding/hex: invalid byte: U+0078 'x'"),
        ("abci_query", '{"data":"bmFtZQ=="}', "encoding/hex: invalid byte: U+006D 'm'"),
        ("abci_query", '{"data":[1]}', "invalid hex string: [1]"),
        (
            "abci_query",
            '{"path":1}',
            "json: cannot unmarshal number into Go value of type string",
        ),
        ("tx", '{"prove":"true"}', "json: cannot unmarshal string into Go value of type bool"),
        ("tx", '{"prove":1}', "json: cannot unmarshal number into Go value of type bool"),
        (
            "validators",
            '["5"]',
            "expected 3 parameters ([height page per_page]), got 1 ([[34 53 34]])",
        ),
        ("validators", "[]", "expected 3 parameters ([height page per_page]), got 0 ([])"),
        (
            "block",
            "[null, 12]",
            "expected 1 parameters ([height]), got 2 ([[110 117 108 108] [49 50]])",
        ),
        ("health", "[1]", "expected 0 parameters ([]), got 1 ([[49]])"),
        *(
            (
                route,
                params,
                f"unknown type for JSON params: json: cannot unmarshal {kind} into"
                " Go value of type []json.RawMessage. Expected map or array",
            )
            for route in ("block", "health")
            for params, kind in (('"x"', "string"), ("5", "number"), ("true", "bool"))
        ),
    ],
)
def test_json_is_refused_in_go_s_words(route: str, params: str, reason: str) -> None:
    with pytest.raises(InvalidParams) as caught:
        from_json(route, params)

    assert caught.value.text == IN_JSON + reason


# Go: encoding/json/scanner.go.
@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ("", "unexpected end of JSON input"),
        (" ", "unexpected end of JSON input"),
        ("[1,", "unexpected end of JSON input"),
        ("[1", "unexpected end of JSON input"),
        ('{"a":1', "unexpected end of JSON input"),
        ("tru", "invalid character ' ' in literal true (expecting 'e')"),
        ("faLse", "invalid character 'L' in literal false (expecting 'l')"),
        ("nil", "invalid character 'i' in literal null (expecting 'u')"),
        ("-", "invalid character ' ' in numeric literal"),
        ("-a", "invalid character 'a' in numeric literal"),
        ("1.", "invalid character ' ' after decimal point in numeric literal"),
        ("1e", "invalid character ' ' in exponent of numeric literal"),
        ("1e+x", "invalid character 'x' in exponent of numeric literal"),
        ("[,", f"invalid character ',' {NO_VALUE}"),
        ("[1 2]", "invalid character '2' after array element"),
        ("[1}", "invalid character '}' after array element"),
        ("[1,]", f"invalid character ']' {NO_VALUE}"),
        ("{1", "invalid character '1' looking for beginning of object key string"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a":1 "b"', "invalid character '\"' after object key:value pair"),
        ('{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        ('"\n"', "invalid character '\\n' in string literal"),
        ('"\\x"', "invalid character 'x' in string escape code"),
        ('"\\', "invalid character ' ' in string escape code"),
        ('"\\u12g4"', "invalid character 'g' in \\u hexadecimal character escape"),
        ("'", f"invalid character '\\'' {NO_VALUE}"),
        ("\x7f", f"invalid character '\\x7f' {NO_VALUE}"),
        ("{}}", "invalid character '}' after top-level value"),
        ("[" * 10_001, "exceeded max depth"),
    ],
)
def test_json_errors_equal_those_of_go(document: str, reason: str) -> None:
    with pytest.raises(gojson.GoError) as caught:
        gojson.check(document.encode())

    assert str(caught.value) == reason


def shown(value: Any) -> str:
    """Return the value as the program that asked CometBFT prints it."""
    match value:
        case bytes():
            return value.hex()
        case str():
            return value.encode().hex()
        case tuple():
            return ",".join(map(shown, value))
        case bool():
            return str(value).lower()
        case _:
            return "nil" if value is None else str(value)


# CometBFT 0.38.25: each line has a kind, a form, what was sent, and what the node's own
# handlers read, served from functions that take one parameter of that type.
@pytest.mark.parametrize(
    "line", GOLDEN.read_text(encoding="utf-8").splitlines(), ids=lambda line: line[:60]
)
def test_every_text_is_read_as_the_node_reads_it(line: str) -> None:
    kind, form, sent, status, text = json.loads(line)
    loader = ParamLoader(ONE_OF[kind], COMET_PARAMS)
    raw = f'{{"v":{sent}}}' if form == "json" else sent.strip()

    def read() -> Any:
        return loader.from_uri({"v": sent}) if form == "uri" else loader.from_json(raw.encode())

    if status == "ok":
        found = read()
        assert text == (shown(found.v) if hasattr(found, "v") else "ok")
    else:
        with pytest.raises(InvalidParams) as caught:
            read()
        assert (str(caught.value.code), caught.value.text) == (status, text)


@settings(deadline=None)
@given(any_json, st.sampled_from([None, 1]), st.booleans())
def test_json_of_python_is_accepted(
    value: object, indent: int | None, ascii_only: bool
) -> None:
    gojson.check(json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode())


@settings(deadline=None)
@given(st.text() | st.text(alphabet='[]{}",:\\truefalsn0123456789.-+eE \n'))
@example("\ufeff1")
def test_the_scanner_accepts_what_python_accepts(text: str) -> None:
    def constant(name: str) -> None:
        raise ValueError(name)

    taken = True
    try:
        json.loads(text, parse_constant=constant)
    except ValueError:
        taken = False
    refused = False
    try:
        gojson.check(text.encode("utf-8", "replace"))
    except gojson.GoError:
        refused = True
    assert taken is not refused


@settings(deadline=None)
@given(st.lists(any_json))
def test_the_elements_of_an_array_are_found(values: list[object]) -> None:
    found = gojson.elements(json.dumps(values, indent=1).encode())

    assert [json.loads(each) for each in found] == json.loads(json.dumps(values))


@settings(deadline=None)
@given(
    st.integers(-(1 << 63), (1 << 63) - 1), st.booleans(), st.text(), st.binary(), st.binary()
)
def test_valid_values_are_read_from_uri_and_json(
    number: int, flag: bool, text: str, data: bytes, tx: bytes
) -> None:
    for kind in (Int64, Int):
        assert READERS[kind].from_uri(str(number)) == number
        assert READERS[kind].from_json(f'"{number}"'.encode()) == number
    assert READERS[Flag].from_json(json.dumps(flag).encode()) is flag
    assert READERS[Text].from_uri(json.dumps(text)) == text
    assert READERS[Text].from_json(json.dumps(text).encode()) == text
    assert READERS[HexHash].from_uri("0x" + data.hex()) == data
    assert READERS[HexHash].from_json(f'"{data.hex().upper()}"'.encode()) == data
    for slices in (Bytes, Hash):
        assert READERS[slices].from_uri("0X" + tx.hex()) == tx
        assert READERS[slices].from_uri(json.dumps(text)) == text.encode()
        assert READERS[slices].from_json(b'"' + b64encode(tx) + b'"') == tx
        assert READERS[slices].from_uri(json.dumps(list(tx))) == tx


@settings(deadline=None, max_examples=300)
@given(st.text() | any_json.map(json.dumps))
@example('"' + "1" * 5000 + '"')
@example("[" * 5000)
@example("\ud800")
def test_whatever_is_written_in_a_uri_is_read_or_refused(text: str) -> None:
    for reader in READERS.values():
        with suppress(ValueError):
            reader.from_uri(text)
    for loader in LOADERS.values():
        with suppress(InvalidParams):
            loader.from_uri(dict.fromkeys((spec.wire for spec in loader.specs), text))


@settings(deadline=None)
@given(any_json)
def test_whatever_is_written_in_json_is_read_or_refused(value: object) -> None:
    for loader in LOADERS.values():
        by_name = dict.fromkeys((spec.wire for spec in loader.specs), value)
        for params in (value, [value], by_name, list(by_name.values())):
            with suppress(InvalidParams):
                loader.from_json(json.dumps(params).encode())


LONG = 100_000


@pytest.mark.parametrize(
    ("document", "kind", "found"),
    [
        (["a"] * LONG, Texts(), ("a",) * LONG),
        (["a", None] * LONG, Texts(), ("a", "") * LONG),
        ([None] * LONG, Bytes(), bytes(LONG)),
        ("\ud800" * LONG, Text(), "\ufffd" * LONG),
    ],
)
def test_long_values_are_read_without_the_scanner(
    monkeypatch: pytest.MonkeyPatch, document: object, kind: ParamField, found: object
) -> None:
    # Python's scanner takes half a second for a megabyte, the maximum of a form.
    monkeypatch.setattr(gojson, "_Scanner", None)

    assert READERS[type(kind)].from_uri(json.dumps(document)) == found


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('["a"' + " " * LONG, "Input data was truncated"),
        ("9" * LONG, "cannot unmarshal number"),
        ("[" * LONG + "]" * LONG, "nested too deeply"),
        ("[NaN," + "1," * LONG + "1]", "JSON is malformed"),
        (json.dumps(["a", "\ud800"] * LONG), "a string is not valid Unicode"),
        ("[5," + '"a",' * LONG + '"a"]', "json: cannot unmarshal number"),
    ],
)
def test_long_values_are_refused_without_the_scanner(
    monkeypatch: pytest.MonkeyPatch, text: str, reason: str
) -> None:
    monkeypatch.setattr(gojson, "_Scanner", None)

    with pytest.raises(ValueError, match=reason):
        READERS[Texts].from_uri(text)


def test_a_long_array_in_the_place_of_parameters_is_not_printed() -> None:
    with pytest.raises(InvalidParams) as caught:
        LOADERS["block"].from_json(b"[" + b"0," * 20_000 + b"0]")

    assert str(caught.value).endswith("expected 1 parameters ([height]), got 20001 ([...])")


@dataclass(frozen=True, slots=True)
class Own(Params):
    """One kind that CometBFT has, and one that it does not have."""

    needed: str = param(Text(), doc="Must be given.")
    after: tuple[int, int] | None = param(Cursor(), doc="Must be given.")


def test_custom_kinds_use_their_readers() -> None:
    loader = ParamLoader(Own, COMET_PARAMS)

    assert loader.from_uri({"after": '""'}) == Own("", None)
    with pytest.raises(
        InvalidParams, match=": " + IN_JSON + "expected a cursor from an earlier"
    ):
        loader.from_json(b'["x",5]')
    with pytest.raises(
        InvalidParams, match=": " + IN_URI + "after: expected a value, got none"
    ):
        loader.from_uri({})


@pytest.mark.parametrize("raw", [b"", b"null", b"{}", b"[]"])
def test_a_route_without_parameters_takes_none(raw: bytes) -> None:
    assert ParamLoader(NoParams, COMET_PARAMS).from_json(raw) == NoParams()
