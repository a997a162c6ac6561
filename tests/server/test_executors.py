"""Executors of ``noderpc start`` run before the first call and the first block."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

from flask_noderpc.ethereum.testing import ACCOUNTS
from tests.helpers.until import until

from ..helpers.http import call
from .node_process import Node, started


def executors(folder: Path) -> dict[int, int]:
    """Those of a node, with how much each gives way to others."""
    listed = subprocess.run(
        ["pgrep", "-f", f"ethereum.application.executor {folder}"],
        capture_output=True,
        text=True,
    )
    # Whoever runs the tests may give way too.
    own = os.getpriority(os.PRIO_PROCESS, 0)
    found = {}
    for pid in map(int, listed.stdout.split()):
        # It may have ended since.
        with suppress(ProcessLookupError):
            found[pid] = os.getpriority(os.PRIO_PROCESS, pid) - own
    return found


def gives_way() -> int:
    """How much more one for calls gives way: 19 is the most that there is."""
    return min(5, 19 - os.getpriority(os.PRIO_PROCESS, 0))


def ask(node: Node, method: str, *params: Any) -> Any:
    return call(node.url("EVM JSON-RPC"), method, params).result


def test_one_for_calls_and_one_for_blocks_start_with_the_node(tmp_path: Path) -> None:
    # The second time there is a chain, whose genesis needs no code to run.
    for log in ("first.log", "second.log"):
        with started(tmp_path, "--dev", log=log) as node:
            node.until_up()
            until(lambda: sorted(executors(tmp_path).values()) == [0, gives_way()], "both")
            before = executors(tmp_path)
            call = {"from": ACCOUNTS[0].address, "to": ACCOUNTS[1].address, "value": "0x1"}
            for _ in range(3):
                assert ask(node, "eth_estimateGas", call) == "0x5208"
            ask(node, "eth_sendTransaction", call)
            ask(node, "evm_mine")
            assert executors(tmp_path) == before
            assert node.end() == 0
        until(lambda: not executors(tmp_path), "their end")


def test_serving_workers_start_no_block_executor(tmp_path: Path) -> None:
    with started(tmp_path, "--dev", log="first.log") as node:
        node.until_up()
        # Without a block each process would have the genesis executed.
        ask(node, "evm_mine")
        assert node.end() == 0
    with started(tmp_path, "--dev", "--workers", "2") as node:
        node.until_up()
        # Two for calls; the one for blocks belongs to the process that makes them.
        wanted = [0, gives_way(), gives_way()]
        until(lambda: sorted(executors(tmp_path).values()) == wanted, "all")


def test_a_development_node_mines_each_transaction_before_it_answers(tmp_path: Path) -> None:
    transfer = {"from": ACCOUNTS[0].address, "to": ACCOUNTS[1].address, "value": "0x1"}
    with started(tmp_path, "--dev") as node:
        node.until_up()
        for height in range(1, 4):
            tx_hash = ask(node, "eth_sendTransaction", transfer)
            receipt = ask(node, "eth_getTransactionReceipt", tx_hash)
            assert receipt["blockNumber"] == hex(height)
