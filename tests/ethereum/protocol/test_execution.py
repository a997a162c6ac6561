"""Tests of the way from a node's block and its events to receipts and logs."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flask_noderpc import jsoncodec
from flask_noderpc.domain.abci import BlockResults, Event, EventAttribute, ExecTxResult
from flask_noderpc.errors import InvalidTransaction
from flask_noderpc.ethereum.domain.records import EMPTY_BLOOM, EncodedTransaction, Transaction
from flask_noderpc.ethereum.ethermint_double import (
    EmittedLog,
    failing_contract,
    log_calldata,
    log_contract,
    run,
)
from flask_noderpc.ethereum.protocol import ethermint, execution
from flask_noderpc.ethereum.protocol.ethermint import Layout, event, tx_events
from flask_noderpc.ethereum.protocol.execution import (
    Receipt,
    created_address,
    encode_receipt,
    receipts,
)
from flask_noderpc.ethereum.protocol.transactions import decode, encode
from flask_noderpc.protocol.protobuf import blob, integer, message, string
from flask_noderpc.protocol.secp256k1eth import keccak

from .cosmos_txs import any_of, bank_message, cosmos_evm_message, ethermint_message, wrapped
from .signing import CHAIN_ID, sender, signed, transfer

HASH = b"\x07" * 32
TOPIC = b"\x11" * 32

_BLOCK_FULL = "out of gas in location: block gas meter; gasWanted: 100000"

both_layouts = pytest.mark.parametrize("layout", Layout)


def call(nonce: int, to: bytes, data: bytes = b"", gas: int = 90_000) -> bytes:
    fields = {"nonce": nonce, "gas": gas, "to": to, "value": 0, "data": data}
    return signed({**fields, "gasPrice": 10**9, "chainId": CHAIN_ID})


def emitting(nonce: int, *logs: EmittedLog, contract: int = 0) -> bytes:
    return call(nonce, log_contract(contract), log_calldata(*logs))


def result_of(
    raws: Sequence[bytes], layout: Layout = Layout.SPLIT, tx: bytes = b"", **changes: Any
) -> ExecTxResult:
    """Return a chain's result for these transactions in one of its own; the numbers in it are
    wrong."""
    runs = [run(decode(raw)) for raw in raws]
    events = tx_events(runs, layout, sha256(tx).digest(), 77, 99)
    gas = sum(each.gas_used for each in runs)
    return replace(ExecTxResult(gas_used=gas, events=events), **changes)


def read(
    *txs: tuple[bytes, ExecTxResult], events: tuple[Event, ...] = ()
) -> tuple[Receipt, ...]:
    results = BlockResults(5, tuple(result for _, result in txs), begin_block_events=events)
    return receipts([tx for tx, _ in txs], results, HASH, 1_700_000_000)


def bare(
    raw: bytes, layout: Layout = Layout.SPLIT, **changes: Any
) -> tuple[bytes, ExecTxResult]:
    return raw, result_of([raw], layout, raw, **changes)


def batch(
    *raws: bytes, layout: Layout = Layout.SPLIT, **changes: Any
) -> tuple[bytes, ExecTxResult]:
    tx = wrapped(*map(cosmos_evm_message, raws))
    return tx, result_of(raws, layout, tx, **changes)


@both_layouts
def test_a_transfer_has_a_receipt(layout: Layout) -> None:
    raw = transfer(3)
    (receipt,) = read(
        bare(raw, layout), events=(event("evm_fee_market", base_fee="2000000000"),)
    )
    assert receipt.transaction == decode(raw)
    assert receipt.transaction.sender == sender()
    assert receipt.succeeded
    assert (receipt.gas_used, receipt.cumulative_gas_used) == (21_000, 21_000)
    assert receipt.effective_gas_price == 3 * 10**9
    assert (receipt.contract_address, receipt.logs) == (None, ())
    assert receipt.bloom == EMPTY_BLOOM
    inclusion = receipt.inclusion
    assert (inclusion.block_hash, inclusion.block_number, inclusion.index) == (HASH, 5, 0)
    assert inclusion.block_time == 1_700_000_000


@pytest.mark.parametrize(
    ("kind", "fee", "price"),
    [
        ("fee_market", "2000000000", 3),
        ("evm_fee_market", "2000000000.500000000000000000", 3),
        ("fee_market", "", 1),
        ("fee_market", "-2", 1),
        ("fee_market", "9" * 79, 1),
        ("other", "2000000000", 1),
    ],
)
def test_the_base_fee_is_that_of_the_fee_market(kind: str, fee: str, price: int) -> None:
    (receipt,) = read(bare(transfer(0)), events=(event(kind, base_fee=fee),))
    assert receipt.effective_gas_price == price * 10**9


def test_a_receipt_decodes_its_own_transaction_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []

    def decoding(tx: EncodedTransaction) -> Transaction:
        asked.append(tx.raw)
        return decode(tx.raw)

    monkeypatch.setattr(execution, "decoded", decoding)
    raws = [emitting(nonce, EmittedLog((TOPIC,), b"")) for nonce in range(3)]
    found = read(*map(bare, raws))

    assert [log.index for receipt in found for log in receipt.logs] == [0, 1, 2]
    assert [encode_receipt(receipt)[:1] for receipt in found] == [b"\xf9"] * 3
    assert not asked
    assert found[1].transaction.sender == sender()
    assert asked == [raws[1]]


def test_bytes_that_nobody_signed_count_where_events_tell_of_them() -> None:
    raw = encode(replace(decode(transfer(0)), r=5))
    with pytest.raises(InvalidTransaction):
        decode(raw)

    assert read((raw, ExecTxResult())) == ()
    (receipt,) = read((raw, result_of([transfer(0)])))
    assert receipt.encoded.hash == keccak(raw)


@both_layouts
def test_indices_count_the_blocks_ethereum_transactions_and_logs_alone(layout: Layout) -> None:
    two = (EmittedLog((TOPIC,), b"a"), EmittedLog((), b"b"))
    found = read(
        (b"key=value", ExecTxResult(gas_used=5)),
        bare(emitting(0, *two), layout),
        (wrapped(bank_message()), ExecTxResult(gas_used=5)),
        batch(transfer(1), emitting(2, *two), emitting(3, *two, contract=9), layout=layout),
        bare(transfer(4), layout, code=5),
        bare(emitting(5, two[0]), layout),
    )
    assert [receipt.inclusion.index for receipt in found] == [0, 1, 2, 3, 4]
    assert [receipt.transaction.nonce for receipt in found] == [0, 1, 2, 3, 5]
    logs = [log for receipt in found for log in receipt.logs]
    assert [log.index for log in logs] == list(range(7))
    assert [log.inclusion.index for log in logs] == [0, 0, 2, 2, 3, 3, 4]
    assert [log.data for log in logs] == [b"a", b"b", b"a", b"b", b"a", b"b", b"a"]
    assert logs[4].address == log_contract(9)
    assert logs[4].transaction_hash == found[3].transaction.hash
    assert logs[0].topics == (TOPIC,)
    gas = [receipt.gas_used for receipt in found]
    sums = [sum(gas[: index + 1]) for index in range(5)]
    assert [receipt.cumulative_gas_used for receipt in found] == sums


@both_layouts
def test_a_reverted_transaction_fails_and_has_no_logs(layout: Layout) -> None:
    failed, after = read(
        batch(call(0, failing_contract()), emitting(1, EmittedLog()), layout=layout)
    )
    assert (failed.succeeded, failed.logs) == (False, ())
    assert failed.gas_used == 21_000
    assert (after.succeeded, len(after.logs)) == (True, 1)


def test_logs_that_a_failed_transaction_still_names_are_dropped() -> None:
    raw = emitting(0, EmittedLog((TOPIC,)))
    result = result_of([raw])
    failed = event("ethereum_tx", ethereumTxFailed="out of gas", txGasUsed="9", amount="0")
    (receipt,) = read((raw, replace(result, events=(failed, *result.events[2:]))))
    assert (receipt.succeeded, receipt.gas_used, receipt.logs) == (False, 9, ())


def test_a_creation_names_its_contract_failed_or_not() -> None:
    raw = signed(
        {"nonce": 4, "gas": 90_000, "to": "", "value": 0, "data": b"\x60", "gasPrice": 1}
    )
    (receipt,) = read(bare(raw))
    assert receipt.contract_address == created_address(sender(), 4)


@pytest.mark.parametrize("log", [_BLOCK_FULL, "failed to commit stateDB: no space"])
def test_a_transaction_that_paid_without_running_failed_with_its_gas_limit_used(
    log: str,
) -> None:
    raw = emitting(0, EmittedLog())
    announced = replace(result_of([raw]), events=result_of([raw]).events[:1])
    (receipt,) = read((raw, replace(announced, code=11, log=log, gas_used=5)))
    assert (receipt.succeeded, receipt.gas_used, receipt.logs) == (False, 90_000, ())


def test_bytes_without_a_gas_limit_that_did_not_run_leave_the_others() -> None:
    raws = b"\xc0", transfer(0)
    unread = result_of([raws[1]], code=11, log=_BLOCK_FULL)
    (receipt,) = read((raws[0], unread), bare(raws[1]))
    assert receipt.transaction == decode(raws[1])


def test_without_gas_in_its_event_a_lone_transaction_has_the_nodes() -> None:
    raw = transfer(0)
    (receipt,) = read((raw, ExecTxResult(gas_used=12_345)))
    assert (receipt.succeeded, receipt.gas_used) == (True, 12_345)
    alone, beside = read(
        (wrapped(*map(ethermint_message, (raw, transfer(1)))), ExecTxResult(gas_used=9))
    )
    assert (alone.gas_used, beside.gas_used) == (0, 0)


def test_an_outcome_goes_to_the_transaction_of_its_hash() -> None:
    raws = call(0, failing_contract()), transfer(1)
    tx, result = batch(*raws, layout=Layout.SINGLE)
    assert [each.succeeded for each in read((tx, result))] == [False, True]
    turned = tuple(reversed(result.events))
    assert [each.succeeded for each in read((tx, replace(result, events=turned)))] == [
        False,
        True,
    ]


def test_the_hash_after_execution_counts_and_a_strange_one_is_of_its_position() -> None:
    raws = call(0, failing_contract()), transfer(1)
    tx, result = batch(*raws)
    strange = event("ethereum_tx", ethereumTxHash="0x" + "00" * 32, txIndex="0")
    events = (strange, strange, *result.events[2:])
    assert [each.succeeded for each in read((tx, replace(result, events=events)))] == [
        False,
        True,
    ]


def _log_event(*texts: object) -> Event:
    values = (text if isinstance(text, bytes) else jsoncodec.encode(text) for text in texts)
    return Event("tx_log", tuple(EventAttribute(b"txLog", value) for value in values))


_GOOD = {"address": "0x" + "ab" * 20, "topics": ["0x" + "11" * 32], "data": "YQ=="}


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b"\xff",
        b"[" * 100_000,
        b'{"address": "0x',
        [],
        None,
        {},
        {**_GOOD, "address": "0x" + "ab" * 19},
        {**_GOOD, "address": 5},
        {**_GOOD, "topics": ["0x11"]},
        {**_GOOD, "topics": "0x" + "11" * 32},
        {**_GOOD, "data": "not base64"},
        {**_GOOD, "data": 7},
    ],
)
def test_a_log_that_cannot_be_read_is_passed_over(bad: object) -> None:
    raw = transfer(0)
    (receipt,) = read((raw, ExecTxResult(events=(_log_event(bad, _GOOD, bad),))))
    (log,) = receipt.logs
    assert (log.address, log.topics, log.data) == (b"\xab" * 20, (TOPIC,), b"a")
    assert log.index == 0


def test_a_log_without_topics_and_data_is_one() -> None:
    raw = transfer(0)
    text = {"address": _GOOD["address"], "topics": None}
    (receipt,) = read((raw, ExecTxResult(events=(_log_event(text),))))
    assert [(log.topics, log.data) for log in receipt.logs] == [((), b"")]


def test_cosmos_evm_has_its_logs_in_the_data() -> None:
    raws = transfer(0), transfer(1)
    log = (
        string(1, "0x" + "ab" * 20)
        + string(2, "0x" + "11" * 32)
        + blob(3, b"a")
        + integer(4, 99)
        + string(5, "0x" + decode(raws[1]).hash.hex())
        + integer(8, 44)
    )
    response = "/cosmos.evm.vm.v1.MsgEthereumTxResponse"
    data = b"".join(
        message(2, any_of(response, body))
        for body in (b"", message(2, log) + integer(5, 21_000))
    )
    first, second = read(batch(*raws, data=data, events=()))
    assert first.logs == ()
    assert [(log.address, log.data, log.index) for log in second.logs] == [
        (b"\xab" * 20, b"a", 0)
    ]


_texts = st.sampled_from(
    [b"", b"0", b"-1", b"9" * 90, b"\xff\xfe", b"0x" + b"0" * 64, b64encode(b"x"), b"{}"]
)
_attributes = st.builds(
    EventAttribute,
    st.sampled_from(
        [b"ethereumTxHash", b"txIndex", b"txGasUsed", b"ethereumTxFailed", b"txLog"]
    ),
    _texts | st.binary(max_size=20),
)
_events = st.builds(
    Event,
    st.sampled_from(["ethereum_tx", "tx_log", "message", "fee_market", ""]),
    st.lists(_attributes, max_size=4).map(tuple),
)


@given(
    st.lists(_events, max_size=8).map(tuple), st.binary(max_size=60), st.integers(-5, 10**20)
)
def test_malformed_events_do_not_prevent_reading_a_block(
    events: tuple[Event, ...], data: bytes, gas: int
) -> None:
    raws = transfer(0), transfer(1)
    found = read(batch(*raws, events=events, data=data, gas_used=gas), events=events)
    assert [receipt.transaction.nonce for receipt in found] == [0, 1]


def test_results_that_are_lost_leave_out_their_transactions() -> None:
    raw = transfer(0)
    assert receipts([raw], BlockResults(5), HASH, 0) == ()


@pytest.mark.parametrize("value", ["", "0x12", "no hex", "0x" + "\u00e9" * 40])
def test_malformed_values_of_a_foreign_chain_are_skipped(value: str) -> None:
    """Any chain may emit events of these types."""
    events = (
        event("block_coinbase", address=value),
        event("block_prev_randao", value=value),
    )
    results = BlockResults(5, (), begin_block_events=events)
    assert ethermint.coinbase(results) is None
    assert ethermint.prev_randao(results) is None
    texts = (
        value,
        '{"type":"CALL"}',
        f'{{"type":"CALL","from":"{value}","to":"","value":"1"}}',
    )
    calls = [event("evm_calls", operation=text) for text in texts]
    assert ethermint.operations(calls) == []
