"""Tests of eth-ape, which drives our development chain; its steps are in ape/steps.py."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from ..helpers.until import PATIENCE
from . import ETHEREUM_SCRIPTS

STEPS = Path(__file__).parent / "ape" / "steps.py"
ETHER = 10**18


def test_ape_drives_the_chain(ape_python: str, evm_base: str, tmp_path: Path) -> None:
    own = {"APE_FOUNDRY_HOST": f"{evm_base}/evm", "HOME": str(tmp_path)}
    ended = subprocess.run(
        [ape_python, str(STEPS), str(ETHEREUM_SCRIPTS / "evm" / "Counter.json")],
        cwd=tmp_path,
        env={**os.environ, **own},
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
    )
    assert ended.returncode == 0, ended.stderr
    # eth-ape prints lines, too.
    lines = [line for line in ended.stdout.splitlines() if line.startswith('{"step"')]
    assert {step["step"]: step["shown"] for step in map(json.loads, lines)} == {
        "transfer": ETHER,
        "call": 12,
        "events of a receipt": [12],
        "return value": 12,
        "call tree": "CALL:",
        "logs": [5],
        "reason": True,
        "custom error": True,
        "type 0": 1,
        "type 1": 1,
        "type 2": 1,
        "restore": 0,
        "isolate": 0,
        "mine": 3,
        "mine at a time": 0,
        "set_balance": ETHER,
        "impersonate": 1,
        "history": True,
        "poll of logs": 3,
        "poll of blocks": True,
        "end": True,
    }
