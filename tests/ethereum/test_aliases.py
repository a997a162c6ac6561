"""The keys under which Ethereum transactions are found."""

from __future__ import annotations

import pytest

from flask_noderpc.ethereum.aliases import alias_keys, comparable
from flask_noderpc.testing.ethermint_events import event

ADDRESS = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
OTHER = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359"


def test_every_attribute_is_found_under_the_older_name() -> None:
    told = event("ethereum_tx", amount="7", recipient=ADDRESS, sender=OTHER)
    assert alias_keys([told, event("transfer", sender="ethm1")]) == {
        "ethereum.amount": ["7"],
        "ethereum.recipient": [ADDRESS],
        "ethereum.sender": [OTHER],
    }


def test_the_sender_is_taken_from_message_where_only_that_has_it() -> None:
    events = [
        event("message", action="/ethermint.evm.v1.MsgEthereumTx"),
        event("ethereum_tx", recipient=ADDRESS),
        event("message", module="evm", sender=OTHER, txType="2"),
        event("message", module="bank", sender="ethm1"),
    ]
    assert alias_keys(events) == {
        "ethereum.recipient": [ADDRESS],
        "ethereum.sender": [OTHER],
        "ethereum_tx.sender": [OTHER],
    }


def test_other_transactions_get_no_keys() -> None:
    assert (
        alias_keys([event("message", module="evm", sender=OTHER), event("app", key="x")]) == {}
    )


@pytest.mark.parametrize("key", ["ethereum.recipient", "ethereum_tx.sender", "ethereum.any"])
def test_addresses_compare_in_any_letters(key: str) -> None:
    texts = (ADDRESS, ADDRESS.lower(), "0X" + ADDRESS[2:].upper())
    assert {comparable(key, text) for text in texts} == {ADDRESS.lower()}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("transfer.recipient", ADDRESS),
        ("ethereumish.recipient", ADDRESS),
        ("ethereum.recipient", ADDRESS + "A"),
        ("ethereum.recipient", ADDRESS[:-1]),
        ("ethereum.recipient", ADDRESS[2:]),
        ("ethereum.recipient", ADDRESS + "\n"),
        ("ethereum.ethereumTxHash", "0x" + "AB" * 32),
        ("ethereum.ethereumTxFailed", "Reverted"),
    ],
)
def test_everything_else_compares_as_it_is(key: str, value: str) -> None:
    assert comparable(key, value) == value
