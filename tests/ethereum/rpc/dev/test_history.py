"""Tests of blocks that are reverted or replaced, and of methods of anvil that other clients
call."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from web3 import HTTPProvider, Web3

from flask_noderpc import EmbeddedChain
from flask_noderpc.testing.node import serve

from .fixtures import ETHER, FIRST, STRANGER, asked, chain_of, dev_app, settled

NEXT = Web3.to_checksum_address("0x70997970c51812dc3a010c7d01b50e0d17dc79c8")


def done(w3: Any, method: str, *params: Any) -> Any:
    """Return the result of a call that succeeds."""
    answer = asked(w3, method, *params)
    assert "error" not in answer, answer
    return answer["result"]


def transfer(sender: str = FIRST, **more: Any) -> dict[str, Any]:
    return {"from": sender, "to": STRANGER, "value": "0x1", **more}


def block_of(w3: Any, tx: dict[str, Any]) -> int:
    """Return the height of the only block with a transaction that has these members."""
    for height in range(w3.eth.block_number, -1, -1):
        for found in done(w3, "eth_getBlockByNumber", hex(height), True)["transactions"]:
            if all(found[name] == str(value).lower() for name, value in tx.items()):
                return height
    raise AssertionError(f"no block has {tx}")


def test_a_rollback_removes_the_newest_blocks(chain: EmbeddedChain, w3: Any) -> None:
    done(w3, "anvil_mine", 2)
    before = w3.eth.get_balance(STRANGER)
    kept = w3.eth.get_block("latest")
    settled(chain, w3, transfer())
    done(w3, "anvil_mine")
    snapshot = done(w3, "evm_snapshot")
    done(w3, "anvil_rollback", 2)
    assert w3.eth.get_block("latest") == kept
    assert w3.eth.get_balance(STRANGER) == before
    # The block of the snapshot is no longer there.
    assert done(w3, "evm_revert", snapshot) is False
    done(w3, "anvil_rollback", None)
    assert w3.eth.block_number == kept["number"] - 1
    done(w3, "anvil_mine")


@pytest.mark.parametrize("method", ["anvil_rollback", "anvil_reorg"])
def test_a_depth_above_the_height_is_refused(w3: Any, method: str) -> None:
    height = w3.eth.block_number
    error = asked(w3, method, height + 1)["error"]
    assert error["code"] == -32602
    assert f"current height {height}, depth {height + 1}" in error["message"]
    assert w3.eth.block_number == height


def test_a_rollback_to_the_genesis_can_go_on(w3: Any) -> None:
    done(w3, "anvil_mine", 2)
    done(w3, "anvil_rollback", w3.eth.block_number)
    assert w3.eth.block_number == 0
    done(w3, "anvil_mine", 3)
    assert w3.eth.block_number == 3


@pytest.mark.parametrize("by_name", [False, True])
def test_a_reorg_replaces_blocks_with_transactions_where_they_belong(
    chain: EmbeddedChain, w3: Any, by_name: bool
) -> None:
    done(w3, "anvil_mine")
    lost = settled(chain, w3, transfer())["transactionHash"]
    done(w3, "anvil_mine", 2)
    old = w3.eth.get_block("latest")
    signed = done(
        w3,
        "eth_signTransaction",
        {**transfer(NEXT), "gas": "0x5208", "nonce": hex(w3.eth.get_transaction_count(NEXT))},
    )["raw"]
    pairs = [[transfer(value="0x7"), 0], [transfer(value="0x8"), 2], [signed, 2]]
    if by_name:
        body = {"depth": 3, "tx_block_pairs": pairs}
        found = w3.provider.make_request("anvil_reorg", body)
        assert found["result"] is None, found
    else:
        assert done(w3, "anvil_reorg", 3, pairs) is None
    new = w3.eth.get_block("latest")
    assert new["number"] == old["number"]
    assert new["hash"] != old["hash"]
    first = old["number"] - 2
    assert asked(w3, "eth_getTransactionByHash", lost.to_0x_hex())["result"] is None
    assert block_of(w3, {"value": "0x7"}) == first
    assert block_of(w3, {"value": "0x8"}) == first + 2
    assert block_of(w3, {"from": NEXT}) == first + 2


@pytest.mark.parametrize(
    ("refused", "text"),
    [
        (transfer("0x" + "55" * 20), "unknown account"),
        ("0x00", "typed transaction too short"),
        ("0x", "typed transaction too short"),
        ("0xf8", "rlp: value size exceeds available input length"),
        ("0x05" + "00" * 40, "transaction type not supported"),
    ],
)
def test_a_reorg_makes_all_blocks_also_if_a_transaction_is_refused(
    w3: Any, refused: Any, text: str
) -> None:
    done(w3, "anvil_mine", 3)
    height = w3.eth.block_number
    error = asked(w3, "anvil_reorg", 2, [[refused, 0]])["error"]
    assert error["message"]
    assert w3.eth.block_number == height
    assert error["message"] == text


def test_reorgs_at_the_same_time_leave_automine_on(tmp_path: Path) -> None:
    app = dev_app(tmp_path, produce=True, block_interval=0.05)
    with serve(app) as url:
        w3: Any = Web3(HTTPProvider(f"{url}/evm"))
        done(w3, "anvil_mine", 5)
        with ThreadPoolExecutor(2) as threads:
            list(threads.map(lambda _: done(w3, "anvil_reorg", 3, []), range(12)))
        assert done(w3, "anvil_getAutomine") is True
        assert done(w3, "eth_sendTransactionSync", transfer())["blockNumber"] == "0x6"
    chain_of(app).close()


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ([2, [[transfer(), 2]]], "expected block indices below the depth, 2"),
        ([2, [["0x02"]]], "expected pairs [transaction, index of its block]"),
        ([2, {}], "cannot unmarshal object"),
    ],
)
def test_malformed_reorgs_are_refused(w3: Any, params: list[Any], text: str) -> None:
    done(w3, "anvil_mine", 2)
    height = w3.eth.block_number
    error = asked(w3, "anvil_reorg", *params)["error"]
    assert error["code"] == -32602
    assert text in error["message"]
    assert w3.eth.block_number == height


def test_reorg_under_automine_makes_no_block_too_many(tmp_path: Any) -> None:
    app = dev_app(tmp_path, produce=True, block_interval=0.05)
    with serve(app) as url:
        w3: Any = Web3(HTTPProvider(f"{url}/evm"))
        done(w3, "anvil_mine", 4)
        pairs = [[transfer(value=hex(number)), number % 3] for number in range(9)]
        done(w3, "anvil_reorg", 3, pairs)
        assert w3.eth.block_number == 4
        counts = [len(w3.eth.get_block(height)["transactions"]) for height in (2, 3, 4)]
        assert counts == [3, 3, 3]
        assert done(w3, "anvil_getAutomine") is True
        # The response has the receipt of a block that was made meanwhile.
        assert done(w3, "eth_sendTransactionSync", transfer())["blockNumber"] == "0x5"
    chain_of(app).close()


def test_detailed_mining_returns_the_blocks(w3: Any) -> None:
    height = w3.eth.block_number
    sent = w3.eth.send_transaction(transfer())
    found = done(w3, "evm_mine_detailed", {"blocks": 2})
    assert [int(block["number"], 16) for block in found] == [height + 1, height + 2]
    assert [tx["hash"] for tx in found[0]["transactions"]] == [sent.to_0x_hex()]


def test_detailed_mining_returns_its_own_blocks(tmp_path: Path) -> None:
    app = dev_app(tmp_path, produce=True)
    with serve(app) as url:
        w3: Any = Web3(HTTPProvider(f"{url}/evm"))
        with ThreadPoolExecutor(2) as threads:
            sending = threads.submit(
                lambda: [done(w3, "eth_sendTransaction", transfer()) for _ in range(12)]
            )
            for _ in range(12):
                found = done(w3, "evm_mine_detailed", {"blocks": 2})
                low, high = (int(block["number"], 16) for block in found)
                assert high == low + 1
            sending.result()
    chain_of(app).close()


def test_the_interval_of_blocks_is_told(w3: Any) -> None:
    assert done(w3, "anvil_getIntervalMining") is None
    done(w3, "anvil_setIntervalMining", 7200)
    assert done(w3, "anvil_getIntervalMining") == 7200
    done(w3, "anvil_setIntervalMining", 0)
    assert done(w3, "anvil_getIntervalMining") is None


def test_an_unsigned_transaction_is_sent_from_any_account(
    chain: EmbeddedChain, w3: Any
) -> None:
    other = Web3.to_checksum_address("0x" + "66" * 20)
    done(w3, "anvil_setBalance", other, hex(ETHER))
    assert asked(w3, "eth_sendTransaction", transfer(other))["error"]["message"] == (
        "unknown account"
    )
    sent = done(w3, "eth_sendUnsignedTransaction", transfer(other))
    chain.produce()
    receipt = w3.eth.get_transaction_receipt(sent)
    assert (receipt["status"], receipt["from"]) == (1, other)


@pytest.mark.parametrize(
    "fork", [{}, {"forking": {}}, {"forking": {"blockNumber": None, "jsonRpcUrl": None}}]
)
def test_a_reset_to_no_fork_reverts_to_the_genesis(w3: Any, fork: dict[str, Any]) -> None:
    done(w3, "anvil_mine", 2)
    assert done(w3, "anvil_reset", fork) is None
    assert w3.eth.block_number == 0


def nonce(w3: Any) -> Any:
    return w3.eth.get_transaction_count(STRANGER)


def gas_limit(w3: Any) -> Any:
    done(w3, "evm_mine")
    return w3.eth.get_block("latest")["gasLimit"]


@pytest.mark.parametrize(
    ("method", "params", "result", "read", "expected"),
    [
        ("evm_setAccountNonce", [STRANGER, "0x9"], None, nonce, 9),
        # anvil reads an empty string as zero.
        ("anvil_setNonce", [STRANGER, ""], None, nonce, 0),
        ("anvil_setBlockGasLimit", ["0x1312d00"], True, gas_limit, 20_000_000),
    ],
)
def test_names_of_anvil_answer_as_there(
    w3: Any,
    method: str,
    params: list[Any],
    result: Any,
    read: Callable[[Any], Any],
    expected: int,
) -> None:
    assert done(w3, method, *params) == result
    assert read(w3) == expected


@pytest.mark.parametrize(
    ("method", "params", "result"),
    [
        ("hardhat_autoImpersonateAccount", [False], True),
        # Without a fork these have no effect in anvil.
        ("anvil_setLoggingEnabled", [True], None),
        ("hardhat_setLoggingEnabled", [False], True),
        ("anvil_setRpcUrl", ["http://127.0.0.1:1"], None),
        ("anvil_getBlobsByTransactionHash", ["0x" + "00" * 32], None),
        ("anvil_getBlobByHash", ["0x" + "00" * 32], None),
    ],
)
def test_names_of_anvil_that_change_no_state_answer_as_there(
    w3: Any, method: str, params: list[Any], result: Any
) -> None:
    before = w3.eth.get_block("latest")
    assert done(w3, method, *params) == result
    assert w3.eth.get_block("latest") == before
