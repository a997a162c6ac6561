"""Tests of the lines for JavaScript that ``noderpc start`` prints: each connects without
changes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.until import PATIENCE, until

from ..helpers.banner import rows
from ..server.node_process import started
from .conftest import COSMJS, ETHEREUM


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[str]]]:
    flags = ("--dev", "--dialect", "comet-0.38", "--empty-blocks")
    with started(tmp_path_factory.mktemp("node"), *flags) as node:
        node.until_second_block()
        until(lambda: "viem" in rows(node.log.read_text()), "the banner")
        yield rows(node.log.read_text())


def printed(program: str, folder: Path, script: str) -> str:
    """Return the output of a script that finds the libraries of a folder."""
    ended = subprocess.run(
        [program, "-e", f"(async () => {{ {script} }})()"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


def test_cosmjs_connects(cosmjs_node: str, shown: dict[str, list[str]]) -> None:
    (line,) = shown["CosmJS"]
    script = (
        'const { connectComet } = require("@cosmjs/tendermint-rpc");'
        f"const client = {line};"
        "console.log((await client.status()).nodeInfo.network); client.disconnect();"
    )
    assert shown["chain"][0].startswith(f"{printed(cosmjs_node, COSMJS, script)}: ")


@pytest.mark.parametrize(
    ("title", "requires", "asks"),
    [
        ("ethers", "ethers = require('ethers')", "(await client.getNetwork()).chainId"),
        ("viem", "{ createPublicClient, http } = require('viem')", "await client.getChainId()"),
    ],
)
def test_clients_of_ethereum_connect(
    ethereum_js: str, shown: dict[str, list[str]], title: str, requires: str, asks: str
) -> None:
    (line,) = shown[title]
    script = (
        f"const {requires}; const client = {line};"
        f"console.log(String({asks})); if (client.destroy) client.destroy();"
    )
    assert printed(ethereum_js, ETHEREUM, script) == "31337"
