"""Tests of hardhat's console.log: a contract that solc compiles prints in the node's log."""

from __future__ import annotations

import json
import logging
import subprocess
from pathlib import Path
from typing import Any

import pytest
from web3 import HTTPProvider, Web3

from tests.helpers.until import PATIENCE

from .conftest import ETHEREUM
from .evm_node import DevAccount

TALKS, LIBRARY = Path("evm/Talks.sol"), Path("node_modules/hardhat/console.sol")
LOGGER = "flask_noderpc.contracts"


@pytest.fixture(scope="module")
def compiled(ethereum_js: str) -> Any:
    """ABI and bytecode of the contract."""
    sources = {"Talks.sol": TALKS, "hardhat/console.sol": LIBRARY}
    job = {
        "language": "Solidity",
        "sources": {
            name: {"content": (ETHEREUM / path).read_text()} for name, path in sources.items()
        },
        "settings": {"outputSelection": {"*": {"*": ["abi", "evm.bytecode.object"]}}},
    }
    ended = subprocess.run(
        [ethereum_js, str(ETHEREUM / "forge" / "solc.js"), "--standard-json"],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    return json.loads(ended.stdout)["contracts"]["Talks.sol"]["Talks"]


def test_a_contract_prints_with_hardhats_library(
    evm_base: str, dev_account: DevAccount, compiled: Any, caplog: pytest.LogCaptureFixture
) -> None:
    w3, sender = Web3(HTTPProvider(f"{evm_base}/evm")), dev_account.address
    made = w3.eth.contract(abi=compiled["abi"], bytecode=compiled["evm"]["bytecode"]["object"])
    deployed = w3.eth.wait_for_transaction_receipt(
        made.constructor().transact({"from": sender})
    )
    talk = w3.eth.contract(deployed["contractAddress"], abi=compiled["abi"]).functions.talk
    caplog.set_level(logging.INFO, LOGGER)
    outcomes = {7: None, 0: "execution reverted: nothing to say", 11: "execution reverted: 0x"}
    for number, failure in outcomes.items():
        caplog.clear()
        sent = talk(number).transact({"from": sender, "gas": 300_000})
        receipt = w3.eth.wait_for_transaction_receipt(sent)
        assert receipt["status"] == int(failure is None)
        assert ("revertReason" in receipt) == bool(failure)

        source = f"transaction {sent.to_0x_hex()}"
        lines = [each.getMessage() for each in caplog.records if each.name == LOGGER]
        texts = (
            "n is {}",
            "{sender} has {}",
            "true {sender} x {}",
            "-5",
            "0x01020304",
            "0x0102",
        )
        assert lines[:7] == [
            f"{source}: console.log: {text.format(number, sender=sender)}"
            for text in (*texts, "")
        ]
        assert len(lines) == 7 + bool(failure)
        assert lines[-1].startswith(f"{source} failed: {failure}") == bool(failure)
