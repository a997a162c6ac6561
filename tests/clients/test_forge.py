"""Tests of forge, which deploys to our development node and tests on a fork of its chain, and
of cast, which reads the contract."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.until import PATIENCE

from ..helpers.http import call
from ..helpers.require import require_program, skip_or_fail
from . import ETHEREUM_SCRIPTS
from .evm_node import ACCOUNTS, DevAccount
from .test_evm_drivers import cast

FORGE = ETHEREUM_SCRIPTS / "node_modules/@foundry-rs/forge-linux-amd64/bin/forge"
RECIPIENT = f"0x{0xAA:040x}"
ETHER = 10**18


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, str]:
    """Return an environment with folders of the test, into which forge writes."""
    names = ("FOUNDRY_OUT", "FOUNDRY_CACHE_PATH", "FOUNDRY_BROADCAST", "HOME")
    return {name: str(tmp_path / name.lower()) for name in names}


def forge(env: dict[str, str], *words: str) -> str:
    """Return what forge prints."""
    require_program("node")
    if not FORGE.exists():
        skip_or_fail("no forge for Linux: run `npm ci` in tests/clients/ethereum")
    ended = subprocess.run(
        [str(FORGE), *words],
        cwd=ETHEREUM_SCRIPTS,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def assert_saved_as_on_the_node(url: str, saved: dict[str, Any]) -> None:
    """Check the transactions and receipts that forge saved against the node's."""
    # Unless it waits for each, forge assigns the hashes in the order of the responses.
    sent = {tx["transaction"]["nonce"]: tx["transaction"] for tx in saved["transactions"]}
    for tx, receipt in zip(saved["transactions"], saved["receipts"], strict=True):
        found = call(url, "eth_getTransactionByHash", [tx["hash"]]).result
        assert sent.pop(found["nonce"]).items() <= found.items()
        tx_hash = receipt["transactionHash"]
        assert call(url, "eth_getTransactionReceipt", [tx_hash]).result == receipt
    assert not sent


@pytest.mark.parametrize(
    ("signs", "options"), [("node", []), ("client", []), ("client", ["--slow", "--legacy"])]
)
def test_forge_runs_a_script(
    evm_base: str, folders: dict[str, str], signs: str, options: list[str]
) -> None:
    # A script signs with nonces that it read before.
    account = ACCOUNTS[6 if signs == "node" else 7]
    salt = f"0x{2 * len(options) + (signs == 'node'):064x}"
    key = ["--private-key", account.key]
    signed = key if signs == "client" else ["--unlocked", "--sender", account.address]
    url = f"{evm_base}/evm"
    words = [
        "script",
        "forge/Deploy.s.sol",
        "--target-contract",
        "Deploy",
        "--rpc-url",
        url,
        *signed,
        *options,
    ]
    words += ["--broadcast", "--sig", "run(bytes32,address)", salt, RECIPIENT]
    before = int(cast(url, "balance", RECIPIENT))

    forge(folders, *words, "--json")

    (broadcast,) = Path(folders["FOUNDRY_BROADCAST"]).glob("Deploy.s.sol/*/run-latest.json")
    saved = json.loads(broadcast.read_text())
    # The first script on a chain also deploys the library.
    own = [tx for tx in saved["transactions"] if tx["contractName"] != "Doubles"]
    kinds = [tx["transactionType"] for tx in own]
    assert kinds == ["CREATE", "CREATE2", "CALL", "CALL", "CREATE", "CALL", "CALL"]
    assert {receipt["status"] for receipt in saved["receipts"]} == {"0x1"}
    assert_saved_as_on_the_node(url, saved)
    plain, salted = (saved["returns"][name]["value"] for name in ("0", "1"))
    assert cast(url, "call", plain, "total()(uint256)") == "12"
    assert cast(url, "call", salted, "total()(uint256)") == "10"
    assert int(cast(url, "balance", RECIPIENT)) - before == ETHER
    # Nothing is left to be sent.
    forge(folders, *words, "--resume")
    assert int(cast(url, "balance", RECIPIENT)) - before == ETHER
    made = cast(url, "run", saved["receipts"][-2]["transactionHash"])
    assert "Transaction successfully executed" in made
    on_fork = ["test", "--fork-url", url, "--match-contract", "Fork"]
    assert "3 tests passed" in forge({**folders, "COUNTER": plain}, *on_fork)


def test_forge_creates_a_contract(
    evm_url: str, dev_account: DevAccount, folders: dict[str, str]
) -> None:
    words = ["create", "evm/Counter.sol:Counter", "--rpc-url", evm_url]
    words += ["--private-key", dev_account.key]

    # All words behind this flag are arguments of the constructor.
    words += ["--json", "--broadcast", "--constructor-args=7"]
    made = json.loads(forge(folders, *words))

    assert cast(evm_url, "call", made["deployedTo"], "total()(uint256)") == "7"
    assert cast(evm_url, "storage", made["deployedTo"], "0").endswith("7")
    receipt = json.loads(cast(evm_url, "receipt", "--json", made["transactionHash"]))
    assert receipt["contractAddress"].lower() == made["deployedTo"].lower()
