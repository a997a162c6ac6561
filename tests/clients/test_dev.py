"""Tests of viem and ethers, which sign and send with the accounts of a development chain."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from flask_noderpc.testing.node import serve
from tests.ethereum.rpc.dev.fixtures import chain_of, dev_app
from tests.helpers.until import PATIENCE

from . import ETHEREUM_SCRIPTS


def test_libraries_for_node_js_use_its_accounts(node: str, tmp_path: Path) -> None:
    # ethers looks for a receipt at each new block that it is notified of, so there must be one.
    app = dev_app(tmp_path, produce=True, empty_blocks=True, block_interval=0.1)
    try:
        with serve(app) as url:
            ran = subprocess.run(
                [node, "dev.js", f"{url}/evm"],
                cwd=ETHEREUM_SCRIPTS,
                capture_output=True,
                text=True,
                timeout=PATIENCE,
            )
    finally:
        chain_of(app).close()

    assert ran.returncode == 0, ran.stderr
    # ethers also prints that it was destroyed while it polled.
    steps = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    shown = {step["step"]: step["shown"] for step in steps}
    assert shown == {
        "viem sends": "success",
        "viem fills in": "success",
        "viem signs": True,
        "viem signs a message": True,
        "viem requests accounts": 10,
        "viem delegates": "success",
        "viem impersonates": "success",
        "ethers sends": 1,
        "ethers signs": True,
        "ethers signs a message": True,
        "ethers delegates": 1,
        "ethers hears of what is mined at once": True,
    }
