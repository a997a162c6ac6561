"""Tests of CosmJS's SigningStargateClient, which signs and sends to the application
``bank``."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from flask_noderpc.cosmos.testing import BankNode

from ..helpers.until import PATIENCE

COSMJS = Path(__file__).parent / "cosmjs"
STEPS = [
    "connect",
    "balances",
    "send at a fixed fee",
    "send at a simulated fee",
    "send to many",
    "more than there is",
    "too little gas",
    "a wrong sequence",
    "a signature for another chain",
    "a block that is past",
    "a long memo",
    "several that wait",
    "search",
    "amino",
    "multisig",
]
STAKING_STEPS = [
    "create a validator",
    "edit it",
    "delegate",
    "redelegate",
    "undelegate, and cancel a part",
    "withdraw rewards to another address",
    "withdraw commission",
    "fund the community pool",
    "read parameters",
]


@pytest.mark.usefixtures("cosmjs_node")
def test_cosmjs_signs_and_sends(noderpc_bank: BankNode) -> None:
    assert run("send.js", noderpc_bank.url, noderpc_bank.mnemonic) == STEPS


@pytest.mark.usefixtures("cosmjs_node")
def test_cosmjs_stakes(noderpc_bank: BankNode) -> None:
    node = noderpc_bank

    found = run("staking.js", node.url, node.mnemonic, node.validator)

    assert found == [
        f"{mode}: {each}" for mode in ("direct", "amino") for each in STAKING_STEPS
    ]


def run(script: str, *given: str) -> list[str]:
    """Run a script, and return the names of its steps."""
    command = ["node", str(COSMJS / script), *given]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert ended.returncode == 0, ended.stderr
    return [json.loads(line)["step"] for line in ended.stdout.splitlines()]
