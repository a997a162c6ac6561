"""Tests of ``eth_call`` and ``eth_estimateGas``, over HTTP, on hand-assembled contracts."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from eth_abi.abi import encode
from web3 import Web3

from flask_noderpc.ethereum.application.state import ChainRules
from flask_noderpc.ethereum.domain.forks import PRAGUE
from flask_noderpc.ethereum.state import EVM_STATE
from tests.ethereum.protocol.signing import CHAIN_ID, OTHER, TO, sender
from tests.helpers.until import PATIENCE, until

from .contracts import (
    BLOCK,
    CAREFUL,
    CLEARS,
    COUNTER,
    ECHO,
    ETHER,
    GWEI,
    INVALID,
    LOOPS,
    REVERTS,
    RICH,
    at,
)
from .evm_node import Running, tx

ME = f"0x{sender().hex()}"
NOBODY = at(0xBAD)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A node with two blocks; the second has a call of the counter."""
    made = Running(tmp_path_factory.mktemp("calls"))
    made.mine()
    made.mine(tx(0, to=COUNTER, gas=60_000, value=0))
    yield made
    made.close()


def error_data(kind: str, types: list[str], *values: object) -> str:
    return "0x" + kind + encode(types, values).hex()


def test_eth_call_returns_the_contracts_output(node: Running) -> None:
    assert node.ask("eth_call", {"to": ECHO, "data": "0x1234"}) == "0x1234"
    assert node.ask("eth_call", {"to": ECHO, "input": "0x12"}, "latest") == "0x12"
    assert node.ask("eth_call", {"to": NOBODY, "data": "0x12"}, "latest") == "0x"
    # A call changes no state.
    for _ in range(2):
        assert int(node.ask("eth_call", {"to": COUNTER}), 16) == 2
    assert int(node.ask("eth_call", {"to": COUNTER}, "0x1"), 16) == 1


REASONS = [
    (error_data("08c379a0", ["string"], "no luck"), "execution reverted: no luck"),
    (
        error_data("4e487b71", ["uint256"], 0x11),
        "execution reverted: arithmetic underflow or overflow",
    ),
    (error_data("12345678", ["address"], TO), "execution reverted"),
    ("0x", "execution reverted"),
]


@pytest.mark.parametrize("method", ["eth_call", "eth_estimateGas"])
@pytest.mark.parametrize(("data", "text"), REASONS)
def test_a_revert_error_carries_its_data(
    node: Running, method: str, data: str, text: str
) -> None:
    error = node.error(method, {"to": REVERTS, "data": data})
    assert error == {"code": 3, "message": text, "data": data}


@pytest.mark.parametrize(
    "call",
    [
        {"from": ME, "to": TO, "value": "0x5"},
        {"from": ME, "to": TO, "value": hex(RICH)},
        {"from": ME, "to": TO, "value": hex(RICH + 1)},
        {"from": ME, "to": TO, "value": "0x5", "gasPrice": hex(10**15)},
        {"from": ME, "to": TO, "value": "0x5", "maxFeePerGas": hex(3 * 10**9)},
        {"from": ME, "to": TO, "value": "0x5", "gas": hex(21_000)},
        {"from": ME, "to": TO, "data": "0x01"},
        {"from": ME, "to": TO, "accessList": [{"address": TO, "storageKeys": []}]},
        {"from": ME, "to": "0x" + "00" * 19 + "04"},
        {"from": ME, "to": COUNTER},
        {"from": ME, "to": REVERTS},
        {"from": ME, "data": "0x"},
        {"from": TO, "to": ME, "value": "0x1"},
        {"to": TO},
    ],
)
def test_a_transfer_is_estimated_as_if_it_ran(node: Running, call: Any) -> None:
    # Any override makes the engine run the estimate.
    overrides = {f"0x{99:040x}": {"balance": "0x1"}}
    plain = node.reply("eth_estimateGas", (call, "latest"))
    assert plain == node.reply("eth_estimateGas", (call, "latest", overrides))


_BN254 = 0x30644E72E131A029B85045B68181585D97816A916871CA8D3C208C16D87CFD47
_BLS = int(
    "1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f624"
    "1eabfffeb153ffffb9feffffffffaaab",
    16,
)
# The point (0, 2) of BLS12-381, which has the order 3 and so is outside the subgroup G1.
_OF_ORDER_3 = bytes(64) + (2).to_bytes(64)
# A point on the curve of alt_bn128's G2 with the order 10,069, outside the subgroup.
_OUTSIDE_G2 = b"".join(
    number.to_bytes(32)
    for number in (
        1257281455481663223630317242928965539955740556487589300335283154790432317013,
        11417308034817494228721694163050080228111188207925142038884127613330459530444,
        15174515692070179976946831797323659154063832736336054187033803429893145730957,
        21307556897268156638531493607027995375845297206286071243629229211578710319869,
    )
)
_NO_POINT = b"\xc0" + bytes(47)
_NO_BLOB = b"\1" + sha256(_NO_POINT).digest()[1:]
# geth: core/vm/contracts.go and gnark.
REFUSED_INPUTS = [
    (0x06, (1).to_bytes(32) * 2, "point is not on curve"),
    (0x06, _BN254.to_bytes(32), "invalid fp.Element encoding"),
    (0x07, bytes(32) + _BN254.to_bytes(32), "invalid fp.Element encoding"),
    (0x08, bytes(191), "bad elliptic curve pairing size"),
    (0x08, bytes(64) + (1).to_bytes(32) * 4, "point is not on curve"),
    (0x08, bytes(160) + _BN254.to_bytes(32), "invalid fp.Element encoding"),
    (0x08, bytes(64) + _OUTSIDE_G2, "point is not in correct subgroup"),
    (0x09, bytes(212), "invalid input length"),
    (0x09, bytes(212) + b"\2", "invalid final flag"),
    (0x0A, bytes(191), "invalid input length"),
    (0x0A, bytes(192), "mismatched versioned hash"),
    (
        0x0A,
        _NO_BLOB + bytes(32) + (1).to_bytes(32) + _NO_POINT * 2,
        "error verifying kzg proof: can't verify opening proof",
    ),
    (0x0B, bytes(255), "invalid input length"),
    (0x0B, (1).to_bytes(64) * 4, "invalid point: not on curve"),
    (0x0B, b"\1" + bytes(255), "invalid field element top bytes"),
    (0x0B, bytes(128) + _BLS.to_bytes(64) * 2, "invalid fp.Element encoding"),
    (0x0C, _OF_ORDER_3 + bytes(32), "g1 point is not on correct subgroup"),
    (0x0D, bytes(192) + _BLS.to_bytes(64) + bytes(256), "invalid fp.Element encoding"),
    (0x0F, _OF_ORDER_3 + bytes(256), "g1 point is not on correct subgroup"),
    (0x0F, _OF_ORDER_3 + (1).to_bytes(64) * 4, "invalid point: not on curve"),
    (0x10, b"\1" + bytes(63), "invalid field element top bytes"),
    (0x11, bytes(127), "invalid input length"),
]


@pytest.mark.parametrize(("number", "data", "text"), REFUSED_INPUTS)
def test_precompile_failures_get_geths_errors(
    node: Running, number: int, data: bytes, text: str
) -> None:
    call = {"to": at(number), "data": f"0x{data.hex()}"}
    assert node.error("eth_call", call) == {"code": -32000, "message": text}
    tree = node.ask("debug_traceCall", call, "latest", {"tracer": "callTracer"})
    assert tree["error"] == text


def test_other_failures(node: Running) -> None:
    assert node.error("eth_call", {"to": INVALID})["message"] == "invalid opcode: INVALID"
    assert node.error("eth_call", {"to": LOOPS, "gas": "0x10000"})["message"] == "out of gas"
    assert node.error("eth_estimateGas", {"to": LOOPS, "gas": "0x10000"}) == {
        "code": -32000,
        "message": "gas required exceeds allowance (65536)",
    }
    message = node.error("eth_call", {"from": NOBODY, "to": TO, "value": "0x1"})["message"]
    assert (
        f"insufficient funds for gas * price + value: address {NOBODY} have 0 want 1" in message
    )
    for method in ("eth_call", "eth_createAccessList"):
        message = node.error(method, {"to": TO, "gas": "0x5207"})["message"]
        assert message == (
            "err: intrinsic gas too low: have 20999, want 21000 (supplied gas 20999)"
        )


def test_heights_that_are_not_there(node: Running) -> None:
    for method in ("eth_call", "eth_estimateGas"):
        assert node.error(method, {"to": ECHO}, "0x99")["message"] == "header not found"
        unknown = {"blockHash": "0x" + "12" * 32}
        assert node.error(method, {"to": ECHO}, unknown)["message"] == (
            "header for hash not found"
        )
    error = node.error("eth_call", {"to": ECHO}, hex(1 << 63))
    assert error["code"] == -32602


def test_a_block_as_code_sees_it(node: Running) -> None:
    def words(*params: Any) -> list[int]:
        data = bytes.fromhex(node.ask("eth_call", {"to": BLOCK}, *params)[2:])
        return [int.from_bytes(data[start : start + 32]) for start in range(0, 256, 32)]

    header = node.ask("eth_getBlockByNumber", "0x1", False)
    names = ("number", "timestamp", "miner", "gasLimit")
    # In geth, a call without a gas price sees a base fee of 0.
    assert words("0x1") == [*(int(header[name], 16) for name in names), 0, 0, 9000, 1]
    changes = {
        "number": "0x11",
        "time": "0x12",
        "feeRecipient": at(0x13),
        "gasLimit": "0xffffff",
        "baseFeePerGas": "0x0",
        "prevRandao": "0x" + "00" * 31 + "15",
        "blobBaseFee": "0x16",
    }
    assert words("0x1", {}, changes) == [0x11, 0x12, 0x13, 0xFFFFFF, 0, 0x15, 9000, 0x16]


def test_a_sender_may_have_used_its_last_nonce(node: Running) -> None:
    last = {ME: {"nonce": "0xffffffffffffffff"}}
    assert int(node.ask("eth_call", {"from": ME, "to": COUNTER}, "latest", last), 16) == 2


def test_a_sender_of_the_last_nonce_creates_nothing(node: Running) -> None:
    last = {ME: {"nonce": "0xffffffffffffffff"}}
    answer = node.error("eth_call", {"from": ME, "data": "0x00"}, "latest", last)
    assert answer == {"code": -32000, "message": "nonce uint64 overflow"}


@pytest.mark.parametrize("method", ["eth_call", "eth_estimateGas", "debug_traceCall"])
def test_blobs_are_paid_for(node: Running, method: str) -> None:
    blobs = {"from": NOBODY, "to": ECHO, "blobVersionedHashes": ["0x01" + "00" * 31]}
    blobs["maxFeePerBlobGas"] = "0x10"
    dear = {"blobBaseFee": "0x10"}
    place = ({"blockOverrides": dear},) if method == "debug_traceCall" else ({}, dear)
    answer = node.error(method, blobs, "latest", *place)
    assert "insufficient funds" in answer["message"]
    assert answer["message"].split(" (")[0].endswith(f"have 0 want {0x10 << 17}")
    del blobs["maxFeePerBlobGas"]
    node.ask(method, blobs, "latest", *place)


def test_a_balance_overflow_in_a_call_is_accepted(node: Running) -> None:
    rich = {NOBODY: {"balance": hex(2**256 - 1)}}
    gift = {"from": ME, "to": NOBODY, "value": "0x1"}
    assert node.ask("eth_call", gift, "latest", rich) == "0x"


def test_data_and_input_that_differ(node: Running) -> None:
    call = {"to": ECHO, "data": "0x12", "input": "0x34"}
    assert node.ask("eth_call", call) == "0x34"
    assert node.ask("eth_call", {**call, "input": None}) == "0x12"
    assert node.error("eth_fillTransaction", {"from": ME, **call}) == {
        "code": -32000,
        "message": 'both "data" and "input" are set and not equal. Please use "input" to pass'
        " transaction call data",
    }


def test_the_members_of_a_call_are_found_in_any_letter_case(node: Running) -> None:
    assert node.ask("eth_call", {"To": ECHO, "INPUT": "0x34"}, {"BlockNumber": "0x1"}) == "0x34"
    code = {NOBODY: {"Code": "0x60ff5f5260205ff3"}}
    assert int(node.ask("eth_call", {"TO": NOBODY}, "latest", code), 16) == 0xFF
    seen = node.ask("eth_call", {"to": BLOCK}, "latest", None, {"Time": "0x7"})
    assert int(seen[66:130], 16) == 7
    assert node.ask("eth_getLogs", {"FromBlock": "0x0", "ToBlock": "0x1"}) == []


def test_the_rules_of_the_chain(node: Running) -> None:
    found = node.ask("eth_config")
    genesis = bytes.fromhex(node.ask("eth_getBlockByNumber", "0x0", False)["hash"][2:])
    current = found["current"]
    assert found == {"current": current, "next": None, "last": None}
    # The names and texts of EIP-7910.
    assert (current["activationTime"], current["chainId"]) == (0, "0x2328")
    assert current["forkId"] == f"0x{zlib.crc32(genesis):08x}"
    assert current["systemContracts"] == {}
    # EIP-7691.
    blobs = {"target": 6, "max": 9, "baseFeeUpdateFraction": 5_007_716}
    assert current["blobSchedule"] == blobs
    assert len(current["precompiles"]) == 18
    assert current["precompiles"]["P256VERIFY"] == at(0x100)
    assert current["precompiles"]["ECREC"] == at(1)
    assert current["precompiles"]["BLS12_MAP_FP2_TO_G2"] == at(0x11)


def test_overrides(node: Running) -> None:
    def counted(override: dict[str, Any]) -> int:
        return int(node.ask("eth_call", {"to": COUNTER}, "latest", {COUNTER: override}), 16)

    seven = {"0x" + "00" * 32: "0x" + "00" * 31 + "07"}
    assert counted({"state": seven}) == counted({"stateDiff": seven}) == 8
    assert counted({"state": {}}) == 1
    assert counted({"stateDiff": {}}) == 2
    code = {NOBODY: {"code": "0x60ff5f5260205ff3"}}
    assert int(node.ask("eth_call", {"to": NOBODY}, "latest", code), 16) == 0xFF
    rich = {NOBODY: {"balance": hex(ETHER)}}
    assert node.ask("eth_call", {"from": NOBODY, "to": ECHO, "value": "0x1"}, "latest", rich)
    both = {COUNTER: {"state": seven, "stateDiff": seven}}
    error = node.error("eth_call", {"to": COUNTER}, "latest", both)
    shown = Web3.to_checksum_address(COUNTER)
    assert error["message"] == f"account {shown} has both 'state' and 'stateDiff'"
    assert error["code"] == -32000
    # Move sha256 to another address.
    moved = {at(2): {"movePrecompileToAddress": NOBODY}}
    digest = node.ask("eth_call", {"to": at(2), "data": "0x12"})
    assert node.ask("eth_call", {"to": NOBODY, "data": "0x12"}, "latest", moved) == digest
    assert node.ask("eth_call", {"to": at(2), "data": "0x12"}, "latest", moved) == "0x"


def test_a_contract_that_a_call_creates(node: Running) -> None:
    # PUSH2 size, PUSH1 13, PUSH0, CODECOPY; PUSH2 size, PUSH0, RETURN.
    creation = "0x610006600d5f396100065ff3" + "00" + "365f5f375f5f"
    assert node.ask("eth_call", {"data": creation}) == "0x365f5f375f5f"
    assert node.ask("eth_call", {}) == "0x"


def test_a_contract_that_was_created_is_called(tmp_path: Path) -> None:
    node = Running(tmp_path)
    try:
        echo = "365f5f37365ff3"
        creation = bytes.fromhex(f"610007600d5f396100075ff300{echo}")
        gas = node.number("eth_estimateGas", {"from": ME, "data": f"0x{creation.hex()}"})
        (receipt,) = node.mine(tx(0, to="", data=creation, value=0, gas=gas))
        assert receipt["status"] == "0x1"
        made = receipt["contractAddress"]
        assert node.ask("eth_getCode", made, "latest") == f"0x{echo}"
        assert node.ask("eth_getCode", made, "0x0") == "0x"
        assert node.ask("eth_call", {"to": made, "data": "0xab"}) == "0xab"
        # Before the contract existed, the account had no code.
        assert node.ask("eth_call", {"to": made, "data": "0xab"}, "0x0") == "0x"
    finally:
        node.close()


@pytest.mark.parametrize(
    "call",
    [
        {"to": TO, "value": "0x1"},
        {"to": ECHO, "data": "0x" + "ff" * 2000},
        {"to": COUNTER},
        # The gas must be available before the refund is paid.
        {"to": CLEARS},
        # 63 of 64 parts of the gas go to the called contract.
        {"to": CAREFUL},
        {"data": "0x610006600d5f396100065ff300365f5f375f5f"},
        {
            "to": COUNTER,
            "accessList": [{"address": COUNTER, "storageKeys": ["0x" + "00" * 32]}],
        },
    ],
    ids=["transfer", "calldata", "counter", "refunds", "63/64", "creation", "access list"],
)
def test_an_estimate_is_enough_and_little_more(node: Running, call: dict[str, Any]) -> None:
    call = {"from": ME, **call}
    gas = node.number("eth_estimateGas", call)
    node.ask("eth_call", {**call, "gas": hex(gas)})
    assert node.error("eth_call", {**call, "gas": hex(int(gas * 0.98))})


@pytest.mark.parametrize("keys", [5, {"0x": 1}, "0x"])
def test_storage_keys_are_a_list(node: Running, keys: Any) -> None:
    call = {"from": ME, "to": TO, "accessList": [{"address": COUNTER, "storageKeys": keys}]}
    error = node.error("eth_estimateGas", call)
    assert error["code"] == -32602
    assert "[]common.Hash" in error["message"]


def test_an_estimate_covers_gas_before_refunds(node: Running) -> None:
    # EIP-7702: 12,500 of the 25,000 gas of an authorization are refunded if the account exists.
    signed: Any = OTHER.sign_authorization(
        {"chainId": CHAIN_ID, "address": COUNTER, "nonce": 0}
    )
    authorization = {
        "chainId": hex(signed.chain_id),
        "address": COUNTER,
        "nonce": hex(signed.nonce),
        "yParity": hex(signed.y_parity),
        "r": hex(signed.r),
        "s": hex(signed.s),
    }
    call = {"from": ME, "to": TO, "authorizationList": [authorization]}
    assert node.number("eth_estimateGas", call) == 46_000
    to_code = {**call, "to": OTHER.address}
    gas = node.number("eth_estimateGas", to_code)
    node.ask("eth_call", {**to_code, "gas": hex(gas)})
    assert node.error("eth_call", {**to_code, "gas": hex(int(gas * 0.98))})


def test_signatures_of_authorizations_may_begin_with_zeros(node: Running) -> None:
    # hardhat pads them to 32 bytes.
    one = f"0x{1:064x}"
    authorization = {"chainId": "0x1", "address": TO, "nonce": "0x0", "yParity": "0x0"}
    call = {"from": ME, "to": TO, "authorizationList": [{**authorization, "r": one, "s": one}]}
    assert node.number("eth_estimateGas", call) == 46_000


def test_estimates_of_plain_transfers_are_exact(node: Running) -> None:
    assert node.number("eth_estimateGas", {"from": ME, "to": TO, "value": "0x1"}) == 21_000
    # geth ignores a gas limit that is lower than any transaction needs.
    few = {"from": ME, "to": TO, "gas": "0x1"}
    assert node.number("eth_estimateGas", few) == 21_000


def test_an_estimate_is_capped_by_the_senders_balance(node: Running) -> None:
    poor = {NOBODY: {"balance": hex(60_000 * 2 * GWEI)}}
    call = {"from": NOBODY, "to": COUNTER, "maxFeePerGas": hex(2 * GWEI)}
    call |= {"maxPriorityFeePerGas": hex(2 * GWEI)}
    free = node.number("eth_estimateGas", {"from": NOBODY, "to": COUNTER})
    assert node.number("eth_estimateGas", call, "latest", poor) <= free * 1.02
    looping = {**call, "to": LOOPS}
    assert node.error("eth_estimateGas", looping, "latest", poor)["message"] == (
        "gas required exceeds allowance (60000)"
    )
    rich = {NOBODY: {"balance": hex(ETHER)}}
    giving = {**call, "value": hex(ETHER)}
    for args in ((call,), (giving,), (giving, "latest", rich)):
        error = node.error("eth_estimateGas", *args)
        assert "insufficient funds for transfer" in error["message"]


def test_a_fee_below_the_base_fee_is_refused(node: Running) -> None:
    error = node.error("eth_call", {"to": ECHO, "gasPrice": "0x1"})
    assert error["message"].startswith("max fee per gas less than block base fee: address ")


def test_an_endless_loop_ends(tmp_path: Path) -> None:
    # From Osaka on an estimate has at most the gas of a transaction, and would end.
    rules = ChainRules(PRAGUE)
    node = Running(tmp_path, call_s=1, evm_gas_cap=1 << 40, evm_timeout=1, forks=rules)
    try:
        for method in ("eth_call", "eth_estimateGas"):
            unlimited = {"to": LOOPS, "gas": hex(1 << 40)}
            assert node.error(method, unlimited, "latest")["message"] == (
                "execution aborted (timeout = 1s)"
                " (to allow more seconds, raise NODERPC_EVM_TIMEOUT)"
            )
        call = {"to": ECHO, "data": "0x12"}
        # On a busy machine, a call that ends may time out, too.
        until(lambda: node.reply("eth_call", (call,)).get("result") == "0x12", "an answer")
    finally:
        node.close()


def test_an_executor_that_is_killed_costs_its_call_alone(tmp_path: Path) -> None:
    node = Running(tmp_path, waiting=0, evm_gas_cap=1 << 40)
    try:
        node.ask("eth_call", {"to": ECHO})
        endless = {"to": LOOPS, "gas": hex(1 << 40)}
        with ThreadPoolExecutor(1) as threads:
            lost = threads.submit(node.error, "eth_call", endless)
            machine: Any = EVM_STATE.of(node.chain)
            until(lambda: len(machine._calls._pool.working) == 1, "it runs")
            busy = node.error("eth_call", {"to": ECHO})
            assert busy["code"] == -32002
            assert "NODERPC_EVM_EXECUTORS" in busy["message"]
            found = subprocess.run(
                [
                    "pgrep",
                    "-f",
                    "ethereum.application.executor "
                    + re.escape(node.chain.store.location.path),
                ],
                capture_output=True,
                text=True,
                check=True,
            )
            # The executor of blocks is idle.
            for pid in found.stdout.split():
                os.kill(int(pid), signal.SIGKILL)
            assert (
                "the process that executed the call has ended"
                in lost.result(PATIENCE)["message"]
            )
        assert node.ask("eth_call", {"to": ECHO, "data": "0x12"}) == "0x12"
    finally:
        node.close()
