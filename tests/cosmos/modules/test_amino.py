"""Damaged transactions in amino: they are refused, or have another meaning."""

from __future__ import annotations

from base64 import b64decode
from contextlib import suppress
from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from flask_noderpc.cosmos.bank import BANK_HANDLERS
from flask_noderpc.cosmos.bank.messages import Registry
from flask_noderpc.cosmos.modules import MODULES
from flask_noderpc.cosmos.protocol.amino import InvalidAmino, prefix_of
from flask_noderpc.protocol.protobuf import Message

from .playing import recorded

AMINO = Registry([*BANK_HANDLERS, *(one for each in MODULES for one in each.handlers)]).amino


@cache
def asked(method: str) -> list[bytes]:
    """Return the fields of the recorded requests that the SDK answered."""
    path = f"/cosmos.tx.v1beta1.Service/{method}"
    found = [each for each in recorded("pool")["queries"] if each["path"] == path]
    requests = [b64decode(each["data"]) for each in found if not each["reply"]["code"]]
    return [Message(each).blob(1) for each in requests]


def test_prefixes_are_those_of_the_sdk() -> None:
    known = {
        "cosmos-sdk/StdTx": "282816a9",
        "cosmos-sdk/MsgSend": "a8a3619a",
        "tendermint/PubKeySecp256k1": "eb5ae987",
        "tendermint/PubKeyEd25519": "1624de64",
        "tendermint/PubKeyMultisigThreshold": "22c1f7e2",
    }
    assert {name: prefix_of(name).hex() for name in known} == known


@given(data=st.data())
def test_damaged_bytes_are_refused(data: st.DataObject) -> None:
    raw = bytearray(data.draw(st.sampled_from(asked("TxDecodeAmino"))))
    for _ in range(data.draw(st.integers(1, 3))):
        if len(raw) > 5:
            raw[data.draw(st.integers(4, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with suppress(InvalidAmino):
        AMINO.binary(AMINO.json(bytes(raw)))


@given(data=st.data())
def test_damaged_json_is_refused(data: st.DataObject) -> None:
    document = data.draw(st.sampled_from(asked("TxEncodeAmino"))).decode()
    start = data.draw(st.integers(0, len(document) - 1))
    size = data.draw(st.integers(0, 12))
    added = data.draw(
        st.sampled_from(["", "null", "7", "-1", '"x"', "{}", "[]", "{", "99999999999999999999"])
    )
    with suppress(InvalidAmino):
        AMINO.json(AMINO.binary(document[:start] + added + document[start + size :]))
