"""Tests of forge, which deploys to our development node, and of cast, which reads the
contract."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.helpers.until import PATIENCE

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
    """Return the JSON that forge prints."""
    require_program("node")
    if not FORGE.exists():
        skip_or_fail("no forge for Linux: run `npm ci` in tests/clients/ethereum")
    ended = subprocess.run(
        [str(FORGE), *words, "--json", "--broadcast"],
        cwd=ETHEREUM_SCRIPTS,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.parametrize("signs", ["node", "client"])
def test_forge_runs_a_script(evm_base: str, folders: dict[str, str], signs: str) -> None:
    # A script signs with nonces that it read before.
    account = ACCOUNTS[6 if signs == "node" else 7]
    salt = f"0x{int(signs == 'node'):064x}"
    own = ["--private-key", account.key]
    signed = own if signs == "client" else ["--unlocked", "--sender", account.address]
    url = f"{evm_base}/evm"
    words = ["script", "forge/Deploy.s.sol", "--rpc-url", url, *signed]
    before = int(cast(url, "balance", RECIPIENT))

    forge(folders, *words, "--sig", "run(bytes32,address)", salt, RECIPIENT)

    broadcast = (
        Path(folders["FOUNDRY_BROADCAST"]) / "Deploy.s.sol" / "31337" / "run-latest.json"
    )
    saved = json.loads(broadcast.read_text())
    kinds = [tx["transactionType"] for tx in saved["transactions"]]
    assert kinds == ["CREATE", "CREATE2", "CALL", "CALL", "CALL"]
    assert [receipt["status"] for receipt in saved["receipts"]] == ["0x1"] * 5
    plain, salted = (saved["returns"][name]["value"] for name in ("0", "1"))
    assert cast(url, "call", plain, "total()(uint256)") == "12"
    assert cast(url, "call", salted, "total()(uint256)") == "10"
    assert int(cast(url, "balance", RECIPIENT)) - before == ETHER


def test_forge_creates_a_contract(
    evm_url: str, dev_account: DevAccount, folders: dict[str, str]
) -> None:
    words = ["create", "evm/Counter.sol:Counter", "--rpc-url", evm_url]
    words += ["--private-key", dev_account.key]

    # All words behind this flag are arguments of the constructor.
    made = json.loads(forge(folders, *words, "--constructor-args=7"))

    assert cast(evm_url, "call", made["deployedTo"], "total()(uint256)") == "7"
    assert cast(evm_url, "storage", made["deployedTo"], "0").endswith("7")
    receipt = json.loads(cast(evm_url, "receipt", "--json", made["transactionHash"]))
    assert receipt["contractAddress"].lower() == made["deployedTo"].lower()
