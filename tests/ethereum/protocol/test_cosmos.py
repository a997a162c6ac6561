"""Tests of Ethereum transactions inside Cosmos SDK transactions."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flask_noderpc.errors import InvalidTransaction
from flask_noderpc.ethereum.protocol.cosmos import raw_transactions
from flask_noderpc.ethereum.protocol.execution import ethereum_transactions
from flask_noderpc.ethereum.protocol.transactions import decode
from flask_noderpc.protocol.protobuf import blob, message, string

from ...helpers.growth import check_linear
from .cosmos_txs import (
    ETHERMINT,
    any_of,
    bank_message,
    cosmos_evm_message,
    ethermint_message,
    wrapped,
)
from .signing import TYPES, sample, transfer

_ETHERMINTS = tuple(name for name in TYPES if name not in ("blob", "set code"))


@pytest.mark.parametrize("name", _ETHERMINTS)
def test_ethermints_fields_give_the_bytes_that_were_signed(name: str) -> None:
    raw = sample(name)
    assert raw_transactions(wrapped(ethermint_message(raw))) == (raw,)


@pytest.mark.parametrize("name", TYPES)
def test_cosmos_evm_has_the_bytes_themselves(name: str) -> None:
    raw = sample(name)
    assert raw_transactions(wrapped(cosmos_evm_message(raw))) == (raw,)


def test_ethereum_messages_are_read_in_order_and_others_skipped() -> None:
    first, second = sample("legacy"), sample("dynamic fee")
    tx = wrapped(ethermint_message(first), bank_message(), cosmos_evm_message(second))
    assert ethereum_transactions(tx) == (decode(first), decode(second))


def test_a_bare_transaction_needs_no_wrapping() -> None:
    raw = transfer(0)
    assert ethereum_transactions(raw) == (decode(raw),)


def _data(name: str, body: bytes) -> bytes:
    return wrapped(any_of(ETHERMINT, message(1, any_of(f"/ethermint.evm.v1.{name}", body))))


_MALFORMED = {
    "cut off": wrapped(bank_message())[:-1],
    "a body that is a number": b"\x08\x01",
    "a group": b"\x0b",
    "a number that goes on": b"\x0a" + b"\x80" * 11,
    "messages that are numbers": blob(1, b"\x08\x01"),
    "no text": blob(1, message(1, blob(1, b"\xff"))),
    "unknown data": _data("BlobTx", b""),
    "no data": wrapped(any_of(ETHERMINT, b"")),
    "a nonce that is bytes": _data("LegacyTx", blob(1, b"x")),
    "a negative amount": _data("LegacyTx", string(2, "-1")),
    "an amount in other digits": _data("LegacyTx", string(2, "١")),
    "an amount of many digits": _data("LegacyTx", string(2, "9" * 5000)),
    "a short address": _data("LegacyTx", string(4, "0x00")),
    "a bech32 address": _data("LegacyTx", string(4, "ethm1" + "q" * 37)),
}


@pytest.mark.parametrize("tx", _MALFORMED.values(), ids=_MALFORMED.keys())
def test_a_malformed_one_is_refused_and_counts_as_none(tx: bytes) -> None:
    with pytest.raises(InvalidTransaction):
        raw_transactions(tx)
    assert ethereum_transactions(tx) == ()


def test_one_bad_signature_makes_the_whole_transaction_none() -> None:
    body = string(2, "1") + blob(7, b"\x1b")
    bad = any_of(ETHERMINT, message(1, any_of("/ethermint.evm.v1.LegacyTx", body)))
    assert ethereum_transactions(wrapped(ethermint_message(transfer(0)), bad)) == ()


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(tx: bytes) -> None:
    ethereum_transactions(b"\x0a" + tx)


@given(st.sampled_from(_ETHERMINTS), st.data())
def test_any_changed_byte_is_read_or_refused(name: str, choose: st.DataObject) -> None:
    tx = bytearray(wrapped(ethermint_message(sample(name))))
    tx[choose.draw(st.integers(0, len(tx) - 1))] = choose.draw(st.integers(0, 255))
    ethereum_transactions(bytes(tx))


@pytest.mark.parametrize(
    "tx",
    [
        lambda size: blob(1, b"\x0a\x00" * (size // 2)),
        lambda size: blob(1, b"\x10\x00" * (size // 2)),
        lambda size: blob(1, (b"\x0a\x1e" + b"\x0a\x00" * 15) * (size // 32)),
        lambda size: _data("DynamicFeeTx", b"\x4a\x00" * (size // 2)),
        lambda size: wrapped(any_of(ETHERMINT, blob(6, b"\xff" * size))),
        lambda size: b"\x0a\xff\xff\xff\xff\x0f" + b"\x80" * size,
    ],
)
def test_the_time_of_a_million_bytes_grows_linearly(tx: Callable[[int], bytes]) -> None:
    check_linear(ethereum_transactions, tx, 1_000_000)
