"""Tests of event keys by which Ethereum transactions are found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from flask_noderpc import jsoncodec
from flask_noderpc.domain.abci import PackedEvents
from flask_noderpc.ethereum.protocol.ethermint import event
from flask_noderpc.event_aliases import comparable, searchable, with_aliases

ADDRESS = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
OTHER = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359"


def test_every_event_is_found_under_the_older_name() -> None:
    received = event("ethereum_tx", amount="7", recipient=ADDRESS, sender=OTHER)
    other = event("transfer", sender="ethm1")

    assert with_aliases([received, other]) == (
        received,
        replace(received, type="ethereum"),
        other,
    )


def test_the_sender_is_taken_from_the_message_where_only_that_has_it() -> None:
    action = event("message", action="/ethermint.evm.v1.MsgEthereumTx")
    bank = event("message", module="bank", sender="ethm1")
    by_other = event("message", module="evm", sender=OTHER, txType="2")
    by_first = event("message", module="evm", sender=ADDRESS, txType="2")
    first, second = event("ethereum_tx", amount="1"), event("ethereum_tx", amount="2")

    found = with_aliases([action, first, by_first, second, by_other, bank])

    assert [e for e in found if e.type != "message"] == [
        event("ethereum_tx", amount="1", sender=ADDRESS),
        event("ethereum", amount="1", sender=ADDRESS),
        event("ethereum_tx", amount="2", sender=OTHER),
        event("ethereum", amount="2", sender=OTHER),
    ]


def test_large_events_stay_packed_and_are_read_a_few_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events = (
        *(event("app", key=str(number)) for number in range(200)),
        event("ethereum_tx", recipient=ADDRESS),
        event("message", module="evm", sender=OTHER, txType="2"),
    )
    packed = PackedEvents.of(events)
    parsed: list[object] = []

    def counted(document: jsoncodec.Document) -> list[jsoncodec.Raw]:
        parsed.append(document)
        return jsoncodec.elements(document)

    monkeypatch.setattr("flask_noderpc.domain.abci.elements", counted)

    found = searchable(packed)

    assert isinstance(found, PackedEvents)
    assert tuple(found) == searchable(events)
    assert len(parsed) < 20


def test_the_events_of_other_transactions_are_handed_back() -> None:
    events = [event("message", module="evm", sender=OTHER), event("app", key="x")]

    assert with_aliases(events) is events


def test_addresses_are_indexed_in_small_letters() -> None:
    received = event("ethereum_tx", recipient=ADDRESS, ethereumTxFailed="Reverted")
    old = event("ethereum", recipient=ADDRESS)
    bank = event("transfer", recipient=ADDRESS)
    small = {"recipient": ADDRESS.lower(), "ethereumTxFailed": "Reverted"}

    assert searchable([received]) == (event("ethereum_tx", **small), event("ethereum", **small))
    assert searchable([old, bank]) == (event("ethereum", recipient=ADDRESS.lower()), bank)


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
