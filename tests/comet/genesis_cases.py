"""Valid, invalid and unusual genesis documents, by name.

``python -m tests.comet.genesis_cases OUTPUT VERSION=PROGRAM …`` records how Go's readers read
them: the programs that ``go build`` makes of tests/clients/go/genesis for CometBFT 0.38, 0.40
and 1.0, and of tests/clients/sdk/genesisreader for the Cosmos SDK, whose reader is the same in
0.50 and 0.53.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

from flask_noderpc.protocol.comet.keys import PrivateKey

Json = Any
ABSENT = object()
COMETBFT = ("0.38", "0.40", "1.0")
SDK = "sdk-0.53"
READERS = (*COMETBFT, SDK)
GOLDEN = Path(__file__).parents[1] / "golden" / "genesis_files.json.gz"

KEYS = [PrivateKey(bytes([number]) * 32) for number in (1, 2)]


def validator(number: int = 0, **changes: Json) -> dict[str, Json]:
    key = KEYS[number]
    value = b64encode(key.public.value).decode()
    return {
        "address": key.address.hex().upper(),
        "pub_key": {"type": "tendermint/PubKeyEd25519", "value": value},
        "power": "10",
        "name": f"validator {number}",
        **changes,
    }


PARAMS: dict[str, Json] = {
    "block": {"max_bytes": "2000000", "max_gas": "3000000"},
    "evidence": {
        "max_age_num_blocks": "300000",
        "max_age_duration": "172800000000001",
        "max_bytes": "10000",
    },
    "validator": {"pub_key_types": ["ed25519", "secp256k1"]},
    "version": {"app": "4"},
    "abci": {"vote_extensions_enable_height": "5"},
    "authority": {"authority": "cosmos1authority"},
    "synchrony": {"precision": "500000000", "message_delay": "2000000000"},
    "feature": {"vote_extensions_enable_height": "7", "pbts_enable_height": "8"},
}
COMET: dict[str, Json] = {
    "genesis_time": "2020-09-13T12:26:40.000000001Z",
    "chain_id": "by-hand",
    "initial_height": "3",
    "consensus_params": PARAMS,
    "validators": [validator(0), validator(1, power="20")],
    "app_hash": "AABB",
    "app_state": {"b": [1.5, "é"], "a": None},
}
APP: dict[str, Json] = {
    "app_name": "simd",
    "app_version": "0.50.14",
    "genesis_time": "2024-05-06T07:08:09.123456789+02:00",
    "chain_id": "by-hand",
    "initial_height": 3,
    "app_hash": None,
    "app_state": {"auth": {}},
    "consensus": {"validators": [validator(0)], "params": PARAMS},
}

_WRONG_TYPES: tuple[Json, ...] = (5, 1.5, True, [], {}, "x", "")
_LONG = str(1 << 63)
_INTEGERS: tuple[Json, ...] = (
    *("0", "1", "-1", "-2", "-0", "+1", "01", " 7", "null", "1.0", "1e3", "0x10", "7\n", "𝟕"),
    *(_LONG, "-" + _LONG, str((1 << 63) - 1), "9" * 25, "104857600", "104857601", "1" * 5000),
)
_NUMBERS: tuple[Json, ...] = (0, 1, -1, "1", 1 << 63, (1 << 63) - 1, "")
_TIMES: tuple[Json, ...] = (
    "0001-01-01T00:00:00Z",
    "2020-01-02T03:04:05Z",
    "2020-01-02T03:04:05.5Z",
    "2020-01-02T03:04:05.1234567891Z",
    "2020-01-02T03:04:05,5Z",
    "2020-01-02T03:04:05.Z",
    "2020-01-02t03:04:05Z",
    "2020-01-02T03:04:05z",
    "2020-01-02T03:04:05",
    "2020-01-02 03:04:05Z",
    "2020-01-02",
    "2020-01-02T3:04:05Z",
    "2021-02-29T00:00:00Z",
    "2020-01-02T24:00:00Z",
    "2020-01-02T23:59:60Z",
    "2020-01-02T03:04:05+00:00",
    "2020-01-02T03:04:05-07:30",
    "2020-01-02T03:04:05+23:59",
    "2020-01-02T03:04:05+24:00",
    "2020-01-02T03:04:05+24:01",
    "2020-01-02T03:04:05+25:00",
    "2020-01-02T03:04:05+01:60",
    "2020-01-02T03:04:05+0100",
    "0000-01-01T00:00:00Z",
    "0001-01-01T00:00:00+01:00",
    "9999-12-31T23:59:59.999999999Z",
    "9999-12-31T23:59:59-01:00",
    "10000-01-01T00:00:00Z",
    "yesterday",
)
_HEX: tuple[Json, ...] = ("aabb", "AAB", "0xAA", "AA" * 40, "zz", "=", "AAAA", None, " AA")
_BASE64: tuple[Json, ...] = (
    "AQI=",
    "AQI",
    "A",
    "AQ==\n",
    "A Q==",
    "-_==",
    [1, 2],
    [300],
    [None],
)
_TEXTS: tuple[Json, ...] = ("x" * 50, "x" * 51, "é" * 25, "é" * 26, "a b", "a\nb", "\0", None)
_KEYS: tuple[Json, ...] = (
    {"type": "tendermint/PubKeyEd25519"},
    {"type": "tendermint/PubKeyEd25519", "value": None},
    {"type": "tendermint/PubKeyEd25519", "value": "AQ=="},
    {"type": "tendermint/PubKeyEd25519", "value": "%"},
    {"type": "tendermint/PubKeyEd25519", "value": list(KEYS[0].public.value)},
    {"type": "tendermint/PubKeyUnknown", "value": "AQ=="},
    {"type": "", "value": "AQ=="},
    {"type": None, "value": "AQ=="},
    {"value": "AQ=="},
    {"Type": "tendermint/PubKeyEd25519", "VALUE": b64encode(KEYS[0].public.value).decode()},
    b64encode(KEYS[0].public.value).decode(),
)
_SECP256K1 = {
    "type": "tendermint/PubKeySecp256k1",
    "value": "Annu51tudVpvUCuH7sNSrmcdlYe2ZrAOc/l1bMgLU5H4",
}
_TYPE_LISTS: tuple[Json, ...] = (
    ["ed25519"],
    ["ed25519", "ed25519"],
    ["ed25519", "unknown"],
    ["secp256k1eth"],
    ["bls12_381"],
    [None],
    [5],
    None,
)


def _changed(document: Json, path: tuple[str | int, ...], value: Json) -> Json:
    copy = deepcopy(document)
    at = copy
    for step in path[:-1]:
        at = at[step]
    if value is ABSENT:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return copy


def _of_params(prefix: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Json]]:
    for group, members in PARAMS.items():
        at = (*prefix, group)
        yield from ((at, value) for value in (ABSENT, None, *_WRONG_TYPES))
        for name, member in members.items():
            values = _INTEGERS if isinstance(member, str) else _TYPE_LISTS
            if name == "authority":
                values = ("a" * 256, "a" * 257, "é" * 129)
            for value in (ABSENT, None, *_WRONG_TYPES, *values):
                yield (*at, name), value


def _of_validators(
    prefix: tuple[str | int, ...],
) -> Iterator[tuple[tuple[str | int, ...], Json]]:
    wrong = (ABSENT, None, *_WRONG_TYPES)
    yield from ((prefix, value) for value in wrong)
    lists: tuple[Json, ...] = (
        [None],
        [5],
        [{}],
        [validator(0), validator(0)],
        [validator(0, power=str((1 << 60) - 1))],
        [validator(0, power=str(1 << 60))],
        [validator(0, power=str(1 << 59)), validator(1, power=str(1 << 59))],
        [validator(0, address="", pub_key=_SECP256K1)],
        [validator(0, extra=5)],
    )
    yield from ((prefix, value) for value in lists)
    member = (*prefix, 0)
    yield from (((*member, "address"), value) for value in (*wrong, *_HEX, "00" * 20))
    lower = KEYS[0].address.hex()
    yield (*member, "address"), lower
    yield from (((*member, "pub_key"), value) for value in (*wrong, *_KEYS))
    yield from (((*member, "power"), value) for value in (*wrong, *_INTEGERS))
    yield from (((*member, "name"), value) for value in (*wrong, "é\n"))


def _comet() -> Iterator[tuple[tuple[str | int, ...], Json]]:
    wrong = (ABSENT, None, *_WRONG_TYPES)
    yield from ((("genesis_time",), value) for value in (*wrong, *_TIMES))
    yield from ((("chain_id",), value) for value in (*wrong, *_TEXTS))
    yield from ((("initial_height",), value) for value in (*wrong, *_INTEGERS))
    yield from ((("app_hash",), value) for value in (*wrong, *_HEX))
    yield from ((("app_state",), value) for value in wrong)
    yield from ((("consensus_params",), value) for value in wrong)
    yield from _of_params(("consensus_params",))
    yield from _of_validators(("validators",))
    yield ("unknown",), 5
    yield ("consensus_params", "unknown"), 5
    yield ("consensus_params", "block", "time_iota_ms"), "1000"


def _app() -> Iterator[tuple[tuple[str | int, ...], Json]]:
    wrong = (ABSENT, None, *_WRONG_TYPES)
    for name in ("app_name", "app_version"):
        yield from (((name,), value) for value in wrong)
    yield from ((("genesis_time",), value) for value in (*wrong, *_TIMES))
    yield from ((("chain_id",), value) for value in (*wrong, *_TEXTS))
    yield from ((("initial_height",), value) for value in (*wrong, *_NUMBERS))
    yield from ((("app_hash",), value) for value in (*wrong, *_BASE64))
    yield from ((("app_state",), value) for value in wrong)
    yield from ((("consensus",), value) for value in wrong)
    yield from ((("consensus", "params"), value) for value in wrong)
    yield from _of_params(("consensus", "params"))
    yield from _of_validators(("consensus", "validators"))
    yield ("unknown",), 5
    yield ("consensus", "unknown"), 5
    yield ("Chain_ID",), "CAPITALS"
    yield ("CHAIN_ID",), None


def _name(form: str, path: tuple[str | int, ...], value: Json) -> str:
    shown = "absent" if value is ABSENT else json.dumps(value)
    if len(shown) > 70:
        shown = f"{shown[:60]}… ({len(shown)})"
    return f"{form}: {'.'.join(map(str, path))} = {shown}"


def _nested(depth: int) -> str:
    return f'{{"chain_id": "a", "app_state": {"[" * depth}1{"]" * depth}}}'


def _texts() -> Iterator[tuple[str, str]]:
    """Yield documents whose exact text matters."""
    whole = json.dumps(COMET)
    for name, text in {
        "empty": "",
        "null": "null",
        "a list": "[]",
        "a string": '"x"',
        "cut off": whole[:-1],
        "two documents": whole + whole,
        "spaces around it": f" \n\t{whole}\r\n ",
        "a comma too many": '{"chain_id": "a",}',
        "a comment": '{"chain_id": "a"} // x',
        "single quotes": "{'chain_id': 'a'}",
        "a member twice": '{"chain_id": "a", "chain_id": "b"}',
        "a member twice, the second one null": '{"chain_id": "a", "chain_id": null}',
        "a group twice": whole.replace(
            '"block":', '"block": {"max_bytes": "5", "max_gas": "6"}, "block":'
        ),
        "capital letters": '{"chain_id": "a", "Chain_ID": "b"}',
        "only capital letters": '{"CHAIN_ID": "b"}',
        "an escaped name": '{"\\u0063hain_id": "a"}',
        "an escaped integer": '{"chain_id": "a", "initial_height": "\\u0031"}',
        "an escaped app hash": '{"chain_id": "a", "app_hash": "\\u0041A"}',
        "an escaped time": '{"chain_id": "a", "genesis_time": "2020-01-02T03:04:05\\u005a"}',
        "a lone surrogate": '{"chain_id": "a", "app_state": "\\ud800"}',
        "an invalid escape": '{"chain_id": "a", "app_state": "\\q"}',
        "a state with spaces": '{"chain_id": "a", "app_state": {"b" : [1.50],  "a": 1e999 }}',
        "nested deeply": _nested(900),
        "nested too deeply": _nested(12_000),
        "only a chain id": '{"chain_id": "a"}',
    }.items():
        yield f"text: {name}", text
    app, height = json.dumps(APP), '"initial_height": 3'
    for name, text in {
        "capital letters": app.replace('"chain_id"', '"Chain_ID"'),
        "capital letters of consensus": app.replace('"consensus"', '"CONSENSUS"'),
        "a member twice": app.replace('"chain_id"', '"chain_id": "first", "chain_id"'),
        "a member twice, then null": app.replace(
            '"app_state"', '"chain_id": null, "app_state"'
        ),
        "consensus twice": app.replace('"consensus"', '"consensus": {}, "consensus"'),
        "capital letters in consensus": app.replace('"validators"', '"Validators"'),
        "only a chain id and a height": '{"chain_id": "a", "initial_height": 1}',
        "only a chain id and consensus": '{"chain_id": "a", "consensus": {}}',
        "an integer with a fraction": app.replace(
            '"initial_height": 3', '"initial_height": 3.0'
        ),
        "an integer with an exponent": app.replace(
            '"initial_height": 3', '"initial_height": 1e1'
        ),
        "negative zero": app.replace(height, '"initial_height": -0'),
    }.items():
        yield f"app text: {name}", text


def _mixed() -> Iterator[tuple[str, str]]:
    """Yield documents with members of both forms, and shortened documents of public chains."""
    consensus = APP["consensus"]
    old = {
        "block": {"max_bytes": "22020096", "max_gas": "-1", "time_iota_ms": "1000"},
        "evidence": PARAMS["evidence"],
        "validator": {"pub_key_types": ["ed25519"]},
        "version": {},
    }
    for name, document in {
        "consensus and a height in quotes": {**APP, "initial_height": "3"},
        "consensus without a height": _changed(APP, ("initial_height",), ABSENT),
        "a number as height, without consensus": {**COMET, "initial_height": 3},
        "null for consensus": {**COMET, "consensus": None},
        "consensus in CometBFT's form": {**COMET, "consensus": consensus},
        "Tendermint 0.34": {**COMET, "initial_height": "0", "consensus_params": old},
        "cosmoshub-4": {
            **COMET,
            "initial_height": "5200791",
            "app_hash": "",
            "consensus_params": {
                "block": {"max_bytes": "200000", "max_gas": "2000000"},
                "evidence": {
                    "max_age_num_blocks": "1000000",
                    "max_age_duration": "172800000000000",
                    "max_bytes": "50000",
                },
                "validator": {"pub_key_types": ["ed25519"]},
                "version": {},
            },
        },
        "osmosis-1": {
            "genesis_time": "2021-06-18T17:00:00Z",
            "chain_id": "osmosis-1",
            "initial_height": "1",
            "consensus_params": {
                "block": {
                    "max_bytes": "5242880",
                    "max_gas": "6000000",
                    "time_iota_ms": "1000",
                },
                "evidence": {
                    "max_age_num_blocks": "403200",
                    "max_age_duration": "1209600000000000",
                    "max_bytes": "1048576",
                },
                "validator": {"pub_key_types": ["ed25519"]},
                "version": {},
            },
            "app_hash": "",
            "app_state": {},
        },
        "an old gaia": {
            "genesis_time": "2019-12-11T16:11:34Z",
            "chain_id": "cosmoshub-3",
            "consensus_params": {
                "block": {"max_bytes": "200000", "max_gas": "2000000", "time_iota_ms": "1000"},
                "evidence": {"max_age": "1000000"},
                "validator": {"pub_key_types": ["ed25519"]},
            },
            "app_hash": "",
            "app_state": {},
        },
    }.items():
        yield f"mixed: {name}", json.dumps(document)


def cases() -> dict[str, str]:
    """Return all documents by name."""
    found = {_name("CometBFT", *each): json.dumps(_changed(COMET, *each)) for each in _comet()}
    found |= {_name("SDK", *each): json.dumps(_changed(APP, *each)) for each in _app()}
    found |= dict([*_texts(), *_mixed()])
    return {"CometBFT": json.dumps(COMET), "SDK": json.dumps(APP), **found}


def ask(program: str) -> dict[str, Json]:
    """Return the replies of a program to all documents, by name."""
    lines = "".join(json.dumps(text) + "\n" for text in cases().values())
    run = subprocess.run([program], input=lines, capture_output=True, text=True, check=True)
    return dict(zip(cases(), map(json.loads, run.stdout.split("\n")[:-1]), strict=True))


def main() -> None:
    output, *programs = sys.argv[1:]
    said = {version: ask(path) for version, path in (each.split("=") for each in programs)}
    whole = {"documents": cases(), "readers": said}
    text = json.dumps(whole, indent=0, sort_keys=True)
    Path(output).write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
