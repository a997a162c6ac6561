"""Transactions decoded and encoded by the gateway."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from flask_noderpc.cosmos.rest import reader
from flask_noderpc.cosmos.testing import BankNode
from flask_noderpc.protocol.protobuf import message

from ..bank.bank_txs import KEYS, Draft, any_of, coin, send

GRANT, STAKE = "cosmos.feegrant.v1beta1", "cosmos.staking.v1beta1.StakeAuthorization"


def post(node: BankNode, path: str, body: object) -> Any:
    data = json.dumps(body).encode()
    with urlopen(Request(f"{node.url}/cosmos/tx/v1beta1/{path}", data)) as response:
        return json.load(response)


def refused(node: BankNode, path: str, body: object) -> tuple[int, str]:
    with pytest.raises(HTTPError) as error:
        post(node, path, body)
    return error.value.code, json.load(error.value)["message"]


def granted(node: BankNode) -> bytes:
    granter, grantee, *_ = node.accounts
    allowance = {
        "@type": f"/{GRANT}.PeriodicAllowance",
        "basic": {"spend_limit": [], "expiration": "2999-01-02T03:04:05.006Z"},
        "period": "-3600.500s",
        "period_spend_limit": [{"denom": "stake", "amount": "7"}],
        "period_can_spend": [],
        "period_reset": "2026-01-01T00:00:00Z",
    }
    fields = {"granter": granter, "grantee": grantee, "allowance": allowance}
    name = f"{GRANT}.MsgGrantAllowance"
    return any_of(f"/{name}", reader.read(name, fields))


def authorized(node: BankNode) -> bytes:
    granter, grantee, *_ = node.accounts
    given = {"@type": f"/{STAKE}", "authorization_type": "AUTHORIZATION_TYPE_DELEGATE"}
    fields = {"granter": granter, "grantee": grantee, "grant": {"authorization": given}}
    name = "cosmos.authz.v1beta1.MsgGrant"
    return any_of(f"/{name}", reader.read(name, fields))


def test_a_decoded_transaction_is_encoded_to_the_same_bytes(noderpc_bank: BankNode) -> None:
    node = noderpc_bank
    sender, recipient, *_ = node.accounts
    messages = send(sender, recipient), granted(node), authorized(node)
    raw = Draft(messages, 1, 0, KEYS[0], memo="hi <&> é", fee=(coin(5, "stake"),)).signed()
    given = b64encode(raw).decode()

    decoded = post(node, "decode", {"tx_bytes": given})

    body = decoded["tx"]["body"]
    assert body["memo"] == "hi <&> é"
    assert body["messages"][1]["allowance"]["period"] == "-3600.500s"
    assert body["messages"][2]["grant"]["authorization"]["authorization_type"] == (
        "AUTHORIZATION_TYPE_DELEGATE"
    )
    assert post(node, "encode", decoded) == {"tx_bytes": given}


def test_a_transaction_in_amino_is_encoded_and_decoded(noderpc_bank: BankNode) -> None:
    node = noderpc_bank
    coins = [{"denom": "stake", "amount": "7"}]
    sent = {"from_address": node.accounts[0], "to_address": node.accounts[1], "amount": coins}
    key = {
        "type": "tendermint/PubKeySecp256k1",
        "value": b64encode(KEYS[0].public.key).decode(),
    }
    value = {
        "msg": [{"type": "cosmos-sdk/MsgSend", "value": sent}],
        "fee": {"amount": coins, "gas": "200000", "granter": node.accounts[2]},
        "signatures": [{"pub_key": key, "signature": b64encode(b"signed").decode()}],
        "memo": "hi",
        "timeout_height": "7",
    }
    given = json.dumps({"type": "cosmos-sdk/StdTx", "value": value}, separators=(",", ":"))

    encoded = post(node, "encode/amino", {"amino_json": given})

    assert b64decode(encoded["amino_binary"])[:4].hex() == "282816a9"
    assert post(node, "decode/amino", encoded) == {"amino_json": given}
    assert refused(node, "encode/amino", {}) == (400, "invalid empty tx json")
    assert refused(node, "decode/amino", {}) == (400, "invalid empty tx bytes")
    status, text = refused(node, "encode/amino", {"amino_json": "{}"})
    assert (status, text) == (
        500,
        "JSON encoding of interfaces require non-empty type field.",
    )


def test_bytes_that_are_not_a_transaction_are_refused(noderpc_bank: BankNode) -> None:
    node = noderpc_bank
    assert refused(node, "decode", {}) == (400, "invalid empty tx bytes")
    assert refused(node, "encode", {}) == (400, "invalid empty tx")
    for raw, text in (
        (b"what is this", "expected 2 wire type, got 7"),
        (message(4, b""), 'errUnknownField "*tx.TxRaw": {TagNum: 4, WireType:"bytes"}'),
        (
            message(1, message(1, any_of("/none", b""))),
            "unable to resolve type URL /none",
        ),
    ):
        shown = f"codespace sdk code 2: tx parse error: {text}"
        found = refused(node, "decode", {"tx_bytes": b64encode(raw).decode()})
        assert found == (500, shown)


@pytest.mark.parametrize("period", ["", "1", "1d", "1s "])
def test_a_duration_of_another_form_is_refused(noderpc_bank: BankNode, period: object) -> None:
    tx = post(
        noderpc_bank,
        "decode",
        {"tx_bytes": b64encode(Draft((granted(noderpc_bank),), 0, 0).signed()).decode()},
    )
    tx["tx"]["body"]["messages"][0]["allowance"]["period"] = period
    status, text = refused(noderpc_bank, "encode", tx)
    assert (status, text.partition(":")[0]) == (400, "bad Duration")


def test_a_transaction_without_parts_is_encoded(noderpc_bank: BankNode) -> None:
    found = post(noderpc_bank, "encode", {"tx": {"body": {}, "auth_info": {}}})
    assert found == {"tx_bytes": None}
