"""Tests of transactions that the mempool accepts or refuses, with geth's errors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import rlp

from flask_noderpc.backends.base.application import SenderNonce
from flask_noderpc.backends.base.capabilities import MempoolLimits
from flask_noderpc.ethereum.domain.forks import OSAKA
from flask_noderpc.ethereum.protocol.validity import floor_gas
from tests.ethereum.protocol.signing import ACCOUNT, OTHER, TO, sender

from .contracts import COUNTER, GWEI, LOOPS, RICH
from .evm_node import Running, tx

ME = f"0x{sender().hex()}"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Running]:
    made = Running(tmp_path)
    yield made
    made.close()


def nonces(node: Running) -> tuple[int, int]:
    """Return the next nonce in the state, and with pending transactions."""
    latest = node.number("eth_getTransactionCount", ME, "latest")
    return latest, node.number("eth_getTransactionCount", ME, "pending")


def pool(node: Running) -> tuple[int, int]:
    found = node.ask("txpool_status")
    return int(found["pending"], 16), int(found["queued"], 16)


def test_transactions_that_could_never_run_are_refused(node: Running) -> None:
    assert node.refused(tx(gas=20_999)) == "intrinsic gas too low: have 20999, want 21000"
    assert node.refused(tx(gas=15_000_001, maxFeePerGas=GWEI)) == "exceeds block gas limit"
    assert node.refused(tx(value=RICH)).startswith(
        f"insufficient funds for gas * price + value: balance {RICH}, tx cost "
    )
    assert node.refused(tx(chainId=1)) == "invalid chain id for signer: have 1 want 9000"
    assert node.refused(tx(maxPriorityFeePerGas=4 * GWEI)).startswith(
        "max priority fee per gas higher than max fee per gas"
    )
    assert "exceeds the configured cap (1.00 ether)" in node.refused(
        tx(maxFeePerGas=10**14, maxPriorityFeePerGas=1)
    )
    legacy: dict[str, Any] = {"type": None, "maxFeePerGas": None, "maxPriorityFeePerGas": None}
    unprotected = tx(**legacy, gasPrice=2 * GWEI, chainId=None)
    assert node.refused(unprotected) == (
        "only replay-protected (EIP-155) transactions allowed over RPC"
    )
    assert nonces(node) == (0, 0)
    assert pool(node) == (0, 0)


def test_one_without_a_tip_pays_the_base_fee_at_least(node: Running) -> None:
    fee = node.number("eth_baseFee")
    for cap in (0, 1, fee - 1):
        assert node.refused(tx(maxFeePerGas=cap, maxPriorityFeePerGas=0)) == (
            f"max fee per gas less than block base fee: address {ME}, maxFeePerGas: {cap},"
            f" baseFee: {fee}"
        )
    # In geth, a transaction with a tip waits until the fee has fallen.
    node.send(tx(1, maxFeePerGas=1, maxPriorityFeePerGas=1, gas=21_000))
    (receipt,) = node.mine(tx(0, maxFeePerGas=fee, maxPriorityFeePerGas=0, gas=21_000))
    assert receipt["status"] == "0x1"
    assert nonces(node) == (1, 2)


def test_large_ones(node: Running) -> None:
    data = bytes(131_072)
    oversized = tx(data=data, gas=5_000_000, maxFeePerGas=2 * GWEI)
    assert node.refused(oversized) == (
        f"oversized data: transaction size {len(oversized)}, limit 131072"
    )
    data = bytes(130_000)
    few = node.refused(tx(data=data, gas=floor_gas(OSAKA, data) - 1))
    assert few == (
        f"insufficient gas for floor data gas cost: have {floor_gas(OSAKA, data) - 1},"
        f" want {floor_gas(OSAKA, data)}"
    )
    (receipt,) = node.mine(tx(data=data, gas=floor_gas(OSAKA, data)))
    assert (receipt["status"], int(receipt["gasUsed"], 16)) == ("0x1", floor_gas(OSAKA, data))
    initcode = bytes(49_153)
    assert node.refused(tx(1, to="", data=initcode, gas=5_000_000)) == (
        "max initcode size exceeded: code size 49153, limit 49152"
    )


def test_a_nonce_that_was_used(node: Running) -> None:
    raw = tx()
    node.mine(raw)
    assert node.refused(tx(value=2)) == "nonce too low: next nonce 1, tx nonce 0"
    assert node.refused(raw) == "nonce too low: next nonce 1, tx nonce 0"


def test_one_that_waits_already(node: Running) -> None:
    node.send(tx())
    assert node.refused(tx()) == "already known"
    assert pool(node) == (1, 0)


@pytest.mark.parametrize(
    ("fee", "tip", "replaces"),
    [(33, 11, True), (33, 10, False), (32, 11, False), (30, 10, False), (60, 12, True)],
)
def test_a_replacement_pays_a_tenth_more_in_both(
    node: Running, fee: int, tip: int, replaces: bool
) -> None:
    node.send(tx(maxFeePerGas=30 * GWEI, maxPriorityFeePerGas=10 * GWEI))
    other = tx(maxFeePerGas=fee * GWEI, maxPriorityFeePerGas=tip * GWEI, value=9)
    if replaces:
        node.send(other)
        assert pool(node) == (1, 0)
        node.mine()
        assert node.number("eth_getBalance", TO, "latest") == 9
    else:
        assert node.refused(other) == "replacement transaction underpriced"
        node.mine()
        assert node.number("eth_getBalance", TO, "latest") == 1


def test_a_replaced_one_may_come_again(node: Running) -> None:
    first = tx(maxFeePerGas=30 * GWEI, maxPriorityFeePerGas=10 * GWEI)
    node.send(first)
    node.send(tx(maxFeePerGas=60 * GWEI, maxPriorityFeePerGas=20 * GWEI))
    assert node.refused(first) == "replacement transaction underpriced"


def test_a_gap_is_waited_for(node: Running) -> None:
    node.send(tx(2))
    node.send(tx(1))
    assert nonces(node) == (0, 0)
    assert pool(node) == (0, 2)
    (queued,) = node.ask("txpool_content")["queued"].values()
    assert queued.keys() == {"1", "2"}
    node.mine()
    assert nonces(node) == (0, 0)

    node.send(tx(0))
    assert nonces(node) == (0, 3)
    assert pool(node) == (3, 0)
    node.mine()
    assert nonces(node) == (3, 3)
    assert pool(node) == (0, 0)
    block = node.ask("eth_getBlockByNumber", "latest", False)
    assert len(block["transactions"]) == 3


def test_no_more_than_some_wait_behind_a_gap(node: Running) -> None:
    for nonce in range(2, 66):
        node.send(tx(nonce))
    assert pool(node) == (0, 64)
    assert "nonce too high" in node.refused(tx(66))
    # Transactions of another sender do not count, and the gap may be filled.
    node.send(tx(7, OTHER))
    node.send(tx(0))
    node.send(tx(1))
    node.send(tx(66))
    assert pool(node) == (67, 1)


def test_a_full_pool_gives_geths_error(tmp_path: Path) -> None:
    node = Running(tmp_path, mempool=MempoolLimits(max_txs=2))
    try:
        node.send(tx(0))
        node.send(tx(1))
        error = node.error("eth_sendRawTransaction", f"0x{tx(2).hex()}")
        assert "mempool is full" in error["message"]
        # A transaction that pays more may replace a pending one, although the sender has its
        # maximum.
        assert node.refused(tx(1, value=2)) == "replacement transaction underpriced"
        node.send(tx(1, value=2, maxFeePerGas=9 * GWEI, maxPriorityFeePerGas=8 * GWEI))
        assert node.refused(tx(0)) == "already known"
        node.mine()
        node.send(tx(2))
    finally:
        node.close()


def test_a_block_orders_transactions_by_fee(node: Running) -> None:
    node.send(tx(0, maxPriorityFeePerGas=1))
    node.send(tx(1, maxFeePerGas=90 * GWEI, maxPriorityFeePerGas=50 * GWEI))
    node.send(tx(0, OTHER, maxPriorityFeePerGas=2))
    node.mine()
    block = node.ask("eth_getBlockByNumber", "latest", True)
    order = [(own["from"], own["nonce"]) for own in block["transactions"]]
    other = f"0x{sender(OTHER).hex()}"
    assert order == [(other, "0x0"), (ME, "0x0"), (ME, "0x1")]


def test_transactions_below_the_base_fee_stay_pending(node: Running) -> None:
    node.send(tx(0, maxFeePerGas=GWEI // 2, maxPriorityFeePerGas=1))
    node.mine()
    assert (nonces(node), pool(node)) == ((0, 1), (1, 0))
    # The fee falls by an eighth with each empty block.
    for _ in range(6):
        node.mine()
    assert (nonces(node), pool(node)) == ((1, 1), (0, 0))


def test_failed_transactions_are_mined_and_charged(node: Running) -> None:
    before = node.number("eth_getBalance", ME, "latest")
    (receipt,) = node.mine(tx(to=LOOPS, gas=100_000, value=0))
    assert (receipt["status"], receipt["gasUsed"], receipt["logs"]) == ("0x0", hex(100_000), [])
    price = int(receipt["effectiveGasPrice"], 16)
    assert node.number("eth_getBalance", ME, "latest") == before - 100_000 * price
    assert nonces(node) == (1, 1)


def test_unfunded_transactions_are_not_mined(node: Running) -> None:
    most = RICH - 21_000 * 3 * GWEI
    node.send(tx(0, value=most))
    node.send(tx(1, value=most))
    node.mine()
    assert node.number("eth_getBalance", TO, "latest") == most
    assert nonces(node)[0] == 1
    assert pool(node) == (0, 0)
    assert len(node.ask("eth_getBlockByNumber", "latest", False)["transactions"]) == 1
    assert len(node.chain.reads.block(node.chain.reads.latest_height())[1].txs) == 1


def test_a_contract_counts_over_blocks(node: Running) -> None:
    for nonce in range(3):
        node.mine(tx(nonce, to=COUNTER, gas=60_000, value=0))
    assert int(node.ask("eth_getStorageAt", COUNTER, "0x0", "latest"), 16) == 3
    assert int(node.ask("eth_getStorageAt", COUNTER, "0x0", "0x1"), 16) == 1
    assert ACCOUNT.address.lower() == ME


def test_all_of_a_long_queue_are_shown(node: Running) -> None:
    hashes = [node.ask("eth_sendRawTransaction", f"0x{tx(nonce=n).hex()}") for n in range(150)]

    assert pool(node) == (150, 0)
    assert nonces(node) == (0, 150)
    assert node.ask("eth_getTransactionByHash", hashes[-1])["nonce"] == hex(149)
    assert len(node.ask("eth_getBlockByNumber", "pending", False)["transactions"]) == 150


def test_a_block_that_comes_while_one_is_looked_at_leaves_no_gap(
    node: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    for nonce in range(3):
        node.send(tx(nonce))
    application = node.chain.store.abci
    assert application is not None
    look = application.sender_nonce

    def late(raw: bytes) -> SenderNonce | None:
        seen = look(raw)
        monkeypatch.setattr(application, "sender_nonce", look)
        node.mine()
        for nonce in range(3, 68):
            node.send(tx(nonce))
        return seen

    monkeypatch.setattr(application, "sender_nonce", late)
    node.send(tx(68))
    assert pool(node) == (66, 0)


_LONG_LISTS: list[tuple[int, list[Any], str]] = [
    (1, [b""] * 7 + [[[b"\1" * 20, []]] * 6_000], "AccessList"),
    (2, [b""] * 8 + [[[b"\1" * 20, [bytes(32)] * 4_000]]], "AccessList"),
    # Blob transactions with their blobs.
    (3, [[b""] * 10 + [[bytes(32)] * 4_000]], "BlobHashes"),
    (4, [b""] * 9 + [[[b"\1", b"\2" * 20, b"", b"", b"\1", b"\1"]] * 5_000], "AuthList"),
]


def test_lists_that_are_too_long_are_refused_unread(node: Running) -> None:
    for kind, items, name in _LONG_LISTS:
        raw = bytes((kind, *rlp.encode(items)))

        for said in (node.refused(raw), node.chain.application.check_tx(raw).log):
            assert said.startswith(f"{name}: expected a list of at most 131072 bytes, got 1")
