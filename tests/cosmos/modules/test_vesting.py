"""Vesting accounts on a running node, and genesis documents with vesting accounts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from flask_noderpc.cosmos.bank import Bank, dev
from flask_noderpc.cosmos.protocol import bech32
from flask_noderpc.cosmos.protocol.mnemonic import PrivateKey
from flask_noderpc.cosmos.testing import BankNode
from flask_noderpc.domain.genesis import Genesis
from flask_noderpc.domain.time import SECOND
from flask_noderpc.errors import ConfigurationError
from flask_noderpc.testing.chains import GENESIS_TIME, DictState

from ..bank.bank_txs import CHAIN_ID, Draft, account, coin, send
from .test_faults import rest
from .test_grants import message, sent

PACKAGE = "cosmos.vesting.v1beta1"
NOW = GENESIS_TIME // SECOND
STAKE, TOKEN = ({"denom": denom, "amount": "1000"} for denom in ("stake", "token"))


def test_a_created_account_spends_its_coins_when_they_are_vested(
    noderpc_bank: BankNode,
) -> None:
    node, key = noderpc_bank, PrivateKey(bytes(31) + b"\x07")
    sender, other = node.accounts[1:3]
    to = bech32.encode("cosmos", key.public.address)
    height = node.mine()
    now = node.chain.reads.block_meta(height).header.time // SECOND
    fields = {"from_address": sender, "to_address": to}
    locked = {"amount": [STAKE], "end_time": str(now + 5_000), "delayed": True}
    created = sent(node, 1, message("MsgCreateVestingAccount", {**fields, **locked}, PACKAGE))
    assert created.code == 0, created.log
    assert sent(node, 1, send(sender, to, coin(100, "stake"))).code == 0

    path = f"/cosmos/bank/v1beta1/spendable_balances/{to}"
    free = {"denom": "stake", "amount": "100"}
    assert rest(node, path)["balances"] == [free]
    assert rest(node, f"{path}/by_denom?denom=stake") == {"balance": free}
    number, sequence = account(node.chain, to)
    draft = Draft(
        (send(to, other, coin(101, "stake")),),
        sequence,
        number,
        key,
        chain_id=node.chain.reads.genesis().chain_id,
        fee=(),
    )
    assert node.chain.mempool.submit(draft.signed()).code == 0
    (refused,) = node.chain.reads.results(node.mine()).tx_results
    assert refused.code == 5
    assert "spendable balance 100stake is smaller than 101stake" in refused.log

    node.increase_time(6_000)
    node.mine()
    assert rest(node, path)["balances"] == [{"denom": "stake", "amount": "1100"}]
    shown = rest(node, f"/cosmos/auth/v1beta1/accounts/{to}")["account"]
    assert shown["@type"] == f"/{PACKAGE}.DelayedVestingAccount"
    assert shown["base_vesting_account"]["original_vesting"] == [STAKE]


def began(kind: str, **changes: Any) -> Bank:
    """Return a chain whose first account is a vesting account; ``changes`` are members of the
    account or of its base vesting account."""
    state = json.loads(dev.app_state("cosmos", modules=False))
    accounts = state["auth"]["accounts"]
    base = {
        "base_account": {**accounts[0], "@type": None},
        "original_vesting": [STAKE, TOKEN],
        "delegated_free": [],
        "delegated_vesting": [STAKE],
        "end_time": str(NOW + 100),
    }
    given = {"@type": f"/{PACKAGE}.{kind}", "base_vesting_account": base}
    for name, value in changes.items():
        (base if name in base else given)[name] = value
    accounts[0] = given
    bank = Bank(DictState())
    bank.init_chain(Genesis(CHAIN_ID, GENESIS_TIME, app_state=json.dumps(state).encode()))
    return bank


def periods(*lengths: int, **changes: Any) -> dict[str, Any]:
    """Return the members of a periodic vesting account."""
    return {
        "start_time": str(NOW),
        "end_time": str(NOW + sum(lengths)),
        "original_vesting": [{"denom": "stake", "amount": str(1000 * len(lengths))}],
        "vesting_periods": [{"length": str(each), "amount": [STAKE]} for each in lengths],
        **changes,
    }


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("ContinuousVestingAccount", {"start_time": str(NOW)}),
        ("DelayedVestingAccount", {}),
        ("PermanentLockedAccount", {"end_time": "0"}),
        ("PeriodicVestingAccount", periods(0, 10)),
        # MsgCreateVestingAccount can create this.
        ("ContinuousVestingAccount", {"start_time": str(NOW + 500)}),
    ],
)
def test_a_genesis_document_may_have_vesting_accounts(
    kind: str, changes: dict[str, Any]
) -> None:
    began(kind, **changes)


@pytest.mark.parametrize(
    ("kind", "changes", "words"),
    [
        ("OtherAccount", {}, "@type: expected /cosmos.auth.v1beta1.BaseAccount, /cosmos"),
        ("DelayedVestingAccount", {"end_time": "-1"}, "end_time: expected a whole number"),
        ("DelayedVestingAccount", {"end_time": "x"}, "end_time: expected a whole number"),
        ("DelayedVestingAccount", {"original_vesting": []}, "invalid coins: "),
        (
            "DelayedVestingAccount",
            {"original_vesting": [TOKEN, STAKE]},
            "invalid coins: 1000to",
        ),
        (
            "DelayedVestingAccount",
            {"original_vesting": [{"denom": "stake", "amount": "many"}]},
            'cannot unmarshal "many"',
        ),
        (
            "DelayedVestingAccount",
            {"delegated_vesting": [{**STAKE, "amount": "1001"}]},
            "delegated vesting amount cannot be greater than original vesting amount",
        ),
        (
            "DelayedVestingAccount",
            {"delegated_free": [STAKE, STAKE]},
            "invalid delegated coins: 1000stake,1000stake,1000stake",
        ),
        ("DelayedVestingAccount", {"base_account": None}, "expected an address"),
        ("PermanentLockedAccount", {}, "permanently vested accounts cannot have an end-time"),
        (
            "PeriodicVestingAccount",
            periods(),
            "vesting start-time cannot be before end-time",
        ),
        (
            "PeriodicVestingAccount",
            periods(5, end_time=str(NOW + 6)),
            "vesting end time does not match length of all vesting periods",
        ),
        (
            "PeriodicVestingAccount",
            periods(5, original_vesting=[TOKEN]),
            "original vesting coins (1000token) does not match the sum of all coins in vesting"
            " periods (1000stake)",
        ),
        (
            "PeriodicVestingAccount",
            periods(5, vesting_periods=[{"length": "5", "amount": []}]),
            "period #0 has invalid coins: ",
        ),
        (
            "PeriodicVestingAccount",
            periods(5, vesting_periods=[{"length": "-5", "amount": [STAKE]}]),
            "vesting_periods[0].length: expected a whole number",
        ),
    ],
)
def test_a_wrong_vesting_account_of_a_genesis_document_is_named(
    kind: str, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        began(kind, **changes)
    assert "auth.accounts[0]" in str(refused.value)
    assert words in str(refused.value)
