"""Tests that executors of ``noderpc start`` run before the first call and the first block."""

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
    """Return the executors of a node, with the difference of their niceness from this
    process."""
    listed = subprocess.run(
        ["pgrep", "-f", f"ethereum.application.executor {folder}"],
        capture_output=True,
        text=True,
    )
    # The tests themselves may run at a lower priority.
    own = os.getpriority(os.PRIO_PROCESS, 0)
    found = {}
    for pid in map(int, listed.stdout.split()):
        # The process may have ended meanwhile.
        with suppress(ProcessLookupError):
            found[pid] = os.getpriority(os.PRIO_PROCESS, pid) - own
    return found


def gives_way() -> int:
    """Return the niceness that an executor for calls adds: 5, or less where 19 would be
    exceeded."""
    return min(5, 19 - os.getpriority(os.PRIO_PROCESS, 0))


def ask(node: Node, method: str, *params: Any) -> Any:
    return call(node.url("EVM JSON-RPC"), method, params).result


def test_one_for_calls_and_one_for_blocks_start_with_the_node(tmp_path: Path) -> None:
    # The second start finds a chain, whose genesis needs no execution.
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
        # Without a block, each process would have to execute the genesis.
        ask(node, "evm_mine")
        assert node.end() == 0
    with started(tmp_path, "--dev", "--workers", "2") as node:
        node.until_up()
        # Two executors are for calls; the one for blocks belongs to the producing process.
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
