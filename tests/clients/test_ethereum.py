"""Tests that ethers, viem, web3.js and web3.py read the same from our node, over HTTP and a
websocket."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from web3 import AsyncWeb3, HTTPProvider, Web3, WebSocketProvider
from web3.exceptions import TransactionNotFound

from flask_noderpc import EmbeddedChain
from flask_noderpc.chain.block_scheduler import BlockSchedule
from flask_noderpc.ethereum.ethermint_double import EmittedLog, EthermintDouble
from flask_noderpc.ethereum.protocol.transactions import decode
from flask_noderpc.testing.node import app_for, serve
from tests.ethereum.protocol.signing import ACCOUNT, CHAIN_ID, TO
from tests.ethereum.rpc.chain import (
    CONTRACT,
    TOPIC_A,
    TOPIC_B,
    emitting,
    ethereum_chain,
    transfer,
)
from tests.helpers.until import PATIENCE

from . import ETHEREUM_SCRIPTS

SENDER = str(ACCOUNT.address).lower()
SENT, EMITTING = transfer(3), emitting(4, EmittedLog(topics=(TOPIC_A,), data=b"four"))
MANY = 200
Shown = dict[str, Any]


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[EmbeddedChain]:
    """A chain of three blocks, with a producer that makes a block for each transaction."""
    ethereum_chain(tmp_path).close()
    made = EmbeddedChain(
        tmp_path / "noderpc.db",
        application=EthermintDouble,
        schedule=BlockSchedule(0.1),
        poll_s=0.02,
    )
    made.start()
    yield made
    made.close()


@pytest.fixture(params=["http", "ws"])
def url(request: pytest.FixtureRequest, chain: EmbeddedChain) -> Iterator[str]:
    with serve(app_for(chain, json_rpc_enable=True)) as base:
        path = "/evm" if request.param == "http" else "/evm/ws"
        yield base.replace("http", request.param) + path


def expected(chain: EmbeddedChain, url: str) -> Shown:
    """Return what every client must print."""

    first, second, third = (chain.reads.block(height) for height in (1, 2, 3))
    assert first[1].txs == ()
    block = {
        "number": 3,
        "hash": f"0x{third[0].hash.hex()}",
        "parent": f"0x{second[0].hash.hex()}",
        "txs": [tx_hash(raw) for raw in third[1].txs],
    }
    logs = [
        _log(0, b"one", TOPIC_A),
        _log(1, b"", TOPIC_A, TOPIC_B),
        _log(2, b"none"),
    ]
    shown: Shown = {
        "chain id": CHAIN_ID,
        "block number": 3,
        "block by number": block,
        "block by hash": block,
        "latest block": block,
        "whole transactions": [SENDER, SENDER],
        "transaction": {
            "hash": tx_hash(second[1].txs[0]),
            "from": SENDER,
            "to": TO.lower(),
            "value": 5,
            "nonce": 0,
            "type": 2,
            "blockNumber": 2,
        },
        "receipt": {
            "status": 1,
            "gas": chain.reads.results(3).tx_results[1].gas_used,
            "logs": logs[1:],
        },
        "logs": logs[:2],
        "nothing": None,
        "sent": tx_hash(SENT),
        "waited for": {"hash": tx_hash(SENT), "status": 1, "number": 4},
    }
    if url.startswith("ws"):
        received = {"head": 5, "log": _log(0, b"four", TOPIC_A), "pending": tx_hash(EMITTING)}
        shown["told of"] = received
    return shown


def tx_hash(raw: bytes) -> str:
    return f"0x{decode(raw).hash.hex()}"


def _log(index: int, data: bytes, *topics: bytes) -> Shown:
    return {
        "address": f"0x{CONTRACT.hex()}",
        "topics": [f"0x{topic.hex()}" for topic in topics],
        "data": f"0x{data.hex()}",
        "index": index,
    }


@pytest.mark.parametrize("script", ["ethers.js", "viem.js", "web3.js"])
def test_a_library_for_node_js_reads_our_node(
    ethereum_js: str, chain: EmbeddedChain, url: str, script: str
) -> None:
    wanted = expected(chain, url)
    many: list[bytes] = []
    if script == "viem.js":
        # These nonces follow the ones that the client has used by then.
        first = 5 if url.startswith("ws") else 4
        many = [transfer(nonce) for nonce in range(first, first + MANY)]
        wanted["pending under load"] = sorted(map(tx_hash, many))
        if url.startswith("http"):
            wanted["batch"] = {"requests": 1, "blocks": [0, 1, 2, 3] * 250}
    words = [
        ethereum_js,
        str(ETHEREUM_SCRIPTS / script),
        url,
        f"0x{SENT.hex()}",
        f"0x{EMITTING.hex()}",
        ",".join(f"0x{raw.hex()}" for raw in many),
    ]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)

    assert ended.returncode == 0, ended.stderr
    steps = map(json.loads, ended.stdout.splitlines())
    assert {step["step"]: step["shown"] for step in steps} == wanted


def test_web3_py_reads_our_node(chain: EmbeddedChain, url: str) -> None:
    wanted = expected(chain, url)
    shown = asyncio.run(_over_websocket(url)) if url.startswith("ws") else _over_http(url)

    assert shown == wanted


def _over_http(url: str) -> Shown:
    w3 = Web3(HTTPProvider(url))
    assert w3.is_connected()
    # web3.py has a type for hashes and another for other bytes.
    eth: Any = w3.eth
    third = eth.get_block(3)
    shown: Shown = {
        "chain id": eth.chain_id,
        "block number": eth.block_number,
        "block by number": _block(third),
        "block by hash": _block(eth.get_block(third["hash"])),
        "latest block": _block(eth.get_block("latest")),
        "whole transactions": _senders(eth.get_block(3, True)),
        "transaction": _transaction(eth.get_transaction_by_block(2, 0)),
        "receipt": _receipt(eth.get_transaction_receipt(third["transactions"][1])),
        "logs": [_shown_log(log) for log in eth.get_logs(_criteria())],
    }
    with pytest.raises(TransactionNotFound):
        eth.get_transaction(b"\xee" * 32)
    sent = eth.send_raw_transaction(SENT)
    waited = eth.wait_for_transaction_receipt(sent, timeout=PATIENCE, poll_latency=0.05)
    return {**shown, "nothing": None, "sent": sent.to_0x_hex(), "waited for": _waited(waited)}


async def _over_websocket(url: str) -> Shown:
    async with AsyncWeb3(WebSocketProvider(url)) as w3:
        eth: Any = w3.eth
        third = await eth.get_block(3)
        shown: Shown = {
            "chain id": await eth.chain_id,
            "block number": await eth.block_number,
            "block by number": _block(third),
            "block by hash": _block(await eth.get_block(third["hash"])),
            "latest block": _block(await eth.get_block("latest")),
            "whole transactions": _senders(await eth.get_block(3, True)),
            "transaction": _transaction(await eth.get_transaction_by_block(2, 0)),
            "receipt": _receipt(await eth.get_transaction_receipt(third["transactions"][1])),
            "logs": [_shown_log(log) for log in await eth.get_logs(_criteria())],
        }
        with pytest.raises(TransactionNotFound):
            await eth.get_transaction(b"\xee" * 32)
        sent = await eth.send_raw_transaction(SENT)
        waited = await eth.wait_for_transaction_receipt(
            sent, timeout=PATIENCE, poll_latency=0.05
        )
        shown |= {"nothing": None, "sent": sent.to_0x_hex(), "waited for": _waited(waited)}
        return shown | {"told of": await asyncio.wait_for(_told(w3), 20)}


async def _told(w3: Any) -> Shown:
    eth = w3.eth
    names = {
        await eth.subscribe("newHeads"): "head",
        await eth.subscribe("logs", {"address": "0x" + CONTRACT.hex(), "topics": []}): "log",
        await eth.subscribe("newPendingTransactions"): "pending",
    }
    await eth.send_raw_transaction(EMITTING)
    received: Shown = {}
    async for message in w3.socket.process_subscriptions():
        received[names[message["subscription"]]] = message["result"]
        if len(received) == len(names):
            break
    return {
        "head": received["head"]["number"],
        "log": _shown_log(received["log"]),
        "pending": received["pending"].to_0x_hex(),
    }


def _criteria() -> Any:
    topics = [f"0x{TOPIC_A.hex()}"]
    return {
        "fromBlock": 0,
        "address": Web3.to_checksum_address(f"0x{CONTRACT.hex()}"),
        "topics": topics,
    }


def _block(block: Any) -> Shown:
    return {
        "number": block["number"],
        "hash": block["hash"].to_0x_hex(),
        "parent": block["parentHash"].to_0x_hex(),
        "txs": [tx.to_0x_hex() for tx in block["transactions"]],
    }


def _senders(block: Any) -> list[str]:
    return [tx["from"].lower() for tx in block["transactions"]]


def _transaction(tx: Mapping[str, Any]) -> Shown:
    same = {name: tx[name] for name in ("value", "nonce", "type", "blockNumber")}
    return {
        **same,
        "hash": tx["hash"].to_0x_hex(),
        "from": tx["from"].lower(),
        "to": tx["to"].lower(),
    }


def _receipt(receipt: Mapping[str, Any]) -> Shown:
    return {
        "status": receipt["status"],
        "gas": receipt["gasUsed"],
        "logs": [_shown_log(log) for log in receipt["logs"]],
    }


def _waited(receipt: Mapping[str, Any]) -> Shown:
    return {
        "hash": receipt["transactionHash"].to_0x_hex(),
        "status": receipt["status"],
        "number": receipt["blockNumber"],
    }


def _shown_log(log: Mapping[str, Any]) -> Shown:
    return {
        "address": log["address"].lower(),
        "topics": [topic.to_0x_hex() for topic in log["topics"]],
        "data": log["data"].to_0x_hex(),
        "index": log["logIndex"],
    }
