"""Tests of transactions that the node fills in and signs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from eth_account import Account
from web3 import Web3

from flask_noderpc import EmbeddedChain
from flask_noderpc.ethereum.protocol.crypto import DEV_KEYS
from flask_noderpc.ethereum.protocol.execution import created_address
from tests.ethereum.protocol.signing import with_blob

from .fixtures import ETHER, FIRST, STRANGER, asked


def test_ten_rich_accounts_are_there(w3: Any) -> None:
    assert [bytes.fromhex(address[2:]) for address in w3.eth.accounts] == [
        key.address for key in DEV_KEYS
    ]
    assert w3.eth.accounts[0] == FIRST
    assert w3.eth.get_balance(w3.eth.accounts[9], 0) == 10_000 * ETHER


def test_eth_send_transaction_fills_and_signs(chain: EmbeddedChain, w3: Any) -> None:
    sender, to = w3.eth.accounts[0], w3.eth.accounts[9]
    nonce, before = w3.eth.get_transaction_count(sender), w3.eth.get_balance(to)
    fee = w3.eth.get_block("pending")["baseFeePerGas"]

    answer = asked(w3, "eth_sendTransaction", {"from": sender, "to": to, "value": "0x5"})
    chain.produce()
    receipt = w3.eth.get_transaction_receipt(answer["result"])
    tx = w3.eth.get_transaction(answer["result"])

    assert (receipt["status"], receipt["from"]) == (1, sender)
    assert (tx["nonce"], tx["gas"], tx["type"], tx["chainId"]) == (nonce, 21_000, 2, 31337)
    assert tx["maxFeePerGas"] == 2 * fee + tx["maxPriorityFeePerGas"]
    assert w3.eth.get_balance(to) == before + 5


def test_the_node_sends_none_without_a_tip_that_pays_less_than_the_base_fee(w3: Any) -> None:
    tx = {"from": FIRST, "to": FIRST, "maxFeePerGas": "0x1", "maxPriorityFeePerGas": "0x0"}
    error = asked(w3, "eth_sendTransaction", tx)["error"]
    assert error["code"] == -32000
    assert error["message"].startswith(
        "max fee per gas less than block base fee: address 0xf39f"
    )


@pytest.mark.parametrize(
    "fees",
    [
        {"gasPrice": 3 * 10**9},
        {"gasPrice": 3 * 10**9, "accessList": []},
        {"maxFeePerGas": 3 * 10**9, "maxPriorityFeePerGas": 1},
    ],
    ids=["legacy", "access list", "dynamic fee"],
)
def test_a_transaction_is_signed_and_sent_by_others(
    chain: EmbeddedChain, w3: Any, fees: Any
) -> None:
    sender = w3.eth.accounts[1]
    made = w3.eth.sign_transaction(
        {"from": sender, "to": FIRST, "value": 3, "gas": 30_000, **fees}
    )

    assert Account.recover_transaction(made["raw"]) == sender
    assert (made["tx"]["value"], made["tx"]["gas"]) == (3, 30_000)
    tx_hash = w3.eth.send_raw_transaction(made["raw"])
    assert tx_hash == made["tx"]["hash"]
    chain.produce()
    assert w3.eth.get_transaction_receipt(tx_hash)["status"] == 1


def test_eth_fill_transaction_fills_without_signing(w3: Any) -> None:
    sender = w3.eth.accounts[2]
    found = asked(w3, "eth_fillTransaction", {"from": sender, "to": FIRST})["result"]

    tx = found["tx"]
    assert (tx["nonce"], tx["gas"], tx["chainId"]) == ("0x0", "0x5208", "0x7a69")
    assert (tx["gasPrice"], tx["r"], tx["s"]) == (None, "0x0", "0x0")
    tip = int(tx["maxPriorityFeePerGas"], 16)
    base_fee = int(asked(w3, "eth_baseFee")["result"], 16)
    assert int(tx["maxFeePerGas"], 16) == 2 * base_fee + tip
    assert tx["hash"] == Web3.to_hex(Web3.keccak(hexstr=found["raw"]))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({}, "contract creation without any data provided"),
        ({"to": FIRST, "chainId": "0x1"}, "chainId does not match node's (have=1, want=31337)"),
        ({"to": FIRST, "gasPrice": "0x0"}, "gasPrice must be non-zero after london fork"),
        (
            {"to": FIRST, "maxFeePerGas": "0x0", "maxPriorityFeePerGas": "0x0"},
            "maxFeePerGas must be non-zero",
        ),
        ({"to": FIRST, "maxFeePerGas": "0x1"}, "maxFeePerGas (0x1) < maxPriorityFeePerGas (0x"),
        (
            {"to": FIRST, "blobVersionedHashes": ["0x01" + "00" * 31]},
            "signing blob transactions not supported",
        ),
        (
            {"to": FIRST, "gasPrice": "0x1", "authorizationList": []},
            "expected maxFeePerGas instead of gasPrice for a transaction of type 4",
        ),
        (
            {"to": FIRST, "gas": "0x5208", "gasPrice": "0x38d7ea4c68000"},
            "exceeds the configured",
        ),
    ],
)
def test_invalid_transactions_are_refused(w3: Any, args: Any, message: str) -> None:
    answer = asked(w3, "eth_sendTransaction", {"from": FIRST, **args})
    assert message in answer["error"]["message"]


def test_concurrent_sends_get_distinct_nonces(chain: EmbeddedChain, w3: Any) -> None:
    sender = w3.eth.accounts[3]
    tx = {"from": sender, "to": FIRST, "gas": "0x5208"}
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda _: asked(w3, "eth_sendTransaction", tx), range(24)))

    assert len({answer["result"] for answer in found}) == 24
    assert w3.eth.get_transaction_count(sender, "pending") == 24
    chain.produce()
    assert w3.eth.get_transaction_count(sender) == 24


def test_a_nonce_that_another_process_took_is_not_taken_again(
    chain: EmbeddedChain, w3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sender = w3.eth.accounts[4]
    tx = {"from": sender, "to": FIRST, "gas": "0x5208"}
    first = asked(w3, "eth_sendTransaction", tx)["result"]
    pending_by_sender = chain.mempool.pending_by_sender
    stale = [()]

    def late(address: bytes, limit: int) -> tuple[bytes, ...]:
        # The other transaction seems to arrive right after this read.
        return stale.pop() if stale else pending_by_sender(address, limit)

    monkeypatch.setattr(chain.mempool, "pending_by_sender", late)
    # The transaction pays enough to replace the other, which it must not.
    dear = {**tx, "maxFeePerGas": "0x165a0bc00", "maxPriorityFeePerGas": "0x77359400"}
    second = asked(w3, "eth_sendTransaction", dear)["result"]

    assert not stale
    assert first != second
    assert w3.eth.get_transaction(first)["nonce"] == 0
    assert w3.eth.get_transaction(second)["nonce"] == 1


def test_a_send_that_always_loses_the_nonce_race_fails(
    chain: EmbeddedChain, w3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tx = {"from": w3.eth.accounts[7], "to": FIRST, "gas": "0x5208"}
    asked(w3, "eth_sendTransaction", tx)
    monkeypatch.setattr(chain.mempool, "pending_by_sender", lambda address, limit: ())
    error = asked(w3, "eth_sendTransaction", {**tx, "value": "0x1"})["error"]

    assert error["message"] == (
        "other transactions took the 20 nonces that were tried; send it again"
    )


def test_a_sender_without_funds_gets_an_error(w3: Any) -> None:
    tx = {"from": w3.eth.accounts[6], "to": FIRST, "gas": "0x5208", "value": hex(10**23)}
    error = asked(w3, "eth_sendTransaction", tx)["error"]

    assert error["message"].startswith("insufficient funds for gas * price + value")


def test_a_transaction_with_the_same_nonce_replaces_the_one_that_waits(w3: Any) -> None:
    sender = w3.eth.accounts[8]
    tx = {"from": sender, "to": FIRST, "gas": "0x5208", "nonce": "0x0"}
    cheap = {**tx, "maxFeePerGas": "0x77359400", "maxPriorityFeePerGas": "0x1"}
    dear = {**tx, "maxFeePerGas": "0xee6b2800", "maxPriorityFeePerGas": "0x2"}
    first = asked(w3, "eth_sendTransaction", cheap)["result"]
    second = asked(w3, "eth_sendTransaction", dear)["result"]

    assert asked(w3, "eth_getTransactionByHash", first)["result"] is None
    assert asked(w3, "eth_getTransactionByHash", second)["result"]["nonce"] == "0x0"


def test_a_signed_transaction_of_another_type_is_taken_with_its_blobs(w3: Any) -> None:
    fields = {
        "type": 3,
        "nonce": 0,
        "gas": 21_000,
        "to": FIRST,
        "value": 0,
        "data": b"",
        "maxFeePerGas": 5 * 10**9,
        "maxPriorityFeePerGas": 1,
        "maxFeePerBlobGas": 1,
        "chainId": 31337,
    }
    raw = with_blob(fields, Account.from_key(DEV_KEYS[9].secret))
    tx_hash = w3.eth.send_raw_transaction(raw)

    assert w3.eth.get_transaction(tx_hash)["type"] == 3


@pytest.mark.parametrize(
    "fees",
    [
        {},
        {"gasPrice": "0x0"},
        {"maxFeePerGas": "0x0"},
        {"maxFeePerGas": "0x0", "maxPriorityFeePerGas": "0x0"},
    ],
    ids=["none", "price", "fee", "both"],
)
def test_without_a_base_fee_a_transaction_may_cost_nothing(
    chain: EmbeddedChain, w3: Any, fees: dict[str, str]
) -> None:
    assert "error" not in asked(w3, "anvil_setNextBlockBaseFeePerGas", "0x0")
    tx = {"from": w3.eth.accounts[3], "to": STRANGER, "value": "0x1", **fees}
    tx_hash = asked(w3, "eth_sendTransaction", tx)["result"]
    chain.produce()
    receipt = w3.eth.get_transaction_receipt(tx_hash)
    assert receipt["status"] == 1
    # Without a fee, the tip follows earlier transactions.
    assert receipt["effectiveGasPrice"] == 0 or not fees


def test_contracts_are_deployed_by_create2(chain: EmbeddedChain, w3: Any) -> None:
    salt, init = bytes(31) + b"\x07", bytes.fromhex("600160005360016000f3")
    deployer = Web3.to_checksum_address("0x4e59b44847b379578588920ca78fbf26c0b4956c")
    seed = b"\xff" + bytes.fromhex(deployer[2:]) + salt + Web3.keccak(init)
    expected = Web3.to_checksum_address(Web3.keccak(seed)[12:])
    tx = {"from": w3.eth.accounts[2], "to": deployer, "data": "0x" + (salt + init).hex()}
    assert w3.eth.call(tx) == bytes.fromhex(expected[2:])
    tx_hash = w3.eth.send_transaction(tx)
    chain.produce()
    assert w3.eth.get_transaction_receipt(tx_hash)["status"] == 1
    assert w3.eth.get_code(expected) == b"\x01"
    assert w3.eth.get_transaction_count(deployer, 0) == 0


def test_calls_on_the_pending_block_see_pending_transactions(
    chain: EmbeddedChain, w3: Any
) -> None:
    # PUSH1 42, PUSH0, MSTORE, PUSH1 32, PUSH0, RETURN, and the code that deploys it.
    code = "602a5f5260205ff3"
    data = "0x67" + code + "5f5260086018f3"
    deployed = asked(w3, "eth_sendTransaction", {"from": FIRST, "data": data})["result"]
    nonce = w3.eth.get_transaction(deployed)["nonce"]
    contract = f"0x{created_address(bytes.fromhex(FIRST[2:]), nonce).hex()}"
    poor = Account.create().address
    asked(w3, "eth_sendTransaction", {"from": FIRST, "to": poor, "value": hex(ETHER)})
    # This one comes after a nonce gap.
    far = {"from": FIRST, "to": STRANGER, "nonce": hex(nonce + 9), "gas": hex(21_000)}
    asked(w3, "eth_sendTransaction", far)

    call = {"from": poor, "to": contract, "value": "0x0"}
    assert asked(w3, "eth_call", call, "latest")["result"] == "0x"
    assert int(asked(w3, "eth_call", call, "pending")["result"], 16) == 42
    spent = {"from": poor, "to": contract, "value": hex(ETHER // 2)}
    assert "insufficient funds" in asked(w3, "eth_call", spent, "latest")["error"]["message"]
    assert int(asked(w3, "eth_estimateGas", spent)["result"], 16) > 21_000

    chain.produce()
    assert int(asked(w3, "eth_call", call, "latest")["result"], 16) == 42
