"""Tests of blocks, clock and snapshots of a development chain, by anvil's and hardhat's
methods."""

from __future__ import annotations

import gzip
import json
import random
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import rlp
from flask import Flask
from web3 import HTTPProvider, Web3

from flask_noderpc import EmbeddedChain, NodeRPC
from flask_noderpc.domain.genesis import BlockParams
from flask_noderpc.ethereum.application.application import EvmApplication
from flask_noderpc.ethereum.application.patches import Change, patch_tx
from flask_noderpc.ethereum.protocol import accounts
from flask_noderpc.ethereum.rpc.dev.routes import CONTROL_ROUTES, REASONS
from flask_noderpc.ethereum.settings import EthereumSettings
from flask_noderpc.ethereum.state import EVM_STATE
from flask_noderpc.protocol.secp256k1eth import keccak
from flask_noderpc.testing.node import serve
from tests.helpers.websocket import WebSocketClient

from .fixtures import ETHER, FIRST, STRANGER, asked, chain_of, dev_app, settled

SLOT = "0x" + "00" * 32
WORD = "0x" + "00" * 31 + "2a"


def done(w3: Any, method: str, *params: Any) -> Any:
    """Return the result of a call that succeeds."""
    answer = asked(w3, method, *params)
    assert "error" not in answer, answer
    return answer["result"]


def latest(w3: Any) -> tuple[int, int]:
    """Return height and time of the latest block."""
    block = w3.eth.get_block("latest")
    return block["number"], block["timestamp"]


@pytest.fixture(autouse=True)
def begun(chain: EmbeddedChain) -> None:
    chain.control.mine()


@pytest.mark.parametrize(
    ("method", "params", "made"),
    [
        ("evm_mine", [], 1),
        ("evm_mine", [{"blocks": 3}], 3),
        ("hardhat_mine", ["0x4"], 4),
        ("anvil_mine", ["0x2", "0x0"], 2),
        ("anvil_mine", [0], 0),
    ],
)
def test_mine_methods_mine_blocks(w3: Any, method: str, params: Any, made: int) -> None:
    height, _ = latest(w3)
    done(w3, method, *params)
    assert latest(w3)[0] == height + made


def test_subscribers_see_each_of_many_blocks(w3: Any, url: str) -> None:
    """The blocks are stored together."""
    with (
        closing(WebSocketClient(url, path="/evm/ws")) as client,
        ThreadPoolExecutor(1) as thread,
    ):
        client.asked("eth_subscribe", ["newHeads"])
        height, _ = latest(w3)
        # The client reads meanwhile, as a slow client would lose its subscription.
        mined = thread.submit(done, w3, "hardhat_mine", "0x258", "0xa")
        heads = [client.json()["params"]["result"] for _ in range(600)]
        mined.result()
    numbers = [int(head["number"], 16) for head in heads]
    assert numbers == [*range(height + 1, height + 601)]
    times = [int(head["timestamp"], 16) for head in heads]
    assert times == [*range(times[0], times[0] + 6000, 10)]
    assert [head["parentHash"] for head in heads[1:]] == [head["hash"] for head in heads[:-1]]


def test_mine_methods_take_times_and_steps(w3: Any) -> None:
    height, time = latest(w3)
    done(w3, "evm_mine", time + 500)
    assert latest(w3) == (height + 1, time + 500)
    done(w3, "hardhat_mine", "0x3", "0x3c")
    assert latest(w3)[1] - w3.eth.get_block(height + 2)["timestamp"] == 120


@pytest.mark.parametrize("method", ["evm_increaseTime", "evm_setTime"])
def test_pending_block_has_the_time_of_the_shifted_clock(w3: Any, method: str) -> None:
    shifted = latest(w3)[1] + 10**6
    done(w3, method, 10**6 if method == "evm_increaseTime" else shifted)
    returns_timestamp = {"data": "0x4260005260206000f3"}
    assert w3.eth.get_block("pending")["timestamp"] >= shifted
    assert int(done(w3, "eth_call", returns_timestamp, "pending"), 16) >= shifted
    done(w3, "evm_mine")
    assert latest(w3)[1] >= shifted


def test_time_is_set_let_pass_and_stepped(w3: Any) -> None:
    _, time = latest(w3)
    assert done(w3, "evm_increaseTime", "0xe10") >= 3600
    done(w3, "evm_mine")
    assert latest(w3)[1] >= time + 3600
    expected = latest(w3)[1] + 77
    done(w3, "evm_setNextBlockTimestamp", expected)
    done(w3, "evm_mine")
    assert latest(w3)[1] == expected
    done(w3, "anvil_setBlockTimestampInterval", 9)
    done(w3, "anvil_mine", 2)
    assert latest(w3)[1] == expected + 18
    assert done(w3, "anvil_removeBlockTimestampInterval") is True
    # hardhat's client passes milliseconds.
    done(w3, "evm_setTime", (expected + 1000) * 1000)
    done(w3, "evm_mine")
    assert expected + 1000 <= latest(w3)[1] < expected + 2000


ANVIL: tuple[tuple[str, list[Any], Any], ...] = (
    ("anvil_impersonateAccount", [STRANGER], None),
    ("anvil_stopImpersonatingAccount", [STRANGER], None),
    ("anvil_autoImpersonateAccount", [False], None),
    ("anvil_setBalance", [STRANGER, 1000], None),
    ("anvil_addBalance", [STRANGER, "0x1"], None),
    ("anvil_setNonce", [STRANGER, 6], None),
    ("anvil_setCode", [STRANGER, "0x00"], None),
    ("anvil_setStorageAt", [STRANGER, "0x0", "0x" + "00" * 31 + "05"], True),
    ("anvil_setCoinbase", [STRANGER], None),
    ("anvil_mine", [], None),
    ("evm_mine", [], "0x0"),
    ("evm_setAutomine", [False], None),
    ("anvil_setAutomine", [False], None),
    ("anvil_getAutomine", [], False),
    ("evm_setIntervalMining", [0], None),
    ("anvil_setIntervalMining", [0], None),
    ("anvil_setNextBlockBaseFeePerGas", ["0x5"], None),
    ("anvil_removeBlockTimestampInterval", [], False),
    ("evm_setBlockGasLimit", ["0x1c9c380"], True),
    ("anvil_dropTransaction", ["0x" + "00" * 32], None),
    ("anvil_dropAllTransactions", [], None),
    ("tenderly_setBalance", [STRANGER, "0x1"], None),
    ("tenderly_addBalance", [STRANGER, "0x1"], None),
    ("hardhat_addBalance", [STRANGER, "0x1"], None),
    ("anvil_removePoolTransactions", [STRANGER], None),
    ("anvil_reset", [], None),
)
"""Methods with anvil 1.7.1's responses."""
HARDHAT: tuple[tuple[str, list[Any], Any], ...] = (
    *((f"hardhat_{name}", [STRANGER, "0x1"], True) for name in ("setBalance", "setNonce")),
    ("hardhat_setCode", [STRANGER, "0x00"], True),
    ("hardhat_setStorageAt", [STRANGER, "0x0", "0x" + "00" * 32], True),
    ("hardhat_setCoinbase", [STRANGER], True),
    ("hardhat_impersonateAccount", [STRANGER], True),
    ("hardhat_stopImpersonatingAccount", [STRANGER], True),
    ("hardhat_mine", ["0x1"], True),
    ("hardhat_setNextBlockBaseFeePerGas", ["0x5"], True),
    ("hardhat_dropTransaction", ["0x" + "00" * 32], False),
    ("hardhat_dropAllTransactions", [], True),
    ("hardhat_reset", [], True),
)
"""Methods with hardhat 2's responses; it refuses to drop a transaction that does not exist."""


@pytest.mark.parametrize(("method", "params", "expected"), [*ANVIL, *HARDHAT])
def test_each_namespace_answers_as_its_own_node(
    w3: Any, method: str, params: list[Any], expected: Any
) -> None:
    assert asked(w3, method, *params)["result"] == expected


def test_times_are_numbers_and_none_as_in_anvil(w3: Any) -> None:
    before = done(w3, "evm_increaseTime", 10)
    assert isinstance(before, int)
    assert done(w3, "anvil_increaseTime", "0x0a") == before + 10
    assert done(w3, "anvil_increaseTime", "10") == before + 20
    at = latest(w3)[1] + 1000
    assert done(w3, "evm_setNextBlockTimestamp", str(at)) is None
    done(w3, "evm_mine")
    assert latest(w3)[1] == at
    assert isinstance(done(w3, "evm_setTime", at + 5), int)


@pytest.mark.parametrize("number", ["0x00ff", "0xff", "255", 255, "0XFF"])
@pytest.mark.parametrize("family", ["anvil", "hardhat"])
def test_numbers_are_taken_in_every_form(w3: Any, family: str, number: Any) -> None:
    done(w3, f"{family}_setBalance", STRANGER, number)
    assert w3.eth.get_balance(STRANGER) == 255
    done(w3, f"{family}_setNonce", STRANGER, number)
    assert w3.eth.get_transaction_count(STRANGER) == 255
    done(w3, f"{family}_setNextBlockBaseFeePerGas", number)
    done(w3, "evm_mine")
    assert w3.eth.get_block("latest")["baseFeePerGas"] == 255
    for last in (7, 0):
        done(w3, f"{family}_setStorageAt", STRANGER, number, f"0x{last:064x}")
        assert w3.eth.get_storage_at(STRANGER, 255)[-1] == last


def test_an_estimate_is_of_the_pending_block(w3: Any) -> None:
    at = latest(w3)[1] + 5000
    done(w3, "evm_setNextBlockTimestamp", at)
    reverts_before = {"data": f"0x63{at:08x}421015600e575f5ffd5b00"}
    assert "error" in asked(w3, "eth_estimateGas", reverts_before, "latest")
    assert int(done(w3, "eth_estimateGas", reverts_before), 16) > 21_000


def test_a_client_may_wait_for_blocks(w3: Any) -> None:
    assert done(w3, "eth_mining") is True


@pytest.mark.parametrize(
    ("method", "params", "message"),
    [
        ("evm_mine", [{"blocks": -1}], "expected a number of at most 256 bits"),
        ("hardhat_mine", [-1], "got -1"),
        ("hardhat_mine", [True], "got True"),
        ("hardhat_mine", ["1e3"], "got '1e3'"),
        ("hardhat_mine", [1.5], "got 1.5"),
        (
            "hardhat_setBalance",
            [STRANGER, "0x1" + "0" * 64],
            "expected a number of at most 256 bits",
        ),
        ("anvil_mine", ["0x186a1"], "blocks: expected at most 100000 per call, got 100001"),
        ("evm_mine", [{"blocks": 100_001}], "expected at most 100000 per call"),
        ("evm_mine", ["0x1"], "lower than or equal to the previous block's"),
        ("evm_mine", [1 << 50], "timestamp: expected at most"),
        ("evm_setNextBlockTimestamp", [1], "lower than or equal to the previous block's"),
        ("evm_increaseTime", [-5], "got -5"),
        ("evm_increaseTime", [1 << 60], "timestamp: expected at most"),
        ("evm_increaseTime", [], "missing value for required argument 0"),
        ("anvil_setIntervalMining", [1 << 40], "seconds: expected at most 2147483648, got"),
        ("evm_setAutomine", ["yes"], "cannot unmarshal string into Go value of type bool"),
        ("evm_revert", ["zero"], "got 'zero'"),
        (
            "hardhat_setNonce",
            [STRANGER, 1 << 64],
            "nonce: expected a number of at most 64 bits",
        ),
        ("hardhat_setBalance", ["0x1", "0x1"], "cannot unmarshal"),
        (
            "anvil_addBalance",
            [STRANGER, "0x" + "f" * 64],
            "balance: expected a sum of at most 256 bits",
        ),
        ("hardhat_reset", [{"forking": {"jsonRpcUrl": "x"}}], "forking: expected null"),
        ("evm_setBlockGasLimit", ["0x1"], "limit: expected a gas limit from 21000 to "),
        ("evm_setBlockGasLimit", [1 << 63], "limit: expected a gas limit from 21000 to "),
        ("anvil_setNextBlockBaseFeePerGas", ["0x" + "f" * 64], "at most 255 bits"),
        ("anvil_setCoinbase", ["0x1"], "cannot unmarshal"),
        ("hardhat_setMinGasPrice", ["0x0"], "set it with setNextBlockBaseFeePerGas"),
        ("anvil_loadState", ["0x"], "expected the result of anvil_dumpState"),
    ],
)
def test_invalid_control_calls_are_refused(
    w3: Any, method: str, params: Any, message: str
) -> None:
    if method == "anvil_addBalance":
        done(w3, "anvil_setBalance", STRANGER, "0x1")
    before = latest(w3)
    answer = asked(w3, method, *params)
    assert message in answer["error"]["message"], answer
    assert latest(w3) == before


@pytest.mark.parametrize("fee", [0, 1, 6, 7, 8, 10**9, 5 * 10**9 + 3, 10**30])
def test_the_next_block_has_the_base_fee_that_is_set(w3: Any, fee: int) -> None:
    chain_was = done(w3, "evm_snapshot")
    done(w3, "hardhat_setNextBlockBaseFeePerGas", hex(fee))
    assert int(done(w3, "eth_baseFee"), 16) == fee
    assert w3.eth.get_block("pending")["baseFeePerGas"] == fee
    done(w3, "evm_mine")
    made = w3.eth.get_block("latest")
    assert made["baseFeePerGas"] == fee
    # The base fee follows from the block before, as in EIP-1559.
    before = w3.eth.get_block(made["number"] - 1)
    assert (before["gasUsed"], before["transactions"]) == (0, [])
    assert before["baseFeePerGas"] - before["baseFeePerGas"] // 8 == fee
    done(w3, "evm_revert", chain_was)


def test_a_transaction_pays_the_base_fee_that_is_set(w3: Any, chain: EmbeddedChain) -> None:
    chain_was = done(w3, "evm_snapshot")
    done(w3, "anvil_setNextBlockBaseFeePerGas", hex(3 * 10**9))
    tx = {"from": FIRST, "to": STRANGER, "gas": 21_000, "maxPriorityFeePerGas": 7}
    receipt = settled(chain, w3, {**tx, "maxFeePerGas": 4 * 10**9})
    assert receipt["effectiveGasPrice"] == 3 * 10**9 + 7
    done(w3, "evm_revert", chain_was)


def test_changes_by_hand_leave_the_next_base_fee_as_it_is(
    w3: Any, chain: EmbeddedChain
) -> None:
    chain_was, fee = done(w3, "evm_snapshot"), 3 * 10**9 + 5
    done(w3, "hardhat_setNextBlockBaseFeePerGas", hex(fee))
    for method, value in (("Balance", hex(ETHER)), ("Nonce", "0x7"), ("Code", "0x00")):
        done(w3, f"hardhat_set{method}", STRANGER, value)
    done(w3, "hardhat_setCoinbase", STRANGER)
    done(w3, "evm_setBlockGasLimit", "0xf4240")
    done(w3, "anvil_loadState", done(w3, "anvil_dumpState"))

    assert int(done(w3, "eth_baseFee"), 16) == fee
    receipt = settled(chain, w3, {"from": FIRST, "to": STRANGER, "gas": 30_000})
    assert w3.eth.get_block(receipt["blockNumber"])["baseFeePerGas"] == fee
    done(w3, "evm_revert", chain_was)


def test_another_account_has_the_tips_of_later_blocks(w3: Any, chain: EmbeddedChain) -> None:
    chain_was, proposer = done(w3, "evm_snapshot"), w3.eth.get_block("latest")["miner"]
    other = Web3.to_checksum_address("0x" + "c0" * 20)
    done(w3, "hardhat_setCoinbase", other)
    # COINBASE, PUSH0, MSTORE, MSIZE, PUSH0, RETURN: the coinbase that code sees.
    call = {"data": "0x415f52595ff3"}
    tx = {"from": FIRST, "to": STRANGER, "gas": 21_000}
    for _ in range(2):
        before = w3.eth.get_balance(other)
        receipt = settled(
            chain, w3, {**tx, "maxFeePerGas": 4 * 10**9, "maxPriorityFeePerGas": 5}
        )
        assert w3.eth.get_block("latest")["miner"] == other
        assert w3.eth.get_balance(other) - before == 5 * receipt["gasUsed"]
        assert int(done(w3, "eth_call", call), 16) == int(other, 16)
    done(w3, "evm_revert", chain_was)
    done(w3, "evm_mine")
    assert w3.eth.get_block("latest")["miner"] == proposer


def test_later_blocks_have_the_gas_limit_that_is_set(w3: Any, chain: EmbeddedChain) -> None:
    chain_was, limit = done(w3, "evm_snapshot"), w3.eth.get_block("latest")["gasLimit"]
    done(w3, "evm_setBlockGasLimit", "0x7530")
    tx = {"from": FIRST, "to": STRANGER, "value": "0x1"}
    error = asked(w3, "eth_sendTransaction", {**tx, "gas": "0x7531"})["error"]
    assert error["message"] == "exceeds block gas limit"
    receipt = settled(chain, w3, {**tx, "gas": 30_000})
    assert w3.eth.get_block(receipt["blockNumber"])["gasLimit"] == 30_000
    assert w3.eth.get_block("pending")["gasLimit"] == 30_000
    assert chain.reads.consensus_params(chain.reads.latest_height()).block.max_gas == 30_000
    done(w3, "evm_revert", chain_was)
    done(w3, "evm_mine")
    assert w3.eth.get_block("latest")["gasLimit"] == limit


def test_a_state_is_dumped_and_loaded_whole(w3: Any, chain: EmbeddedChain) -> None:
    chain_was = done(w3, "evm_snapshot")
    # A contract with storage, and one with the same code.
    one, other = (Web3.to_checksum_address("0x" + digits * 20) for digits in ("d1", "d2"))
    for address in (one, other):
        done(w3, "hardhat_setCode", address, "0x5f545f5260205ff3")
        for slot in range(20):
            key = f"0x{slot:064x}"
            done(w3, "hardhat_setStorageAt", address, key, WORD)
    before = w3.eth.get_block("latest")["stateRoot"]
    dump = done(w3, "anvil_dumpState")
    done(w3, "evm_revert", chain_was)
    assert w3.eth.get_code(one) == b""

    chain_was, height = done(w3, "evm_snapshot"), w3.eth.block_number
    assert done(w3, "anvil_loadState", dump) is True
    assert w3.eth.get_block("latest")["stateRoot"] == before
    assert w3.eth.block_number == height + 1
    assert done(w3, "eth_call", {"to": other}) == WORD
    assert w3.eth.get_storage_at(one, 19) == bytes.fromhex(WORD[2:])
    # The account's nonce continues from there.
    receipt = settled(chain, w3, {"from": FIRST, "to": one, "value": 1, "gas": 50_000})
    assert (receipt["status"], w3.eth.get_balance(one)) == (1, 1)
    done(w3, "evm_revert", chain_was)


def fill(w3: Any, accounts: int) -> None:
    """Give accounts code of 300 kB each, which can't be compressed."""
    for number in range(accounts):
        code = random.Random(number).randbytes(300_000).hex()
        done(w3, "anvil_setCode", f"0x{number + 0xD3:040x}", f"0x{code}")


def test_a_state_larger_than_a_transaction_may_be_is_loaded(w3: Any) -> None:
    chain_was = done(w3, "evm_snapshot")
    fill(w3, 4)
    before, dump = w3.eth.get_block("latest")["stateRoot"], done(w3, "anvil_dumpState")
    done(w3, "evm_revert", chain_was)

    assert len(dump) > 2 * 1_048_576
    chain_was = done(w3, "evm_snapshot")
    assert done(w3, "anvil_loadState", dump) is True
    assert w3.eth.get_block("latest")["stateRoot"] == before
    done(w3, "evm_revert", chain_was)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"evm_max_body_bytes": 700_000}, "raise NODERPC_EVM_MAX_BODY_BYTES"),
        ({"max_response_bytes": 500_000}, "NODERPC_MAX_RESPONSE_BYTES"),
        ({}, "raise block.max_bytes in the genesis"),
    ],
)
def test_a_state_that_could_not_be_loaded_again_is_not_dumped(
    tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    app = dev_app(tmp_path, **settings)
    with closing(chain_of(app)) as chain, serve(app) as url:
        w3 = Web3(HTTPProvider(f"{url}/evm"))
        # A genesis document may have these parameters.
        block = BlockParams(max_bytes=1_048_576, max_gas=30_000_000)
        done(w3, "evm_mine")
        chain.mempool.submit_local(patch_tx(Change(block=block)), replaces=False)
        done(w3, "evm_mine")
        fill(w3, 3)
        assert message in asked(w3, "anvil_dumpState")["error"]["message"]


def test_a_dump_of_an_earlier_version_replaces_the_state(w3: Any, chain: EmbeddedChain) -> None:
    """Such a dump has the nodes of the tries."""
    done(w3, "hardhat_setCode", STRANGER, "0x5f545f5260205ff3")
    before, dump = bytes(w3.eth.get_block("latest")["stateRoot"]), old_dump(chain)
    chain_was = done(w3, "evm_snapshot")
    added = Web3.to_checksum_address("0x" + "d3" * 20)
    done(w3, "hardhat_setBalance", added, "0x1")

    assert done(w3, "anvil_loadState", f"0x{dump.hex()}") is True

    assert w3.eth.get_block("latest")["stateRoot"] == before
    assert w3.eth.get_balance(added) == 0
    # Dumps that lack a part, or have malformed nodes, are refused.
    root, parts = rlp.decode(zlib.decompress(dump))
    cut = zlib.compress(rlp.encode([root, parts[:-1]]))
    error = asked(w3, "anvil_loadState", f"0x{cut.hex()}")["error"]
    assert error["message"].endswith("is missing; dump the state again")
    for broken in (b"\xc1\x01", b"\xc0", b"\xd0"):
        wrong = zlib.compress(rlp.encode([keccak(broken), [broken]]))
        error = asked(w3, "anvil_loadState", f"0x{wrong.hex()}")["error"]
        assert (
            "got data that is not the RLP of a valid state; dump the state again"
            in error["message"]
        )
    done(w3, "evm_revert", chain_was)


def old_dump(chain: EmbeddedChain) -> bytes:
    """Return the latest state as earlier versions dumped it."""
    application = chain.store.abci
    assert isinstance(application, EvmApplication)
    state = EVM_STATE.of(application)
    root = state.root(chain.reads.latest_height())
    return zlib.compress(rlp.encode([root, list(accounts.records(state.record, root))]))


def test_a_damaged_dump_is_refused(w3: Any, chain: EmbeddedChain) -> None:
    dump = old_dump(chain)
    document = zlib.decompress(dump)
    root, records = rlp.decode(document)
    height = w3.eth.block_number
    for damaged, message in (
        (dump[:-1], "got data without its end; pass the whole dump"),
        (dump[:-5], "got data without its end; pass the whole dump"),
        (dump[: len(dump) // 2], "got data without its end; pass the whole dump"),
        (dump + b"x", "got more data after the end of the dump; pass only the dump"),
        (
            dump[:-1] + bytes((dump[-1] ^ 1,)),
            "got damaged zlib or gzip data; dump the state again",
        ),
        (
            zlib.compress(document + b"x"),
            "got data that is not the RLP of a valid state; dump the state again",
        ),
        (
            zlib.compress(rlp.encode([root, records, b"x"])),
            "got data that is not the RLP of a valid state; dump the state again",
        ),
        (
            zlib.compress(bytes(26_000_000)),
            "expected at most 25000000 bytes after decompression, got more; raise"
            " NODERPC_MAX_RESPONSE_BYTES",
        ),
    ):
        error = asked(w3, "anvil_loadState", f"0x{damaged.hex()}")["error"]
        assert error["message"].endswith(message), error
    assert w3.eth.block_number == height
    assert done(w3, "anvil_loadState", f"0x{dump.hex()}") is True


OF_ANVIL = "0x" + "d4" * 20


@pytest.mark.parametrize(
    ("account", "message"),
    [
        ({"balance": "0xg"}, "expected a number of at most 256 bits"),
        ({"balance": "1_0"}, "expected a number of at most 256 bits"),
        ({"nonce": 1 << 64}, "expected a number of at most 64 bits"),
        ({"nonce": -1}, "expected a number of at most 64 bits"),
        ({"code": "0x1"}, "expected hex, got '0x1'"),
        ({"code": "0x12 34"}, "expected hex, got '0x12 34'"),
        ({"storage": {"0x" + "1" * 65: "0x1"}}, "expected a word of at most 64 hex digits"),
        ({"storage": {"0x0": -1}}, "expected a word of at most 64 hex digits"),
        ({"balanse": "0x1"}, "balanse"),
        ([], "accounts"),
    ],
)
def test_a_dump_of_anvil_with_a_wrong_account_is_refused(
    w3: Any, account: Any, message: str
) -> None:
    height = w3.eth.block_number
    document = json.dumps({"accounts": {OF_ANVIL: account}}).encode()
    for dump in (document, gzip.compress(document)):
        error = asked(w3, "anvil_loadState", f"0x{dump.hex()}")["error"]
        assert error["message"].startswith("dump: expected the result of anvil_dumpState: ")
        assert message in error["message"]
    assert w3.eth.block_number == height


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda dump: dump[:-9], "got data without its end; pass the whole dump"),
        (lambda dump: dump[:12] + b"\xff" + dump[13:], "got damaged zlib or gzip data"),
        (
            lambda dump: gzip.compress(bytes(26_000_000)),
            "expected at most 25000000 bytes after decompression, got more; raise"
            " NODERPC_MAX_RESPONSE_BYTES",
        ),
        (lambda dump: b"{", "expected JSON: Input data was truncated"),
        (lambda dump: b"{}", "accounts"),
    ],
)
def test_a_damaged_dump_of_anvil_is_refused(
    w3: Any, damage: Callable[[bytes], bytes], message: str
) -> None:
    document = json.dumps({"accounts": {OF_ANVIL: {"balance": "0x1"}}}).encode()
    dump = damage(gzip.compress(document))
    error = asked(w3, "anvil_loadState", f"0x{dump.hex()}")["error"]
    assert message in error["message"]


def test_a_dump_of_anvil_may_write_numbers_in_many_ways(w3: Any) -> None:
    """Accounts that are not in the dump stay."""
    chain_was = done(w3, "evm_snapshot")
    done(w3, "hardhat_setBalance", STRANGER, "0x7")
    first, second, third = (f"0x{digits * 20}" for digits in ("d5", "d6", "d7"))
    dump = {
        "block": {"number": "0x9"},
        "accounts": {
            first: {"nonce": 3, "balance": "0x123", "code": "0x", "storage": {}},
            second[2:]: {"nonce": "0x3", "balance": "291", "storage": {"0x1": "0xabc"}},
            third: {"balance": 291, "secretKey": "0x1", "comment": "x", "builtin": {"a": 1}},
        },
        "best_block_number": 9,
        "blocks": [{}],
        "transactions": [{}],
        "historical_states": {},
    }
    height = w3.eth.block_number
    done(w3, "anvil_loadState", f"0x{gzip.compress(json.dumps(dump).encode()).hex()}")
    shown = [Web3.to_checksum_address(each) for each in (first, second, third)]
    assert [w3.eth.get_balance(each) for each in shown] == [0x123] * 3
    assert [w3.eth.get_transaction_count(each) for each in shown] == [3, 3, 0]
    assert w3.eth.get_storage_at(shown[1], 1) == (0xABC).to_bytes(32)
    assert w3.eth.get_balance(STRANGER) == 7
    assert w3.eth.block_number == height + 1
    done(w3, "evm_revert", chain_was)


EMPTY_ROOT, NO_CODE = keccak(rlp.encode(b"")), keccak(b"")


@pytest.mark.parametrize(
    "account",
    [
        [b"\1", b"\1", EMPTY_ROOT, NO_CODE, b"more"],
        [b"\0\1", b"\1", EMPTY_ROOT, NO_CODE],
        [b"\1", b"\0\1", EMPTY_ROOT, NO_CODE],
        [b"\1" * 9, b"\1", EMPTY_ROOT, NO_CODE],
        [b"\1", b"\1" * 33, EMPTY_ROOT, NO_CODE],
        [b"\1", b"\1", b"", NO_CODE],
        [b"\1", b"\1"],
    ],
    ids=["five", "nonce", "balance", "long nonce", "long balance", "root", "two"],
)
def test_a_state_with_an_account_that_none_can_have_is_refused(
    w3: Any, account: list[bytes]
) -> None:
    # A state of one account, whose root is a leaf with the whole path.
    leaf = rlp.encode([b"\x20" + keccak(bytes.fromhex(FIRST[2:])), rlp.encode(account)])
    dump = zlib.compress(rlp.encode([keccak(leaf), [leaf]]))
    height = w3.eth.block_number

    error = asked(w3, "anvil_loadState", f"0x{dump.hex()}")["error"]

    assert (
        "got data that is not the RLP of a valid state; dump the state again"
        in error["message"]
    )
    assert w3.eth.block_number == height


def test_a_state_whose_addresses_are_not_known_is_not_dumped(w3: Any) -> None:
    """A dump of an earlier version only has the hashes of addresses."""
    chain_was = done(w3, "evm_snapshot")
    account = rlp.encode([b"\1", b"\1", EMPTY_ROOT, NO_CODE])
    leaf = rlp.encode([b"\x20" + keccak(b"\x99" * 20), account])
    dump = zlib.compress(rlp.encode([keccak(leaf), [leaf]]))
    assert done(w3, "anvil_loadState", f"0x{dump.hex()}") is True

    error = asked(w3, "anvil_dumpState")["error"]

    assert "the addresses of their accounts are not stored" in error["message"]
    done(w3, "evm_revert", chain_was)


DRIVING = [route.name for route in CONTROL_ROUTES]


@pytest.mark.parametrize("name", DRIVING)
def test_every_method_that_drives_is_described(name: str) -> None:
    text = (Path(__file__).parents[4] / "docs" / "ethereum" / "development.rst").read_text()
    assert name in text or f"*_{name.partition('_')[2]}" in text


def test_without_the_setting_nothing_drives_the_chain(tmp_path: Path) -> None:
    app = dev_app(tmp_path, dev=False)
    client: Any = app.test_client()
    calls = [{"jsonrpc": "2.0", "id": name, "method": name} for name in DRIVING]
    with closing(chain_of(app)):
        replies = client.post("/evm", json=calls).json

    assert len(replies) == len(DRIVING)
    for reply in replies:
        assert reply["error"]["code"] == -32601
        assert reply["error"]["message"].endswith("is not available (NODERPC_DEV enables it)")


def test_nothing_drives_a_chain_of_another(tmp_path: Path) -> None:
    app = Flask("kvstore")
    backend = EmbeddedChain(tmp_path / "noderpc.db", produce=False)
    NodeRPC(app, backend=backend, dev=True, settings=[EthereumSettings(json_rpc_enable=True)])
    client: Any = app.test_client()
    call = {"jsonrpc": "2.0", "id": 1, "method": "evm_mine"}
    with closing(backend):
        error = client.post("/evm", json=call).json["error"]

    assert error["code"] == -32004
    assert "set NODERPC_DEV" in error["message"]


def test_accounts_are_changed(w3: Any) -> None:
    done(w3, "hardhat_setBalance", STRANGER, hex(5 * ETHER))
    done(w3, "anvil_addBalance", STRANGER, hex(ETHER))
    done(w3, "anvil_setNonce", STRANGER, "0x7")
    done(w3, "hardhat_setCode", STRANGER, "0x6001")
    done(w3, "anvil_setStorageAt", STRANGER, "0x0", WORD)
    assert w3.eth.get_balance(STRANGER) == 6 * ETHER
    assert w3.eth.get_transaction_count(STRANGER) == 7
    assert w3.eth.get_code(STRANGER) == b"\x60\x01"
    assert w3.eth.get_storage_at(STRANGER, 0)[-1] == 42


def test_pending_transactions_can_be_dropped(w3: Any) -> None:
    tx = {"from": w3.eth.accounts[1], "to": FIRST, "gas": 21_000}
    first, other = w3.eth.send_transaction(tx), w3.eth.send_transaction(tx)
    theirs = w3.eth.send_transaction({**tx, "from": w3.eth.accounts[2]})
    assert done(w3, "anvil_dropTransaction", other.to_0x_hex()) == other.to_0x_hex()
    assert done(w3, "anvil_dropTransaction", other.to_0x_hex()) is None
    other = w3.eth.send_transaction(tx)
    assert done(w3, "hardhat_dropTransaction", other.to_0x_hex()) is True
    assert done(w3, "hardhat_dropTransaction", other.to_0x_hex()) is False
    assert done(w3, "anvil_removePoolTransactions", w3.eth.accounts[1]) is None
    assert [tx["hash"] for tx in done(w3, "eth_pendingTransactions")] == [theirs.to_0x_hex()]
    assert done(w3, "anvil_dropAllTransactions") is None
    done(w3, "evm_mine")
    assert w3.eth.get_block("latest")["transactions"] == []
    assert first != theirs


def test_mine_includes_pending_transactions(w3: Any) -> None:
    tx = {"from": w3.eth.accounts[1], "to": FIRST, "gas": 21_000}
    sent = [w3.eth.send_transaction(tx) for _ in range(3)]
    done(w3, "evm_mine")
    assert w3.eth.get_block("latest")["transactions"] == sent


def test_both_surfaces_go_back_to_a_snapshot(app: Flask, w3: Any) -> None:
    node: Any = app.test_client()
    height, time = latest(w3)
    balance = w3.eth.get_balance(STRANGER)
    status = node.get("/status").json["result"]["sync_info"]
    number = done(w3, "evm_snapshot")
    sent = w3.eth.send_transaction({"from": FIRST, "to": STRANGER, "value": ETHER})
    done(w3, "evm_increaseTime", 10**6)
    done(w3, "anvil_mine", 3)
    gone = w3.eth.get_block(height + 1)
    raw_hash = node.get(f"/block?height={height + 1}").json["result"]["block_id"]["hash"]
    assert w3.eth.get_balance(STRANGER) == balance + ETHER

    assert done(w3, "evm_revert", number) is True

    assert latest(w3) == (height, time)
    assert node.get("/status").json["result"]["sync_info"] == status
    assert "error" in node.get(f"/block?height={height + 1}").json
    assert "error" in node.get(f"/block_by_hash?hash=0x{raw_hash}").json
    found = node.get(f'/tx_search?query="tx.height>{height}"').json["result"]
    assert found["total_count"] == "0"
    assert done(w3, "eth_getBlockByHash", gone["hash"].to_0x_hex(), False) is None
    assert done(w3, "eth_getTransactionReceipt", sent.to_0x_hex()) is None
    assert w3.eth.get_balance(STRANGER) == balance
    done(w3, "evm_mine")
    assert latest(w3)[0] == height + 1
    assert latest(w3)[1] < time + 10**5


def test_a_snapshot_is_valid_until_it_is_reverted_to(w3: Any) -> None:
    first, second = done(w3, "evm_snapshot"), done(w3, "evm_snapshot")
    assert int(second, 16) == int(first, 16) + 1
    assert done(w3, "evm_revert", first) is True
    for number in (first, second, "0xffff", "0x0"):
        assert done(w3, "evm_revert", number) is False


def test_filters_go_on_behind_a_revert(w3: Any) -> None:
    number = done(w3, "evm_snapshot")
    blocks = done(w3, "eth_newBlockFilter")
    done(w3, "anvil_mine", 2)
    assert len(done(w3, "eth_getFilterChanges", blocks)) == 2
    done(w3, "evm_revert", number)
    assert done(w3, "eth_getFilterChanges", blocks) == []
    done(w3, "evm_mine")
    now = w3.eth.get_block("latest")["hash"].to_0x_hex()
    assert done(w3, "eth_getFilterChanges", blocks) == [now]


def test_subscribers_get_heads_after_a_revert(url: str, w3: Any) -> None:
    number = done(w3, "evm_snapshot")
    done(w3, "anvil_mine", 3)
    with_heads = WebSocketClient(url, path="/evm/ws")
    with_heads.asked("eth_subscribe", ["newHeads"])

    def told() -> str:
        own_hash: str = with_heads.json()["params"]["result"]["hash"]
        return own_hash

    # The subscriber is not notified of the blocks that were reverted.
    done(w3, "evm_revert", number)
    done(w3, "evm_mine")
    assert told() == w3.eth.get_block("latest")["hash"].to_0x_hex()
    again = done(w3, "evm_snapshot")
    for _ in range(2):
        done(w3, "evm_mine")
        assert told() == w3.eth.get_block("latest")["hash"].to_0x_hex()
        done(w3, "evm_revert", again)
        again = done(w3, "evm_snapshot")
    with_heads.close()


def test_a_reset_reverts_to_the_genesis(w3: Any) -> None:
    begun = done(w3, "anvil_metadata")["instanceId"]
    assert done(w3, "hardhat_reset") is True
    assert w3.eth.block_number == 0
    assert w3.eth.get_balance(FIRST) == 10_000 * ETHER
    done(w3, "evm_mine")
    assert done(w3, "hardhat_metadata")["instanceId"] == begun


def test_node_info_shows_the_head_and_client(w3: Any) -> None:
    height, time = latest(w3)
    told, known = done(w3, "anvil_nodeInfo"), done(w3, "hardhat_metadata")
    assert int(told["currentBlockNumber"], 16) == height
    # The numbers are JSON numbers or hex strings, like anvil's.
    assert told["currentBlockTimestamp"] == time
    assert done(w3, "anvil_getGenesisTime") == w3.eth.get_block(0)["timestamp"]
    assert told["environment"]["chainId"] == known["chainId"] == 31337
    assert int(told["environment"]["gasLimit"], 16) > 21_000
    assert known["latestBlockHash"] == told["currentBlockHash"]
    assert known["clientVersion"].startswith("anvil/compatible (flask-noderpc/")


def test_control_methods_are_limited_to_loopback(app: Flask, w3: Any) -> None:
    before = latest(w3)
    client: Any = app.test_client()
    driving = [name for name in DRIVING if name not in REASONS]
    calls = [{"jsonrpc": "2.0", "id": name, "method": name} for name in driving]
    elsewhere = client.post("/evm", json=calls, environ_base={"REMOTE_ADDR": "192.0.2.1"}).json
    behind = client.post("/evm", json=calls, headers={"Forwarded": "for=192.0.2.1"}).json

    assert len(elsewhere) == len(behind) == len(driving)
    for reply in (*elsewhere, *behind):
        message = reply["error"]["message"]
        assert message.startswith("only callers on this machine may sign here ("), reply
    assert latest(w3) == before
