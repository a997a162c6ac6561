"""Grants of fees and of messages on a running node, and genesis documents with grants."""

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

PACKAGE, AUTHZ = "cosmos.feegrant.v1beta1", "cosmos.authz.v1beta1"
BASIC = f"/{PACKAGE}.BasicAllowance"


def sent(
    node: BankNode,
    who: int,
    *messages: bytes,
    granter: str = "",
    fee: int = 500,
    gas: int = 400_000,
) -> Any:
    number, sequence = account(node.chain, node.accounts[who])
    raw = Draft(
        messages,
        sequence,
        number,
        KEYS[who],
        chain_id=node.chain.reads.genesis().chain_id,
        fee=(coin(fee, "stake"),),
        more_fee=string(4, granter) if granter else b"",
        gas=gas,
    ).signed()
    check = node.chain.mempool.submit(raw)
    if check.code:
        return check
    node.mine()
    height = node.chain.reads.tx(tx_hash(raw)).height
    (result,) = node.chain.reads.results(height).tx_results
    return result


def message(name: str, fields: dict[str, Any], package: str = PACKAGE) -> bytes:
    return any_of(f"/{package}.{name}", reader.read(f"{package}.{name}", fields))


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


def test_a_grantee_sends_in_the_name_of_the_granter(noderpc_bank: BankNode) -> None:
    node = noderpc_bank
    granter, grantee, other = node.accounts[1:4]
    names = {"granter": granter, "grantee": grantee}
    limit = {"denom": "token", "amount": "10"}
    given = {
        "@type": "/cosmos.bank.v1beta1.SendAuthorization",
        "spend_limit": [limit],
        "allow_list": [other],
    }
    fields = {**names, "grant": {"authorization": given}}
    granted = sent(node, 1, message("MsgGrant", fields, AUTHZ))
    assert granted.code == 0, granted.log
    before = rest(node, f"/cosmos/bank/v1beta1/balances/{other}/by_denom?denom=token")

    def execute(to: str, amount: int) -> Any:
        inside = {
            "@type": "/cosmos.bank.v1beta1.MsgSend",
            "from_address": granter,
            "to_address": to,
            "amount": [{"denom": "token", "amount": str(amount)}],
        }
        return sent(node, 2, message("MsgExec", {"grantee": grantee, "msgs": [inside]}, AUTHZ))

    results = [execute(other, 7), execute(grantee, 1), execute(other, 4)]

    assert [each.code for each in results] == [0, 4, 5]
    after = rest(node, f"/cosmos/bank/v1beta1/balances/{other}/by_denom?denom=token")
    assert int(after["balance"]["amount"]) == int(before["balance"]["amount"]) + 7
    limit["amount"] = "3"
    path = "/cosmos/authz/v1beta1/grants"
    shown = {"authorization": given, "expiration": None}
    assert rest(node, f"{path}?granter={granter}&grantee={grantee}")["grants"] == [shown]
    for listed in (f"granter/{granter}", f"grantee/{grantee}"):
        assert rest(node, f"{path}/{listed}")["grants"] == [{**names, **shown}]
    url = "/cosmos.bank.v1beta1.MsgSend"
    revoked = sent(node, 1, message("MsgRevoke", {**names, "msg_type_url": url}, AUTHZ))
    assert revoked.code == 0, revoked.log
    assert execute(other, 1).code == 2
    assert rest(node, f"{path}/granter/{granter}")["grants"] == []


def began(*allowances: dict[str, Any], authorizations: Any = ()) -> Bank:
    state = json.loads(dev.app_state("cosmos", modules=False))
    state["feegrant"] = {"allowances": list(allowances)}
    state["authz"] = {"authorization": list(authorizations)}
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


def authorized(**authorization: Any) -> dict[str, Any]:
    granter, grantee, *_ = dev.dev_addresses()
    return {
        "granter": granter,
        "grantee": grantee,
        "authorization": {"@type": f"/{AUTHZ}.GenericAuthorization", **authorization},
        "expiration": "2999-01-01T00:00:00Z",
    }


def test_a_genesis_document_may_have_authorizations() -> None:
    stake = {
        "@type": "/cosmos.staking.v1beta1.StakeAuthorization",
        "max_tokens": None,
        "deny_list": {"address": ["cosmosvaloper1"]},
        "authorization_type": "AUTHORIZATION_TYPE_DELEGATE",
    }
    expired = {**authorized(msg="/b"), "expiration": "1999-01-01T00:00:00Z"}
    began(authorizations=[authorized(msg="/a"), authorized(**stake), expired])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"@type": "/cosmos.bank.v1beta1.MsgSend"}, "@type: expected /cosmos.authz"),
        ({"@type": None}, "@type: expected a string that is not empty"),
        ({"msg": 5}, "msg: expected a string"),
        (
            {
                "@type": "/cosmos.staking.v1beta1.StakeAuthorization",
                "authorization_type": "delegate",
            },
            "authorization_type: expected AUTHORIZATION_TYPE_UNSPECIFIED,",
        ),
    ],
)
def test_a_wrong_authorization_of_a_genesis_document_is_named(
    given: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        began(authorizations=[authorized(**given)])
    assert "authz.authorization[0]" in str(refused.value)
    assert words in str(refused.value)
