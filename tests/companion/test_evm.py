"""Tests of the EVM layer of a companion: blocks and logs are stored, and calls that need state
are forwarded."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from eth_account import Account
from flask import Flask

from flask_noderpc.companion.evm import ForwardedEvm
from flask_noderpc.companion.from_settings import companion_from_settings
from flask_noderpc.companion.http import UpstreamLimits
from flask_noderpc.companion.settings import CompanionSettings
from flask_noderpc.errors import (
    ConfigurationError,
    ForwardedCallFailed,
    UpstreamMismatch,
    UpstreamUnavailable,
)
from flask_noderpc.ethereum.protocol.crypto import DEV_KEYS
from flask_noderpc.ethereum.settings import DEV_CHAIN_ID, EthereumSettings
from flask_noderpc.extension import NodeRPC
from flask_noderpc.settings import read_settings
from flask_noderpc.testing.node import app_for, serve
from tests.ethereum.rpc.dev.fixtures import FIRST, STRANGER, chain_of, dev_app
from tests.helpers.until import PATIENCE, until

from .raw_node import hang, http, raw_node, sends
from .test_follow import reaches

API = ("eth", "net", "web3", "txpool", "debug")
# The init code logs a topic; the deployed code returns the block number.
LOGS = "0x60015f5fa163435f5260205ff35f5260206000f3"
REVERTS = "0x60aa5f5360015ffd"
READS_NUMBER = "0x435f5260205ff3"
HEIGHTS = 6

Ask = Callable[..., bytes]


def ask(url: str, method: str, *params: Any) -> bytes:
    """Return the body of a response."""
    call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    headers = {"Content-Type": "application/json"}
    request = Request(f"{url}/evm", json.dumps(call).encode(), headers)
    with urlopen(request, timeout=PATIENCE) as response:
        body: bytes = response.read()
    return body


def result(url: str, method: str, *params: Any) -> Any:
    """Return the result of a call that succeeds."""
    body = json.loads(ask(url, method, *params))
    assert "error" not in body, body
    return body["result"]


class Pair:
    """A node, and its companion."""

    def __init__(self, node: str, companion: str, produce: Callable[[], int]) -> None:
        self.node, self.companion, self.produce = node, companion, produce

    def is_equal(self, method: str, *params: Any) -> bool:
        """Return true if both responses are equal."""
        return ask(self.node, method, *params) == ask(self.companion, method, *params)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    """A development chain with transactions and logs."""
    with pair_in(tmp_path) as made:
        yield made


@contextmanager
def pair_in(tmp_path: Path, **more: Any) -> Iterator[Pair]:
    """Run both, the companion with these additional settings."""
    app = dev_app(tmp_path / "node", dialect="comet-0.38", evm_api=API)
    chain = chain_of(app)
    with closing(chain), serve(app) as node:
        for number in range(HEIGHTS):
            tx = {"from": FIRST, "value": hex(number), "gas": "0x30000"}
            result(
                node,
                "eth_sendTransaction",
                tx | ({"data": LOGS} if number % 2 else {"to": STRANGER}),
            )
            chain.produce()
        given = {
            "upstream": (node,),
            "evm_upstream": (f"{node}/evm",),
            "trust_period": 10**9,
            "upstream_timeout": PATIENCE,
            **more,
        }
        settings = read_settings({}, given)
        followed = companion_from_settings(settings, tmp_path / "companion.db")
        own = app_for(followed, dialect="comet-0.38", json_rpc_enable=True, evm_api=API)
        with closing(followed), serve(own) as companion:
            followed.follow()
            head = chain.reads.latest_height() - settings.value("head_delay")
            reaches(followed, head, settings.value("backfill_from"))
            yield Pair(node, companion, chain.produce)


@pytest.mark.parametrize("low", [1, HEIGHTS - 1])
def test_blocks_and_state_are_those_of_the_node(low: int, tmp_path: Path) -> None:
    """Responses are equal byte for byte, even below the lowest stored block."""
    with pair_in(tmp_path, backfill_from=low) as pair:
        _compare(pair)


def _compare(pair: Pair) -> None:
    height = int(result(pair.node, "eth_blockNumber"), 16)
    blocks = [
        result(pair.node, "eth_getBlockByNumber", hex(at), True) for at in range(1, height + 1)
    ]
    calls: list[tuple[str, *tuple[Any, ...]]] = [
        ("eth_blockNumber",), ("eth_chainId",), ("net_version",), ("eth_gasPrice",),
        ("eth_maxPriorityFeePerGas",), ("eth_feeHistory", "0x3", "latest", [20]),
        ("eth_getLogs", {"fromBlock": "0x1", "toBlock": "latest"}),
        ("eth_getLogs", {"fromBlock": "earliest", "toBlock": "latest"}),
        ("eth_getLogs", {"fromBlock": "earliest", "toBlock": "0x3"}),
        ("eth_getBalance", FIRST, "latest"), ("eth_getBalance", FIRST, "0x2"),
        ("eth_getBalance", FIRST, "pending"), ("eth_getBalance", FIRST, "0xffff"),
        ("eth_getBalance", FIRST), ("eth_getBalance", FIRST, {"blockNumber": "safe"}),
        ("eth_getBalance", "0x12", "latest"),
        ("eth_getTransactionCount", FIRST, "finalized"),
        ("eth_getProof", FIRST, ["0x0"], "latest"),
        ("eth_call", {"data": READS_NUMBER, "from": FIRST}, "latest"),
        ("eth_call", {"to": STRANGER, "value": hex(10**30), "from": FIRST}, "latest"),
        ("eth_estimateGas", {"to": STRANGER, "value": "0x1", "from": FIRST}),
        ("eth_createAccessList", {"to": STRANGER, "from": FIRST}, "latest"),
        ("eth_sendRawTransaction", "0x1234"), ("eth_sendRawTransaction",),
        ("eth_call", {"data": REVERTS, "from": FIRST}, "latest"),
        ("txpool_status",),
    ]  # fmt: skip
    for block in blocks:
        calls += [
            ("eth_getBlockByHash", block["hash"], False),
            ("eth_getBlockByNumber", block["number"], True),
        ]
        calls.append(("eth_getBlockReceipts", block["number"]))
        calls.append(("eth_getBalance", FIRST, {"blockHash": block["hash"]}))
        calls.append(("debug_traceBlockByNumber", block["number"], {"tracer": "callTracer"}))
        for tx in block["transactions"]:
            calls.append(("eth_getTransactionByHash", tx["hash"]))
            calls.append(("eth_getTransactionReceipt", tx["hash"]))
            calls.append(("debug_traceTransaction", tx["hash"], {"tracer": "callTracer"}))

    assert [each for each in calls if not pair.is_equal(*each)] == []
    assert any(block["transactions"] for block in blocks)


def test_calls_are_of_the_block_that_is_shown_as_the_newest(tmp_path: Path) -> None:
    """The node has newer blocks than the companion serves."""
    with pair_in(tmp_path, head_delay=2) as pair:
        newest = result(pair.companion, "eth_blockNumber")
        assert newest != result(pair.node, "eth_blockNumber")
        for tag in ("latest", "safe", "finalized", {"blockNumber": "latest"}):
            seen = result(pair.companion, "eth_call", {"data": READS_NUMBER}, tag)
            assert int(seen, 16) == int(newest, 16)


def test_a_transaction_is_sent_to_the_node_and_found(pair: Pair) -> None:
    """The transaction is found in a followed block; sent again, it is refused with the node's
    error."""
    key = DEV_KEYS[1].secret
    fields = {"to": STRANGER, "value": 7, "gas": 21_000, "gasPrice": 10**11, "nonce": 0}
    raw = Account.sign_transaction(
        {**fields, "chainId": DEV_CHAIN_ID}, key
    ).raw_transaction.to_0x_hex()

    tx_hash = result(pair.companion, "eth_sendRawTransaction", raw)
    assert pair.is_equal("eth_sendRawTransaction", raw)
    pair.produce()

    until(
        lambda: result(pair.companion, "eth_getTransactionReceipt", tx_hash) is not None,
        "the receipt",
    )
    assert pair.is_equal("eth_getTransactionReceipt", tx_hash)


LIMITS = UpstreamLimits(timeout=PATIENCE)
FOUND = http(b'{"jsonrpc":"2.0","id":1,"result":"0x1"}')


def _error(text: bytes) -> bytes:
    return http(
        b'{"jsonrpc":"2.0","id":1,"error":{"code":3,"message":"%s","data":"0xaa"}}' % text
    )


def _called(*urls: str) -> bytes:
    with closing(ForwardedEvm(urls, LIMITS)) as nodes:
        return nodes.call("eth_getBalance", b"[]")


def test_another_node_is_asked_where_one_fails() -> None:
    """Another node is asked if one does not respond or lacks the state, but not if the call
    itself fails."""
    dead = "http://127.0.0.1:1"
    pruned, reverted = _error(b"header not found"), _error(b"execution reverted")
    with (
        raw_node(sends(FOUND)) as good,
        raw_node(sends(pruned)) as bad,
        raw_node(sends(reverted)) as reverting,
    ):
        assert _called(bad, good) == _called(dead, good) == b'"0x1"'
        with pytest.raises(ForwardedCallFailed, match="header not found"):
            _called(bad, dead)
        with pytest.raises(ForwardedCallFailed, match="execution reverted") as caught:
            _called(reverting, good)
    assert caught.value.error["data"] == "0xaa"
    with pytest.raises(UpstreamUnavailable, match="can't be reached"):
        _called(dead)


def test_a_node_that_hangs_is_not_the_first_of_the_next_call() -> None:
    """The time of one call is over if the node does not respond."""
    limits = UpstreamLimits(timeout=0.5)
    with (
        raw_node(hang) as hangs,
        raw_node(sends(FOUND)) as good,
        closing(ForwardedEvm([hangs, good], limits)) as nodes,
    ):
        with pytest.raises(UpstreamUnavailable, match="no response within"):
            nodes.call("eth_getBalance", b"[]")
        assert nodes.call("eth_getBalance", b"[]") == b'"0x1"'


BLOCK = 7, bytes.fromhex("ab" * 32)


@contextmanager
def block_node(block_hash: str | None, asked: list[str]) -> Iterator[str]:
    """Run a node that has one block, or none, and answers other calls with ``0x1``."""

    def respond(peer: socket.socket, body: bytes) -> None:
        method = json.loads(body)["method"]
        asked.append(method)
        block = None if block_hash is None else {"hash": block_hash}
        found = block if method == "eth_getBlockByNumber" else "0x1"
        peer.sendall(http(json.dumps({"jsonrpc": "2.0", "id": 1, "result": found}).encode()))

    with raw_node(respond) as url:
        yield url


def test_a_node_of_another_chain_is_refused() -> None:
    """A node of another chain gets no call; a node that lags is accepted, and checked again
    later."""
    asked: list[str] = []
    with (
        block_node("0x" + "cd" * 32, asked) as other,
        block_node("0x" + "AB" * 32, []) as same,
        block_node(None, []) as behind,
    ):

        def called(*urls: str) -> bytes:
            with closing(ForwardedEvm(urls, LIMITS)) as nodes:
                nodes.known_block = lambda: BLOCK
                return nodes.call("eth_getBalance", b"[]")

        assert called(same) == called(behind) == called(other, same) == b'"0x1"'
        with pytest.raises(UpstreamMismatch, match=r"its block 7 is '0xcdcd.* another chain"):
            called(other)
    assert set(asked) == {"eth_getBlockByNumber"}


def test_the_settings_name_what_they_need(caplog: pytest.LogCaptureFixture) -> None:
    """NODERPC_EVM_UPSTREAM needs NODERPC_UPSTREAM and the EVM layer, before it asks a node."""
    url = "http://127.0.0.1:8545"
    with pytest.raises(ConfigurationError, match="expected NODERPC_UPSTREAM"):
        NodeRPC(
            Flask("host"),
            settings=[
                CompanionSettings(evm_upstream=(url,)),
                EthereumSettings(json_rpc_enable=True),
            ],
        )
    with pytest.raises(ConfigurationError, match="and NODERPC_JSON_RPC_ENABLE"):
        NodeRPC(
            Flask("host"),
            settings=[CompanionSettings(upstream=(url,), evm_upstream=(url,))],
        )
    assert caplog.text == ""
