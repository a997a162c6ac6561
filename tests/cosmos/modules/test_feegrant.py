"""Grants of fees on a running node: its REST, and genesis documents with grants."""

from __future__ import annotations

import json
from typing import Any

import pytest

from flask_noderpc.cosmos.bank import Bank, dev
from flask_noderpc.cosmos.rest import reader
from flask_noderpc.cosmos.testing import BankNode
from flask_noderpc.domain.genesis import Genesis
from flask_noderpc.errors import ConfigurationError
from flask_noderpc.protocol.comet.hashes import tx_hash
from flask_noderpc.protocol.protobuf import string
from flask_noderpc.testing.chains import GENESIS_TIME, DictState

from ..bank.bank_txs import CHAIN_ID, KEYS, Draft, account, any_of, coin, send
from .test_faults import rest

PACKAGE = "cosmos.feegrant.v1beta1"
BASIC = f"/{PACKAGE}.BasicAllowance"


def sent(node: BankNode, who: int, *messages: bytes, granter: str = "", fee: int = 500) -> Any:
    number, sequence = account(node.chain, node.accounts[who])
    raw = Draft(
        messages,
        sequence,
        number,
        KEYS[who],
        chain_id=node.chain.reads.genesis().chain_id,
        fee=(coin(fee, "stake"),),
        more_fee=string(4, granter) if granter else b"",
    ).signed()
    check = node.chain.mempool.submit(raw)
    if check.code:
        return check
    node.mine()
    height = node.chain.reads.tx(tx_hash(raw)).height
    (result,) = node.chain.reads.results(height).tx_results
    return result


def message(name: str, fields: dict[str, Any]) -> bytes:
    return any_of(f"/{PACKAGE}.{name}", reader.read(f"{PACKAGE}.{name}", fields))


def balance(node: BankNode, address: str) -> int:
    path = f"/cosmos/bank/v1beta1/balances/{address}/by_denom?denom=stake"
    return int(rest(node, path)["balance"]["amount"])


def test_a_granter_pays_the_fees_of_another_account(noderpc_bank: BankNode) -> None:
    node = noderpc_bank
    granter, grantee, other = node.accounts[1:4]
    names = {"granter": granter, "grantee": grantee}
    limit = [{"denom": "stake", "amount": "1200"}]
    allowance = {"@type": BASIC, "spend_limit": limit}
    granted = sent(node, 1, message("MsgGrantAllowance", {**names, "allowance": allowance}))
    assert granted.code == 0, granted.log
    before = balance(node, granter), balance(node, grantee)

    results = [
        sent(node, 2, send(grantee, other), granter=granter, fee=fee) for fee in (500, 600, 200)
    ]

    assert [each.code for each in results] == [0, 0, 2]
    assert "fee limit exceeded" in results[2].log
    assert (balance(node, granter), balance(node, grantee)) == (before[0] - 1100, before[1])
    path = "/cosmos/feegrant/v1beta1"
    shown = {
        **names,
        "allowance": {
            "@type": BASIC,
            "spend_limit": [{"denom": "stake", "amount": "100"}],
            "expiration": None,
        },
    }
    assert rest(node, f"{path}/allowance/{granter}/{grantee}") == {"allowance": shown}
    for listed in (f"allowances/{grantee}", f"issued/{granter}"):
        assert rest(node, f"{path}/{listed}")["allowances"] == [shown]
    assert sent(node, 1, message("MsgRevokeAllowance", names)).code == 0
    assert rest(node, f"{path}/issued/{granter}")["allowances"] == []


def began(*allowances: dict[str, Any]) -> Bank:
    state = json.loads(dev.app_state("cosmos", modules=False))
    state["feegrant"] = {"allowances": list(allowances)}
    bank = Bank(DictState())
    document = Genesis(CHAIN_ID, GENESIS_TIME, app_state=json.dumps(state).encode())
    bank.init_chain(document)
    return bank


def grant(**allowance: Any) -> dict[str, Any]:
    granter, grantee, *_ = dev.dev_addresses()
    given = {"@type": BASIC, "spend_limit": [], "expiration": None, **allowance}
    return {"granter": granter, "grantee": grantee, "allowance": given}


def test_a_genesis_document_may_have_grants() -> None:
    inside = grant(spend_limit=[{"denom": "stake", "amount": "5"}])["allowance"]
    allowed = {
        "@type": f"/{PACKAGE}.AllowedMsgAllowance",
        "allowance": inside,
        "allowed_messages": ["/cosmos.bank.v1beta1.MsgSend"],
    }
    began(grant(**allowed))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"@type": "/cosmos.bank.v1beta1.MsgSend"}, "@type: expected /cosmos.feegrant"),
        ({"@type": None}, "@type: expected a string that is not empty"),
        ({"expiration": "1999-01-01T00:00:00Z"}, "expiration is before current block time"),
        ({"expiration": 5}, "expiration: expected a string"),
        ({"spend_limit": [{"denom": "stake", "amount": "0"}]}, "send amount is invalid"),
        ({"spend_limit": [{"denom": "stake", "amount": "-1"}]}, "send amount is invalid"),
        ({"spend_limit": "all"}, "spend_limit: expected a list"),
    ],
)
def test_a_wrong_grant_of_a_genesis_document_is_named(
    given: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        began(grant(**given))
    assert "feegrant.allowances[0]" in str(refused.value)
    assert words in str(refused.value)


def test_two_equal_grants_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="fee allowance already exists"):
        began(grant(), grant())
