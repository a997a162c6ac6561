"""Tests of viem's test client and hardhat, which drive our development chain, and of cast and
web3.py, which use it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from web3 import HTTPProvider, Web3
from web3.exceptions import (
    ContractCustomError,
    ContractLogicError,
    ContractPanicError,
)
from web3.middleware import SignAndSendRawMiddlewareBuilder

from tests.helpers.until import PATIENCE

from ..helpers.require import skip_or_fail
from . import ETHEREUM_SCRIPTS
from .evm_node import ACCOUNTS, DevAccount

SCRIPTS = ETHEREUM_SCRIPTS / "evm"
HARDHAT = ETHEREUM_SCRIPTS / "node_modules" / ".bin" / "hardhat"
CAST = ETHEREUM_SCRIPTS / "node_modules/@foundry-rs/cast-linux-amd64/bin/cast"
COUNTER = json.loads((SCRIPTS / "Counter.json").read_text())
ETHER = 10**18
TOO_MUCH = Web3.keccak(text="TooMuch(address,uint256,uint256)")[:4].hex()


def steps(*words: object, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return what a script prints."""
    ended = subprocess.run(
        [str(word) for word in words],
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        cwd=SCRIPTS,
        env={**os.environ, **(env or {})},
    )
    assert ended.returncode == 0, ended.stderr
    found = map(json.loads, ended.stdout.splitlines())
    return {step["step"]: step["shown"] for step in found}


@pytest.mark.parametrize("mode", ["anvil", "hardhat"])
def test_viem_drives_the_chain(ethereum_js: str, evm_base: str, mode: str) -> None:
    nobody = "0x" + "98" * 20
    assert steps(ethereum_js, "test_client.js", f"{evm_base}/evm", mode) == {
        "automine": False,
        "mine": 2,
        "mine at intervals": True,
        "increaseTime": True,
        "setNextBlockTimestamp": True,
        "setBalance": 3 * ETHER,
        "setNonce": 9,
        "snapshot and revert": [42, 42, True, True],
        "impersonateAccount": ["unknown account", nobody, "success"],
        "dropTransaction": [2, 1, 0, "success"],
        "setAutomine": [True, "success"],
        "setIntervalMining": [True, False],
        "setBlockGasLimit": 20_000_000,
        "setNextBlockBaseFeePerGas": 2_000_000_001,
        "setCoinbase": nobody.lower(),
        "reset": [0, 0],
    }


@pytest.mark.parametrize("network", ["node", "keys"])
def test_hardhat_uses_and_drives_the_chain(
    ethereum_js: str, evm_base: str, tmp_path: Path, network: str
) -> None:
    env = {
        "NODE_URL": f"{evm_base}/evm",
        "KEY": ACCOUNTS[3].key,
        "HOME": str(tmp_path),
        "HARDHAT_DISABLE_TELEMETRY_PROMPT": "true",
    }
    words = ["run", "--no-compile", "--network", network, "hardhat.js"]
    shown = steps(ethereum_js, HARDHAT.resolve(), *words, env=env)
    expected = {
        "chain id": 31337,
        "deployed": 1,
        "sent": [1, 12],
        "logs": 1,
        "called": 12,
        "reason": {
            "message": "execution reverted: nothing to add",
            "name": "Error",
            "last": "nothing to add",
        },
        "custom error": {"message": "execution reverted", "name": "TooMuch", "last": 1000},
        "panic": {
            "message": "execution reverted: arithmetic underflow or overflow",
            "name": "Panic",
            "last": 0x11,
        },
    }
    driven = {
        "mine": 5,
        "mine at intervals": True,
        "time.increase": True,
        "time.increaseTo": True,
        "time.setNextBlockTimestamp": True,
        "accounts": [ETHER, "0x6001", 3, 42],
        "impersonateAccount": 1,
        "takeSnapshot": 0,
        "setPrevRandao": 5,
        "metadata": 31337,
        "loadFixture": 0,
    }
    assert shown == (expected | driven if network == "node" else expected)


def cast(url: str, *words: str) -> str:
    """Return what cast prints; raise :exc:`RuntimeError` with its errors."""
    if not CAST.exists():
        skip_or_fail("no cast for Linux: run `npm ci` in tests/clients/ethereum")
    command = [str(CAST), words[0], "--rpc-url", url, *words[1:]]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    if ended.returncode != 0:
        raise RuntimeError(ended.stderr)
    return ended.stdout.strip()


@pytest.mark.parametrize("signs", ["node", "client"])
def test_cast_uses_a_contract(evm_url: str, dev_account: DevAccount, signs: str) -> None:
    address = dev_account.address
    own_key = ["--private-key", dev_account.key]
    signed = own_key if signs == "client" else ["--unlocked", "--from", address]

    def ask(*words: str) -> str:
        return cast(evm_url, *words)

    assert ask("chain-id") == "31337"
    # Options of cast come first, as everything after --create belongs to the contract.
    create = ("--create", COUNTER["bytecode"], "constructor(uint256)", "7")
    deployed = json.loads(ask("send", "--json", *signed, *create))
    assert deployed["status"] == "0x1"
    contract = deployed["contractAddress"]
    add = (contract, "add(uint256)")
    sent = json.loads(ask("send", "--json", *signed, *add, "5"))
    assert json.loads(ask("receipt", "--json", sent["transactionHash"]))["status"] == "0x1"
    event = "Added(address indexed,uint256 indexed,uint256)"
    logs = json.loads(
        ask("logs", "--json", "--from-block", "0", "--address", contract, event, address, "5")
    )
    assert [int(log["data"], 16) for log in logs] == [12]
    assert ask("call", contract, "total()(uint256)") == "12"
    assert ask("storage", contract, "0").endswith("c")
    assert ask("code", contract).startswith("0x60")
    assert int(ask("estimate", "--from", address, *add, "5")) > 21_000
    assert int(ask("nonce", contract)) == 1
    assert ask("balance", contract) == "0"
    assert int(ask("block-number")) >= int(sent["blockNumber"], 16)
    assert json.loads(ask("rpc", "anvil_nodeInfo"))["environment"]["chainId"] == 31337
    traced = ask("run", "--quick", sent["transactionHash"])
    assert "emit" in traced
    with pytest.raises(RuntimeError, match="nothing to add"):
        ask("call", "--from", address, *add, "0")
    with pytest.raises(RuntimeError, match=TOO_MUCH):
        ask("call", "--from", address, *add, "2000")
    with pytest.raises(RuntimeError, match="arithmetic underflow or overflow"):
        ask("call", contract, "take(uint256)", "1000000")


@pytest.mark.parametrize("signs", ["node", "client"])
def test_web3_py_uses_a_contract(evm_base: str, dev_account: DevAccount, signs: str) -> None:
    w3: Any = Web3(HTTPProvider(f"{evm_base}/evm"))
    own = dev_account.address
    w3.eth.default_account = own
    if signs == "client":
        sign = SignAndSendRawMiddlewareBuilder.build(dev_account.key)
        w3.middleware_onion.inject(sign, layer=0)

    def settled(tx_hash: Any) -> Any:
        return w3.eth.wait_for_transaction_receipt(tx_hash, timeout=PATIENCE, poll_latency=0.05)

    made = w3.eth.contract(abi=COUNTER["abi"], bytecode=COUNTER["bytecode"])
    deployed = settled(made.constructor(7).transact())
    contract = w3.eth.contract(address=deployed["contractAddress"], abi=COUNTER["abi"])
    receipt = settled(contract.functions.add(5).transact())
    event = {"by": own, "amount": 5, "total": 12}
    assert contract.events.Added().process_receipt(receipt)[0]["args"] == event
    found = contract.events.Added().get_logs(from_block=0, argument_filters={"by": own})
    assert [log["args"] for log in found] == [event]
    assert contract.functions.total().call() == 12
    assert contract.functions.plus(3).call(block_identifier="pending") == 15
    assert 21_000 < contract.functions.add(5).estimate_gas() <= receipt["gasUsed"]
    with pytest.raises(ContractLogicError, match="nothing to add"):
        contract.functions.add(0).call()
    with pytest.raises(ContractLogicError, match="nothing to add"):
        contract.functions.add(0).transact()
    with pytest.raises(ContractCustomError, match=TOO_MUCH):
        contract.functions.add(2000).call()
    with pytest.raises(ContractPanicError, match="overflow"):
        contract.functions.take(10**6).call()
    tx = {"from": own, "to": own, "value": 1}
    first = w3.eth.get_transaction_count(own)
    quick = [settled(w3.eth.send_transaction(tx)) for _ in range(5)]
    nonces = [w3.eth.get_transaction(one["transactionHash"])["nonce"] for one in quick]
    assert nonces == list(range(first, first + 5))
    proof = w3.eth.get_proof(contract.address, [0])
    assert int(proof["storageProof"][0]["value"].hex(), 16) == 12
    assert w3.eth.get_code(contract.address)
    assert w3.eth.fee_history(2, "latest", [50])["baseFeePerGas"]
