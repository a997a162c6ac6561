"""Tests of ethers, viem, web3.js and web3.py, which deploy a contract, use it and follow it on
our EVM."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.until import PATIENCE

from .evm_node import DevAccount

SCRIPTS = Path(__file__).parent / "ethereum" / "evm"
Shown = dict[str, Any]


def expected(account: DevAccount) -> Shown:
    """Return what every client must print."""
    by = account.address.lower()
    event = {"by": by, "amount": 5, "total": 12}
    return {
        "chain id": 31337,
        "deployed": {"status": 1},
        "sent": {"status": 1, "events": [event]},
        "logs": [event],
        "raw logs": 1,
        "called": [12, 15],
        "estimated": True,
        "reason": "nothing to add",
        "reason of an estimate": "nothing to add",
        "custom error": {"name": "TooMuch", "by": by, "asked": 2000, "most": 1000},
        "panic": 0x11,
        "failed": 0,
        "quick sends": [True, 1, 1, 1, 1, 1],
        "fees": True,
        "state": {"slot": 12, "code": True, "nonce": 1, "balance": 0, "proved": 12},
        "told of": {"head": True, "event": {"by": by, "amount": 1, "total": 13}},
    }


@pytest.mark.parametrize("signs", ["node", "client"])
@pytest.mark.parametrize("script", ["ethers.js", "viem.js", "web3.js"])
def test_a_library_for_node_js_uses_a_contract(
    ethereum_js: str, evm_url: str, dev_account: DevAccount, script: str, signs: str
) -> None:
    key = [dev_account.key] if signs == "client" else []
    words = [ethereum_js, str(SCRIPTS / script), evm_url, dev_account.address, *key]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)

    assert ended.returncode == 0, ended.stderr
    steps = map(json.loads, ended.stdout.splitlines())
    wanted = expected(dev_account)
    if script == "web3.js" and not evm_url.startswith("ws"):
        # Over HTTP the client subscribes to nothing.
        del wanted["told of"]
    assert {step["step"]: step["shown"] for step in steps} == wanted
