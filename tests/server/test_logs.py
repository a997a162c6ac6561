"""Tests of log lines of ``noderpc start``: one for each block, as text or JSON, or none."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from flask_noderpc.backends import open_store

from ..helpers.http import get
from ..helpers.until import PATIENCE, until
from .node_process import ANY_PORTS, COMMAND, Node, run_start, started

BUSY = ("--empty-blocks", "--block-interval", "0.1")


def lines_of(node: Node) -> list[dict[str, Any]]:
    # The last line may be incomplete.
    whole, _, _ = node.log.read_text().rpartition("\n")
    return [json.loads(line) for line in whole.splitlines()]


def events_of(node: Node, event: str) -> list[dict[str, Any]]:
    return [line for line in lines_of(node) if line["event"] == event]


def test_each_block_is_a_line(tmp_path: Path) -> None:
    with started(tmp_path, "--application", "evm", "--workers", "2") as node:
        node.until_up()
        answer = get(node.url(), '/broadcast_tx_commit?tx="name=satoshi"')
        assert answer.status == 200
        until(lambda: " block 3: " in node.log.read_text(), "some blocks")
        heights = re.findall(
            r"^[\d-]{10} [\d:,]{12} block (\d+): \d+ txs?, [\d,]+ gas, [\d.,]+ ms$",
            node.log.read_text(),
            re.MULTILINE,
        )
    assert heights[:3] == ["1", "2", "3"]


def test_json_is_an_object_a_line(tmp_path: Path) -> None:
    flags = ("--log-format", "json", "--log-calls", "--workers", "2", *BUSY)
    with started(tmp_path, *flags) as node:
        until(lambda: bool(events_of(node, "ready")), "that it is ready")
        (ready,) = events_of(node, "ready")
        (address,) = ready["addresses"]
        url = address["url"]
        chain_id = get(url, "/status").result["node_info"]["network"]
        tx = get(url, '/broadcast_tx_commit?tx="name=satoshi"').result
        until(lambda: len(events_of(node, "block")) > 2, "some blocks")
        until(lambda: any(line["txs"] for line in events_of(node, "block")), "its block")
        victim = node.children()[0]
        os.kill(victim, signal.SIGKILL)
        until(lambda: bool(events_of(node, "process-ended")), "that it has ended")
        lines = lines_of(node)

    assert (ready["chain_id"], ready["application"]) == (chain_id, "kvstore")
    assert ready["database"] == str(tmp_path / "data" / "noderpc.db")
    for line in lines:
        assert datetime.fromisoformat(line["time"]).utcoffset() is not None
        assert {"level", "event", "logger", "message"} <= line.keys()
    (with_tx,) = (line for line in lines if line["event"] == "block" and line["txs"])
    assert with_tx["height"] == int(tx["height"])
    assert with_tx["milliseconds"] > 0
    assert with_tx["gas"] >= 0
    assert any(line.get("method") == "status" for line in lines)
    (ended,) = (line for line in lines if line["event"] == "process-ended")
    assert (ended["pid"], ended["level"], ended["status"]) == (victim, "error", -9)


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_last_line_says_why_a_node_has_stopped_and_its_height(
    tmp_path: Path, workers: str, number: signal.Signals
) -> None:
    with started(tmp_path, "--workers", workers, *BUSY) as node:
        node.until_up()
        until(lambda: node.height() > 2, "some blocks")
        node.end(number)
        last = node.log.read_text().splitlines()[-1]
    found = re.search(
        r"the node has stopped after (\w+): all blocks are stored; the last block that it has"
        r" produced is (\d+)$",
        last,
    )
    assert found, last
    assert found[1] == number.name
    with closing(open_store(str(tmp_path / "data" / "noderpc.db"), read_only=True)) as store:
        assert store.reads.latest_height() == int(found[2])


def test_the_last_line_says_that_a_process_was_killed(tmp_path: Path) -> None:
    with started(tmp_path, "--workers", "2", *BUSY) as node:
        node.until_up()
        until(lambda: node.height() > 2, "some blocks")
        *others, victim = node.children()
        os.kill(victim, signal.SIGSTOP)
        node.tell(signal.SIGTERM)
        until(lambda: set(node.children()) == {victim}, "the others have ended")
        os.kill(victim, signal.SIGKILL)
        node.end()
        last = node.log.read_text().splitlines()[-1]
    assert others
    assert f"the node has stopped after SIGTERM: process {victim} was killed" in last
    assert "unstored data is lost" in last
    assert "all blocks are stored" not in last


def test_a_node_whose_first_process_was_killed_says_that_it_has_stopped(tmp_path: Path) -> None:
    with started(tmp_path, "--workers", "2", "--log-format", "json", *BUSY) as node:
        until(lambda: bool(events_of(node, "ready")), "that it is ready")
        children = set(node.children())
        os.kill(node.pid, signal.SIGKILL)
        until(lambda: len(events_of(node, "stopped")) == len(children), "their lines")
        assert {line["pid"] for line in events_of(node, "stopped")} == children


def test_an_error_of_the_start_is_json_too(tmp_path: Path) -> None:
    found = run_start("--home", "/proc/none", "--log_format", "json")
    line = json.loads(found.stderr)
    assert (line["event"], line["level"], line["status"]) == ("failed", "error", 78)
    assert "choose a writable folder with --home" in line["message"]
    assert found.returncode == os.EX_CONFIG


def test_a_quiet_node_writes_nothing(tmp_path: Path) -> None:
    address = f"unix://{tmp_path / 'node.sock'}"
    command = [*COMMAND, "--home", str(tmp_path), *ANY_PORTS, "--rpc.laddr", address]
    node = Node(tmp_path, "-q", *BUSY, command=command)
    try:
        store = tmp_path / "data" / "noderpc.db"
        curl = ["curl", "-s", "--unix-socket", str(tmp_path / "node.sock"), "http://h/status"]

        def height() -> int:
            found = subprocess.run(curl, capture_output=True, text=True, timeout=PATIENCE)
            if found.returncode:
                return 0
            status = json.loads(found.stdout)["result"]["sync_info"]
            return int(status["latest_block_height"])

        until(lambda: height() > 3, "some blocks")
        assert store.exists()
        assert node.end() == 0
    finally:
        node.kill()
    assert node.log.read_text() == ""


def test_a_quiet_node_writes_errors(tmp_path: Path) -> None:
    command = [*COMMAND, "--home", "/proc/none", "--quiet"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    (line,) = found.stderr.splitlines()
    assert "choose a writable folder with --home" in line


def test_the_format_may_be_in_the_environment(tmp_path: Path) -> None:
    environment = {"NODERPC_LOG_FORMAT": "json", "NODERPC_MONIKR": "x"}
    found = run_start("--home", "/proc/none", **environment)
    warning, _ = map(json.loads, found.stderr.splitlines())
    assert warning["level"] == "warning"
    assert "did you mean NODERPC_MONIKER?" in warning["message"]
