"""Tests of the log of ``noderpc start --dev``: it shows why a transaction failed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from web3 import HTTPProvider, Web3

from ..helpers.until import until
from .node_process import started

# PUSH0, PUSH0, REVERT.
REVERTS = "0x5f5ffd"


@pytest.mark.parametrize("workers", ["1", "2"])
def test_each_failed_transaction_has_one_line(tmp_path: Path, workers: str) -> None:
    with started(tmp_path, "--dev", "--workers", workers) as node:
        node.until_up()
        w3 = Web3(HTTPProvider(node.url("EVM JSON-RPC")))
        assert w3.client_version.startswith("anvil/")
        assert w3.eth.chain_id == 31337
        tx: Any = {"from": w3.eth.accounts[0], "data": REVERTS, "gas": 100_000}
        sent = w3.eth.send_transaction(tx)
        receipt: Any = w3.eth.wait_for_transaction_receipt(sent)
        assert (receipt["status"], receipt["revertReason"]) == (0, "0x")
        line = f"transaction {sent.to_0x_hex()} failed: execution reverted\n"
        until(lambda: line in node.log.read_text(), "the line")
    assert node.log.read_text().count(line) == 1
