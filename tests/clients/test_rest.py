"""Tests of REST clients: cosmpy sends to the application ``bank``, and Keplr accepts its
chain."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from urllib.request import Request, urlopen

from flask_noderpc.cosmos.bank.dev import MNEMONIC

from ..helpers.until import PATIENCE
from ..server.node_process import Node, started
from .conftest import COSMPY, KEPLR

BANK = ("--application", "bank", "--dev")
# The origin of the extension, and of a page that suggests the chain.
ORIGINS = ("chrome-extension://dmkamcknogkgcdfhhbddcghachkejeap", "https://wallet.example")
STEPS = [
    "balances",
    "blocks",
    "send at a simulated fee",
    "send at a fixed fee",
    "more than there is",
]


def chain_id_of(node: Node) -> str:
    node.until_up()
    found: str = node.get("/status")["node_info"]["network"]
    return found


def output_of(*command: str) -> list[str]:
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


def test_cosmpy_sends_and_waits(cosmpy_python: str, tmp_path: Path) -> None:
    with started(tmp_path, *BANK) as node:
        arguments = (chain_id_of(node), MNEMONIC)
        lines = output_of(cosmpy_python, str(COSMPY / "send.py"), node.url("REST"), *arguments)

    assert [json.loads(line)["step"] for line in lines] == STEPS


def test_keplr_takes_the_chain(keplr_node: str, tmp_path: Path) -> None:
    with started(tmp_path, *BANK) as node:
        chain_id = chain_id_of(node)
        rpc, rest = node.url(), node.url("REST")
        *_, last = output_of(keplr_node, str(KEPLR / "check.js"), rpc, rest, chain_id)

        # The chain has none of the other modules that Keplr looks for.
        assert json.loads(last)["features"] == ["query:/cosmos/bank/v1beta1/spendable_balances"]
        for origin in ORIGINS:
            for url in (f"{rpc}/status", f"{rest}/cosmos/base/tendermint/v1beta1/node_info"):
                with urlopen(Request(url, headers={"Origin": origin})) as response:
                    assert response.headers["Access-Control-Allow-Origin"] == "*"
