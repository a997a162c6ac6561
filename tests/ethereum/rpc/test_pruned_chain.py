"""Tests of the EVM layer of a chain whose first blocks are pruned."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from flask import Flask

from flask_noderpc import EmbeddedChain, NodeRPC
from flask_noderpc.ethereum.ethermint_double import EmittedLog
from flask_noderpc.extension import mounts
from flask_noderpc.protocol.secp256k1eth import keccak
from flask_noderpc.signals import rpc_called
from flask_noderpc.testing.node import app_for
from tests.helpers.until import PATIENT

from .chain import TOPIC_A, emitting, ethereum_chain, transfer
from .transports import Say, posting

GONE = {"code": 4444, "message": "pruned history unavailable"}
ALL_LOGS = {"fromBlock": "0x6", "toBlock": "0x8", "topics": ["0x" + TOPIC_A.hex()]}


def asked(say: Say, method: str, *params: object) -> Any:
    call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return json.loads(say(json.dumps(call)))


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[EmbeddedChain]:
    """A chain of eight blocks with transactions and logs."""
    made = ethereum_chain(tmp_path)
    for nonce in range(3, 8):
        made.mempool.submit(emitting(nonce, EmittedLog(topics=(TOPIC_A,), data=b"%d" % nonce)))
        made.produce()
    yield made
    made.close()


@pytest.fixture
def say(chain: EmbeddedChain) -> Say:
    return posting(app_for(chain, json_rpc_enable=True, evm_api="eth,debug"))


def result_cache(say: Say, chain: EmbeddedChain) -> dict[str, Any]:
    """Return the responses for the blocks 6 to 8."""
    found: dict[str, Any] = {}
    for height in ("0x6", "0x7", "0x8"):
        for method in ("eth_getBlockByNumber", "eth_getHeaderByNumber", "eth_getBlockReceipts"):
            params = (height, True) if method == "eth_getBlockByNumber" else (height,)
            found[f"{method} {height}"] = asked(say, method, *params)
        block = found[f"eth_getBlockByNumber {height}"]["result"]
        found[f"by hash {height}"] = asked(say, "eth_getBlockByHash", block["hash"], False)
        (own,) = (tx["hash"] for tx in block["transactions"])
        found[f"tx {height}"] = asked(say, "eth_getTransactionByHash", own)
        found[f"receipt {height}"] = asked(say, "eth_getTransactionReceipt", own)
    found["logs"] = asked(say, "eth_getLogs", ALL_LOGS)
    found["fees"] = asked(say, "eth_feeHistory", "0x3", "latest", [50])
    found["genesis"] = asked(say, "eth_getBlockByNumber", "0x0", False)
    return found


def test_retained_blocks_are_answered_as_before_pruning(chain: EmbeddedChain, say: Say) -> None:
    before = result_cache(say, chain)
    assert len(before["logs"]["result"]) == 3

    chain.store.prune(3)

    fresh = posting(app_for(chain, json_rpc_enable=True, evm_api="eth,debug"))
    assert result_cache(say, chain) == before
    assert result_cache(fresh, chain) == before
    assert asked(say, "eth_getBlockByNumber", "earliest", False)["result"]["number"] == "0x6"
    assert asked(say, "eth_capabilities")["result"]["logs"]["oldestBlock"] == "0x6"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("eth_getBlockByNumber", ["0x5", False]),
        ("eth_getHeaderByNumber", ["0x1"]),
        ("eth_getBlockReceipts", ["0x2"]),
        ("eth_getBlockTransactionCountByNumber", ["0x5"]),
        ("eth_getTransactionByBlockNumberAndIndex", ["0x5", "0x0"]),
        ("debug_getRawBlock", ["0x5"]),
        ("eth_getLogs", [{"fromBlock": "0x5", "toBlock": "latest"}]),
        ("eth_getLogs", [{"fromBlock": "0x1", "toBlock": "0x2"}]),
    ],
)
def test_pruned_blocks_get_pruned_history_unavailable(
    chain: EmbeddedChain, say: Say, method: str, params: list[Any]
) -> None:
    assert "result" in asked(say, method, *params)

    chain.store.prune(3)

    assert asked(say, method, *params)["error"] == GONE


def test_logs_pruned_during_a_batch_get_an_error(chain: EmbeddedChain, say: Say) -> None:
    expected = {**ALL_LOGS, "fromBlock": "0x4"}
    calls = [
        {"jsonrpc": "2.0", "id": 1, "method": "eth_blockNumber", "params": []},
        {"jsonrpc": "2.0", "id": 2, "method": "eth_getLogs", "params": [expected]},
    ]

    def prune(_: object, method: str, **received: object) -> None:
        if method == "eth_blockNumber":
            chain.store.prune(3)

    with rpc_called.connected_to(prune):
        _, logs = json.loads(say(json.dumps(calls)))

    # The logs that are left would look like all logs.
    assert logs["error"] == GONE


def test_transactions_of_a_pruned_block_are_not_found(chain: EmbeddedChain, say: Say) -> None:
    own = "0x" + keccak(transfer(0, value=5)).hex()
    block = asked(say, "eth_getBlockByNumber", "0x2", False)["result"]["hash"]
    assert asked(say, "eth_getTransactionByHash", own)["result"]["blockHash"] == block

    chain.store.prune(3)

    assert asked(say, "eth_getTransactionByHash", own)["result"] is None
    assert asked(say, "eth_getTransactionReceipt", own)["result"] is None
    assert asked(say, "eth_getBlockByHash", block, False)["result"] is None
    unknown = asked(say, "eth_getLogs", {"blockHash": block})["error"]
    assert unknown == {"code": -32000, "message": "unknown block"}
    # A range that begins with a tag finds the blocks that are left.
    logs = asked(say, "eth_getLogs", {"fromBlock": "earliest"})["result"]
    assert [log["blockNumber"] for log in logs] == ["0x6", "0x7", "0x8"]
    # A range of fees begins with the lowest block that is left.
    fees = asked(say, "eth_feeHistory", "0x8", "latest", [])["result"]
    assert fees["oldestBlock"] == "0x6"


@pytest.mark.sqlite  # The test reads the table.
def test_nothing_of_it_stays_in_the_index(chain: EmbeddedChain) -> None:
    chain.store.prune(1)
    with closing(sqlite3.connect(chain.store.location.path)) as at:
        places = at.execute(
            "SELECT min(place >> 20), max(place >> 20) FROM evm_hits"
        ).fetchone()
    assert places == (8, 8)


def test_earliest_resolves_during_pruning(
    chain: EmbeddedChain, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain.store.prune(5)
    real = chain.reads.hash_at

    def forgetting(height: int) -> bytes:
        chain.store.prune(3)
        return real(height)

    monkeypatch.setattr(chain.reads, "hash_at", forgetting)

    assert asked(say, "eth_getBlockByNumber", "earliest", False)["result"]["number"] == "0x6"


def test_code_finds_the_hashes_that_it_may_ask_for(tmp_path: Path) -> None:
    app = Flask("host")
    settings: dict[str, Any] = {
        "database": tmp_path / "chain.db",
        "application": "evm",
        "dev": True,
        "json_rpc_enable": True,
        **PATIENT,
    }
    NodeRPC(app, produce=False, retain_blocks=257, **settings)
    chain = mounts(app)["noderpc"].backend
    say = posting(app)
    try:
        chain.control.mine(300)
        # Code that returns the hash of the block 256 below; it is not init code, as deployed
        # code may not begin with 0xef.
        to = "0x" + "bb" * 20
        code = {to: {"code": "0x6101004303405f5260205ff3"}}
        found = asked(say, "eth_call", {"to": to}, "latest", code)
        lowest = asked(say, "eth_getBlockByNumber", "earliest", False)["result"]
    finally:
        chain.close()

    assert lowest["number"] == hex(300 - 256)
    assert found["result"] == lowest["hash"]
