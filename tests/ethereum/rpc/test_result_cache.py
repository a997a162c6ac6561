"""Tests that cached results of the EVM layer equal computed ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flask_noderpc.chain.embedded import EmbeddedChain
from flask_noderpc.testing.node import app_for

from .chain import CONTRACT, TOPIC_A, ethereum_chain, transfer
from .test_eth_queries import asking


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[EmbeddedChain]:
    made = ethereum_chain(tmp_path)
    yield made
    made.close()


def _calls(chain: EmbeddedChain) -> Iterator[tuple[str, list[Any]]]:
    ask = asking(chain)
    heights = [hex(height) for height in range(chain.reads.latest_height() + 2)]
    yield "eth_blockNumber", []
    for block in (*heights, "latest", "safe", "finalized", "earliest", "pending"):
        yield "eth_getBlockReceipts", [block]
        yield "eth_getHeaderByNumber", [block]
        yield "eth_getTransactionByBlockNumberAndIndex", [block, "0x0"]
        for whole in (True, False):
            yield "eth_getBlockByNumber", [block, whole]
        found = ask("eth_getBlockByNumber", block, False)
        if found and found.get("hash"):
            yield "eth_getBlockByHash", [found["hash"], True]
            yield "eth_getHeaderByHash", [found["hash"]]
            yield "eth_getTransactionByBlockHashAndIndex", [found["hash"], "0x0"]
            yield "eth_getLogs", [{"blockHash": found["hash"]}]
            for own in found["transactions"]:
                yield "eth_getTransactionReceipt", [own]
                yield "eth_getTransactionByHash", [own]
    yield "eth_getLogs", [{"fromBlock": "earliest"}]
    yield "eth_getLogs", [{"fromBlock": "0x0", "address": "0x" + CONTRACT.hex()}]
    yield "eth_getLogs", [{"fromBlock": "0x1", "topics": ["0x" + TOPIC_A.hex()]}]
    yield "eth_getTransactionReceipt", ["0x" + "00" * 32]


def test_each_evm_method_answers_the_same_uncached_and_cached(chain: EmbeddedChain) -> None:
    def clients() -> list[Any]:
        shared = {"json_rpc_enable": True, "evm_api": "eth"}
        without = app_for(chain, cache_bytes=0, **shared).test_client()
        keeping = app_for(chain, **shared).test_client()
        return [without, keeping, keeping]

    for turn in range(2):
        # The chain gets one more block, and a pending transaction.
        asked = clients()
        for method, params in _calls(chain):
            call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            expected, first, again = (client.post("/evm", json=call).data for client in asked)
            if params[:1] != ["pending"]:
                # The chain's time goes on.
                assert (first, again) == (expected, expected), call
        chain.mempool.submit(transfer(3 + 2 * turn))
        chain.produce()
        chain.mempool.submit(transfer(4 + 2 * turn))


def test_pending_then_mined_transactions_are_never_stale(chain: EmbeddedChain) -> None:
    ask = asking(chain)
    raw = transfer(3)
    before = ask("eth_getBlockByNumber", "pending", False)["transactions"]
    sent = ask("eth_sendRawTransaction", "0x" + raw.hex())
    assert ask("eth_getTransactionReceipt", sent) is None
    assert ask("eth_getTransactionByHash", sent)["blockNumber"] is None
    assert ask("eth_getBlockByNumber", "pending", False)["transactions"] == [*before, sent]
    height = chain.produce()
    assert ask("eth_blockNumber") == hex(height)
    assert ask("eth_getTransactionReceipt", sent)["blockNumber"] == hex(height)
    assert ask("eth_getTransactionByHash", sent)["blockNumber"] == hex(height)
    assert sent in ask("eth_getBlockByNumber", "latest", False)["transactions"]
