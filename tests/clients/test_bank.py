"""Tests of CosmJS's SigningStargateClient, which signs and sends to the application
``bank``."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from flask_noderpc.cosmos.testing import BankNode

from ..helpers.until import PATIENCE

SEND = Path(__file__).parent / "cosmjs" / "send.js"
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


@pytest.mark.usefixtures("cosmjs_node")
def test_cosmjs_signs_and_sends(noderpc_bank: BankNode) -> None:
    command = ["node", str(SEND), noderpc_bank.url, noderpc_bank.mnemonic]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)

    assert ended.returncode == 0, ended.stderr
    assert [json.loads(line)["step"] for line in ended.stdout.splitlines()] == STEPS
