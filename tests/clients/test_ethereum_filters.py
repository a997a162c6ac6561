"""Tests of filters that ethers, viem, web3.js and web3.py create and poll."""

from __future__ import annotations

import asyncio
import json
import subprocess
import threading
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import Any

import pytest
from web3 import AsyncWeb3, HTTPProvider, Web3, WebSocketProvider
from web3.exceptions import Web3RPCError

from flask_noderpc import EmbeddedChain
from flask_noderpc.ethereum.ethermint_double import EmittedLog
from flask_noderpc.ethereum.protocol.transactions import decode
from flask_noderpc.testing.node import app_for, serve
from tests.ethereum.rpc.chain import (
    CONTRACT,
    TOPIC_A,
    TOPIC_B,
    emitting,
    ethereum_chain,
    transfer,
)
from tests.helpers.until import PATIENCE

SCRIPTS = Path(__file__).parent / "ethereum" / "filters"
SENT, EMITTING = transfer(3), emitting(4, EmittedLog(topics=(TOPIC_A,), data=b"four"))
Shown = dict[str, Any]


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[EmbeddedChain]:
    """A chain of three blocks without a producer, so a transaction is pending until it was
    polled for."""
    made = ethereum_chain(tmp_path)
    yield made
    made.close()


@pytest.fixture(params=["http", "ws"])
def url(request: pytest.FixtureRequest, chain: EmbeddedChain) -> Iterator[str]:
    with serve(app_for(chain, json_rpc_enable=True)) as base:
        path = "/evm" if request.param == "http" else "/evm/ws"
        yield base.replace("http", request.param) + path


def log(index: int, data: bytes, *topics: bytes) -> Shown:
    return {
        "address": f"0x{CONTRACT.hex()}",
        "topics": [f"0x{topic.hex()}" for topic in topics],
        "data": f"0x{data.hex()}",
        "index": index,
    }


NEW_LOG = log(0, b"four", TOPIC_A)


def expected(chain: EmbeddedChain) -> Shown:
    """Return what every client must print once the chain has its two new blocks."""
    nothing: Shown = {"logs": [], "blocks": [], "pending": []}
    blocks = [f"0x{chain.reads.block(height)[0].hash.hex()}" for height in (4, 5)]
    old = [log(0, b"one", TOPIC_A), log(1, b"", TOPIC_A, TOPIC_B), log(2, b"none")]
    return {
        "at first": nothing,
        "a transaction waits": {**nothing, "pending": [f"0x{decode(SENT).hash.hex()}"]},
        # The transaction was in a block before the poll.
        "two blocks later": {
            "logs": [NEW_LOG],
            "blocks": blocks,
            "pending": [f"0x{decode(EMITTING).hash.hex()}"],
        },
        "afterwards": nothing,
        "all logs": [*old, NEW_LOG],
        "uninstalled": [True, True, True],
        "polled once more": True,
    }


def run(node: str, chain: EmbeddedChain, url: str, script: str) -> Shown:
    """Return what a script prints for a node that makes a block when the script asks for
    one."""
    words = [node, str(SCRIPTS / script), url, f"0x{SENT.hex()}", f"0x{EMITTING.hex()}"]
    pipe = subprocess.PIPE
    shown: Shown = {}
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        deadline = threading.Timer(PATIENCE, process.kill)
        deadline.start()
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        for step in map(json.loads, process.stdout):
            if step["step"] == "block":
                chain.produce()
                print("made", file=process.stdin, flush=True)
            else:
                shown[step["step"]] = step["shown"]
        complaint = process.stderr.read()
        deadline.cancel()
    assert process.returncode == 0, complaint
    return shown


@pytest.mark.parametrize("script", ["viem.js", "web3.js"])
def test_a_library_for_node_js_polls_its_filters(
    ethereum_js: str, chain: EmbeddedChain, url: str, script: str
) -> None:
    shown = run(ethereum_js, chain, url, script)

    assert shown == expected(chain)


def test_ethers_polls_its_filters(ethereum_js: str, chain: EmbeddedChain, url: str) -> None:
    shown = run(ethereum_js, chain, url, "ethers.js")

    behind_on = {"at first": [], "told of": NEW_LOG, "uninstalled": True}
    assert shown == (expected(chain) if url.startswith("ws") else behind_on)


def test_web3_py_polls_its_filters(chain: EmbeddedChain, url: str) -> None:
    shown = asyncio.run(_over(url, chain))

    assert shown == expected(chain)


async def _over(url: str, chain: EmbeddedChain) -> Shown:
    if not url.startswith("ws"):
        return await _lived(Web3(HTTPProvider(url)).eth, chain)
    async with AsyncWeb3(WebSocketProvider(url)) as w3:
        return await asyncio.wait_for(_lived(w3.eth, chain), PATIENCE)


async def _lived(eth: Any, chain: EmbeddedChain) -> Shown:
    """Return the polls of three filters, with either form of the library."""
    address = Web3.to_checksum_address(f"0x{CONTRACT.hex()}")
    filters = {
        "logs": await _done(eth.filter({"fromBlock": 0, "address": address})),
        "blocks": await _done(eth.filter("latest")),
        "pending": await _done(eth.filter("pending")),
    }

    async def polled() -> Shown:
        return {
            kind: [_shown(entry) for entry in await _done(own.get_new_entries())]
            for kind, own in filters.items()
        }

    shown = {"at first": await polled()}
    await _done(eth.send_raw_transaction(SENT))
    shown["a transaction waits"] = await polled()
    chain.produce()
    await _done(eth.send_raw_transaction(EMITTING))
    chain.produce()
    shown["two blocks later"] = await polled()
    shown["afterwards"] = await polled()
    everything = await _done(filters["logs"].get_all_entries())
    ended = [await _done(eth.uninstall_filter(own.filter_id)) for own in filters.values()]
    with pytest.raises(Web3RPCError, match="filter not found"):
        await _done(filters["blocks"].get_new_entries())
    return {
        **shown,
        "all logs": [_shown(entry) for entry in everything],
        "uninstalled": ended,
        "polled once more": True,
    }


async def _done(answer: Any) -> Any:
    return await answer if isinstance(answer, Awaitable) else answer


def _shown(entry: Any) -> Any:
    if isinstance(entry, bytes):
        return f"0x{bytes(entry).hex()}"
    topics = [f"0x{bytes(topic).hex()}" for topic in entry["topics"]]
    data = f"0x{bytes(entry['data']).hex()}"
    address = entry["address"].lower()
    return {"address": address, "topics": topics, "data": data, "index": entry["logIndex"]}
