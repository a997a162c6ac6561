"""Tests that ``noderpc start`` produces empty blocks as a node does, unless they are
disabled."""

from __future__ import annotations

import json
import threading
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from flask_noderpc import EmbeddedChain
from flask_noderpc.backends.sqlite import SQLiteBackend
from flask_noderpc.chain.block_scheduler import BlockSchedule
from flask_noderpc.errors import StoreError

from ..chain.fixtures import write_home
from ..helpers.http import get
from ..helpers.ports import free_port
from ..helpers.until import PATIENCE, until
from ..helpers.websocket import WebSocketClient
from .node_process import ANY_PORTS, Node, run_start, started

QUICK = ("--block-interval", "0.05")


def _first_height(node: Node) -> int:
    """Return the height of the first response."""
    node.until_up()
    return node.height()


def test_a_plain_node_has_a_block_before_its_first_answer_and_goes_on(tmp_path: Path) -> None:
    with started(tmp_path, "--dialect", "comet-0.38", *QUICK) as node:
        assert _first_height(node) >= 1
        assert node.get("/block?height=1")["block"]["header"]["height"] == "1"
        until(lambda: node.height() > 3, "more blocks")


def test_subscribers_get_consecutive_blocks(tmp_path: Path) -> None:
    with started(tmp_path, *QUICK) as node:
        node.until_up()
        client = WebSocketClient(node.url(), timeout=PATIENCE)
        assert client.asked("subscribe", ["tm.event='NewBlock'"])["result"] == {}
        received = [client.json()["result"]["data"]["value"] for _ in range(3)]
        heights = [int(value["block"]["header"]["height"]) for value in received]
        client.close()
    assert heights == [heights[0] + step for step in range(3)]


@pytest.mark.parametrize(
    "flags",
    [("--consensus.create_empty_blocks=false",), ("--empty-blocks=false",), ("--dev",)],
)
def test_no_empty_blocks_waits_for_transactions(tmp_path: Path, flags: tuple[str, ...]) -> None:
    with started(tmp_path, *QUICK, *flags) as node:
        assert _first_height(node) == 0


def test_create_empty_blocks_flag_enables_empty_blocks(tmp_path: Path) -> None:
    with started(tmp_path, *QUICK, "--dev", "--consensus.create_empty_blocks") as node:
        assert _first_height(node) >= 1
        until(lambda: node.height() > 1, "another block")


def test_a_call_waits_for_the_first_block(tmp_path: Path) -> None:
    # The node serves, and another process has to make the blocks.
    port = free_port()
    flags = ("--rpc.laddr", f"tcp://127.0.0.1:{port}", "--produce", "false")
    database = tmp_path / "data" / "noderpc.db"
    answers: list[int] = []
    asking = threading.Thread(
        target=lambda: answers.append(_first_status(f"http://127.0.0.1:{port}/block?height=1"))
    )
    with started(tmp_path, *flags, "--broadcast-timeout", str(2 * PATIENCE)) as node:
        asking.start()
        until(lambda: _has_chain(database), "the store")
        chain = EmbeddedChain(
            database, home=tmp_path, schedule=BlockSchedule(empty_blocks=True)
        )
        try:
            chain.start()
            asking.join(PATIENCE)
        finally:
            chain.close()
            node.kill()
    assert answers == [200]


def _has_chain(database: Path) -> bool:
    with closing(SQLiteBackend(f"{database.as_uri()}?mode=ro")) as store:
        try:
            return store.has_chain()
        except StoreError:
            # The file is still being written.
            return False


def _first_status(url: str) -> int:
    """Return the status of the first response, once a server listens."""
    statuses: list[int] = []

    def is_answered() -> bool:
        with suppress(OSError):
            statuses.append(get(url).status)
        return bool(statuses)

    until(is_answered, "an answer")
    return statuses[0]


@pytest.mark.parametrize(
    ("powers", "reason"),
    [
        ({1: 1, 2: 10}, "voting power, got 1 of 11"),
        ({}, "the chain has no validators"),
    ],
)
def test_a_chain_that_can_produce_no_block_is_refused(
    tmp_path: Path, powers: dict[int, int], reason: str
) -> None:
    write_home(tmp_path, powers, [1])

    done = run_start("--home", str(tmp_path), *ANY_PORTS, "--workers", "2")

    assert done.returncode == 78
    assert f"{tmp_path / 'config'}" in done.stderr
    assert reason in done.stderr
    assert "Traceback" not in done.stderr


def test_a_chain_whose_keys_are_too_weak_is_served_without_producing(tmp_path: Path) -> None:
    write_home(tmp_path, {1: 1, 2: 10}, [1])

    with started(tmp_path, "--produce", "false") as node:
        assert node.height() == 0


def test_a_bank_with_an_invalid_gentx_is_refused(tmp_path: Path) -> None:
    write_home(tmp_path, {}, [1])
    document = tmp_path / "config" / "genesis.json"
    state: dict[str, Any] = {"auth": {}, "bank": {}, "genutil": {"gen_txs": [{"body": {}}]}}
    document.write_text(json.dumps({**json.loads(document.read_text()), "app_state": state}))

    done = run_start("--home", str(tmp_path), *ANY_PORTS, "--application", "bank")

    assert done.returncode == 78
    assert "genutil.gen_txs[0]: must contain at least one message" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_genesis_document_of_the_cosmos_sdk_is_started_and_served(tmp_path: Path) -> None:
    write_home(tmp_path, {1: 10}, [1])
    document = tmp_path / "config" / "genesis.json"
    old = json.loads(document.read_text())
    params = {**old["consensus_params"], "abci": None, "version": None}
    new = {
        "app_name": "simd",
        "app_version": "0.50.14",
        "genesis_time": "2024-01-02T03:04:05.6+02:00",
        "chain_id": "sdk-1",
        "initial_height": 5,
        "app_hash": None,
        "app_state": {"auth": {}, "bank": {}},
        "consensus": {"validators": old["validators"], "params": params},
    }
    document.write_text(json.dumps(new))

    flags = ("--application", "bank", "--dialect", "comet-0.38")
    with started(tmp_path, *flags) as node:
        until(lambda: node.height() >= 5, "the first block")
        genesis = node.get("/genesis")["genesis"]

    assert genesis["genesis_time"] == "2024-01-02T01:04:05.6Z"
    assert (genesis["chain_id"], genesis["initial_height"]) == ("sdk-1", "5")
    assert genesis["validators"] == old["validators"]
