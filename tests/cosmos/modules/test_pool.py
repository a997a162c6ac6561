"""The recorded chain with x/protocolpool: REST, reflection, and genesis documents.

test_recording.py compares the chain's blocks and its other queries.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable
from typing import Any

import pytest

from flask_noderpc.cosmos.bank import Bank, dev
from flask_noderpc.cosmos.rest import gateway
from flask_noderpc.domain.abci import QueryResult
from flask_noderpc.domain.genesis import Genesis
from flask_noderpc.errors import ConfigurationError
from flask_noderpc.protocol.protobuf import Message
from flask_noderpc.testing.chains import GENESIS_TIME, DictState

from ..bank.bank_txs import CHAIN_ID
from .playing import Chain, Json, recorded

REFLECTION = "/cosmos.base.reflection.v1beta1.ReflectionService/"
POOL, BOB = "/cosmos/protocolpool/v1", "cosmos1avgyh77ycn997ja45q5q8ss8y9mr424jq6zn4p"
ABSENT = "cosmos1qyqszqgpqyqszqgpqyqszqgpqyqszqgpjnp7du"
# Types of the SDK that this chain does not have, by interface.
MISSING = {
    "cosmos.auth.v1.ModuleCredential": {
        "/cosmos.auth.v1beta1.ModuleCredential",
        "/cosmos.crypto.ed25519.PubKey",
        "/cosmos.crypto.multisig.LegacyAminoPubKey",
        "/cosmos.crypto.secp256k1.PubKey",
        "/cosmos.crypto.secp256r1.PubKey",
    },
    "cosmos.auth.v1beta1.GenesisAccount": {
        "/cosmos.auth.v1beta1.BaseAccount",
        "/cosmos.auth.v1beta1.ModuleAccount",
    },
    "cosmos.bank.v1beta1.SupplyI": {"/cosmos.bank.v1beta1.Supply"},
    "cosmos.base.v1beta1.Msg": {
        "/cosmos.consensus.v1.MsgUpdateParams",
        "/cosmos.upgrade.v1beta1.MsgCancelUpgrade",
        "/cosmos.upgrade.v1beta1.MsgSoftwareUpgrade",
    },
    "cosmos.crypto.PrivKey": {
        "/cosmos.crypto.ed25519.PrivKey",
        "/cosmos.crypto.secp256k1.PrivKey",
    },
    "cosmos.crypto.PubKey": {
        "/cosmos.auth.v1beta1.ModuleCredential",
        "/cosmos.crypto.secp256r1.PubKey",
    },
    "cosmos.tx.v1beta1.MsgResponse": {
        "/cosmos.consensus.v1.MsgUpdateParamsResponse",
        "/cosmos.upgrade.v1beta1.MsgCancelUpgradeResponse",
        "/cosmos.upgrade.v1beta1.MsgSoftwareUpgradeResponse",
    },
    "cosmos.tx.v1beta1.Tx": {"/cosmos.tx.v1beta1.Tx"},
}
MISSING_INTERFACES = {
    *("cosmos.auth.v1.ModuleCredential", "cosmos.auth.v1beta1.GenesisAccount"),
    *("cosmos.bank.v1beta1.SupplyI", "cosmos.crypto.PrivKey", "cosmos.tx.v1beta1.Tx"),
    "cosmos.tx.v1beta1.TxExtensionOptionI",
}

# SDK: x/auth does not register the response of its message.
NOT_REGISTERED = {"/cosmos.auth.v1beta1.MsgUpdateParamsResponse"}

Played = Callable[[str], Chain]


def test_the_recording_has_enough() -> None:
    txs = [tx["deliver"] for block in recorded("pool")["blocks"] for tx in block["txs"]]
    failed = [tx for tx in txs if tx["code"]]
    assert len(recorded("pool")["blocks"]) == 40
    assert len(failed) >= 30
    assert len(txs) - len(failed) >= 20


def names(value: bytes) -> set[str]:
    return set(Message(value).texts(1))


def test_the_interfaces_are_the_sdks_except_for_those_listed(played: Played) -> None:
    compared = 0
    for each in recorded("pool")["queries"]:
        if not each["path"].startswith(REFLECTION):
            continue
        data = b64decode(each["data"] or "")
        own = played("pool").app.query(each["path"], data, 0, False)
        assert (own.code, own.log) == (each["reply"]["code"], each["reply"]["log"])
        is_list = each["path"].endswith("ListAllInterfaces")
        known = MISSING_INTERFACES if is_list else MISSING.get(Message(data).text(1), set())
        theirs = names(b64decode(each["reply"]["value"] or ""))
        assert theirs - names(own.value) == known, each["name"]
        assert names(own.value) - theirs <= NOT_REGISTERED
        compared += 1
    assert compared > 10


@pytest.fixture
def rest(played: Played) -> Callable[[str], tuple[int, Json]]:
    def query(path: str, data: bytes, height: int) -> QueryResult:
        return played("pool").app.query(path, data, height, False)

    def send(method: str, tx: bytes) -> Any:
        raise AssertionError("no test sends a transaction")

    def asked(path: str) -> tuple[int, Json]:
        reply = gateway.answer(gateway.Request("GET", path, ""), query, send)
        return int(reply.status), json.loads(reply.body)

    return asked


def test_the_pool_has_rest_paths(rest: Callable[[str], tuple[int, Json]]) -> None:
    status, pool = rest(f"{POOL}/community_pool")
    assert (status, [coin["denom"] for coin in pool["pool"]]) == (200, ["stake", "token"])
    status, found = rest(f"{POOL}/continuous_funds")
    (fund,) = found["continuous_funds"]
    assert (fund["recipient"], fund["percentage"]) == (BOB, "0.500000000000000000")
    assert rest(f"{POOL}/continuous_funds/{BOB}") == (200, {"continuous_fund": fund})
    params = {"enabled_distribution_denoms": ["absent", "stake"], "distribution_frequency": "1"}
    assert rest(f"{POOL}/params") == (200, {"params": params})
    status, error = rest(f"{POOL}/continuous_funds/{BOB}x")
    assert (status, error["message"][:15]) == (400, "invalid address")
    status, error = rest(f"{POOL}/continuous_funds/{ABSENT}")
    assert (status, error["message"][:9]) == (404, "not found")
    status, error = rest("/cosmos/distribution/v1beta1/community_pool")
    text = "codespace sdk code 18: invalid request: external community pool is enabled"
    assert (status, error["message"].partition(" - ")[0]) == (500, text)


def began(**pool: Any) -> None:
    state = json.loads(dev.app_state("cosmos", modules=False))
    params = {"enabled_distribution_denoms": ["stake"], "distribution_frequency": "1"}
    state["protocolpool"] = {"continuous_funds": [], "params": params, **pool}
    document = Genesis(CHAIN_ID, GENESIS_TIME, app_state=json.dumps(state).encode())
    Bank(DictState()).init_chain(document)


def fund(**given: Any) -> dict[str, Any]:
    recipient = dev.dev_addresses()[0]
    return {"recipient": recipient, "percentage": "0.6", "expiry": None, **given}


def test_a_genesis_document_may_have_funds() -> None:
    other = dev.dev_addresses()[1]
    began(continuous_funds=[fund(), fund(recipient=other, percentage="0.4")])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"recipient": ""}, "recipient cannot be empty"),
        ({"recipient": "nobody"}, "invalid bech32 string length 6"),
        ({"percentage": "0"}, "percentage cannot be zero or empty"),
        ({"percentage": "1.1"}, "percentage cannot be greater than one"),
        ({"percentage": "half"}, "percentage: expected a decimal number"),
        ({"expiry": "soon"}, "expiry: "),
    ],
)
def test_a_wrong_fund_of_a_genesis_document_is_named(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        began(continuous_funds=[fund(**given)])
    assert "protocolpool.continuous_funds[0]" in str(refused.value)
    assert words in str(refused.value)


def test_funds_of_a_genesis_document_are_checked_together() -> None:
    with pytest.raises(ConfigurationError, match="duplicated continuous fund recipient"):
        began(continuous_funds=[fund(percentage="0.1"), fund(percentage="0.1")])
    other = dev.dev_addresses()[1]
    with pytest.raises(ConfigurationError, match="total percentage cannot be greater than 100"):
        began(continuous_funds=[fund(), fund(recipient=other)])


@pytest.mark.parametrize(
    ("denoms", "frequency", "words"),
    [
        (["stake"], "0", "DistributionFrequency must be greater than 0"),
        (["stake", "stake"], "1", "duplicate enabled distribution denom stake"),
        (["1"], "1", "invalid denom: 1"),
        ("stake", "1", "expected a list"),
    ],
)
def test_wrong_parameters_are_named(denoms: object, frequency: str, words: str) -> None:
    given = {"enabled_distribution_denoms": denoms, "distribution_frequency": frequency}
    with pytest.raises(ConfigurationError) as refused:
        began(params=given)
    assert "protocolpool.params" in str(refused.value)
    assert words in str(refused.value)
