"""Tests of every method and subscription over one websocket, compared with geth."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any
from unittest.mock import Mock

import pytest

from flask_noderpc import EmbeddedChain
from flask_noderpc.domain.abci import BlockResults
from flask_noderpc.ethereum.ethermint_double import EmittedLog
from flask_noderpc.ethereum.protocol.transactions import decode
from flask_noderpc.ethereum.rpc.layer import EvmLayer
from flask_noderpc.ethereum.rpc.subscriptions import session as evm_hub
from flask_noderpc.extension import mounts
from flask_noderpc.jsonrpc.context import ANONYMOUS
from flask_noderpc.testing.node import app_for
from tests.helpers.websocket import WebSocketClient

from .chain import CONTRACT, TOPIC_A, TOPIC_B, emitting, transfer
from .conftest import Serve
from .transcript import Exchange, exchanges


def subscribed(client: WebSocketClient, *params: Any) -> str:
    answer = client.asked("eth_subscribe", list(params))
    assert answer.keys() == {"jsonrpc", "id", "result"}, answer
    return str(answer["result"])


def told(client: WebSocketClient, subscription: str) -> Any:
    """Return the result of the next notification, and check that it belongs to the
    subscription."""
    message = client.json()
    assert message.keys() == {"jsonrpc", "method", "params"}
    assert message["method"] == "eth_subscription"
    assert message["params"]["subscription"] == subscription
    return message["params"]["result"]


@pytest.mark.parametrize(
    "exchange",
    [
        exchange
        for exchange in (
            *exchanges("messages"),
            *exchanges("batches"),
            *exchanges("parameters"),
        )
        if "eth_subscribe" not in exchange.sent
    ],
    ids=lambda exchange: exchange.name,
)
def test_a_message_is_answered_as_over_http(serving: Serve, exchange: Exchange) -> None:
    client = serving(evm_max_batch=4)()
    client.text(exchange.sent)
    client.text('{"jsonrpc":"2.0","id":"after","method":"eth_chainId"}')

    if exchange.answer:
        assert client.read() == exchange.answer
    assert client.json()["id"] == "after"


# geth has null here in notifications, and omits the member elsewhere.
OF_LATER_FORKS = (
    "withdrawalsRoot",
    "blobGasUsed",
    "excessBlobGas",
    "parentBeaconBlockRoot",
    "requestsHash",
)


@pytest.mark.parametrize("params", [["newHeads"], ["newHeads", {}]])
def test_new_heads_are_those_of_the_blocks(
    client: WebSocketClient, chain: EmbeddedChain, params: list[Any]
) -> None:
    own = subscribed(client, *params)
    first = chain.reads.latest_height() + 1
    chain.mempool.submit(transfer(3))
    for _ in range(100):
        chain.produce()

    heads = [told(client, own) for _ in range(100)]

    assert [int(head["number"], 16) for head in heads] == list(range(first, first + 100))
    for head in heads:
        header = client.asked("eth_getHeaderByNumber", [head["number"]])["result"]
        assert head == {**header, **dict.fromkeys(OF_LATER_FORKS)}
        block = client.asked("eth_getBlockByNumber", [head["number"], False])["result"]
        node_hash = chain.reads.block(int(head["number"], 16))[0].hash
        assert head["hash"] == block["hash"] == f"0x{node_hash.hex()}"
    assert all(one["hash"] == other["parentHash"] for one, other in pairwise(heads))


@pytest.mark.parametrize("kind", ["newHeads", "logs", "newPendingTransactions", "syncing"])
def test_options_may_be_empty_and_the_version_left_out(
    client: WebSocketClient, kind: str
) -> None:
    client.text(json.dumps({"id": 1, "method": "eth_subscribe", "params": [kind, {}]}))

    answer = client.json()

    assert answer.keys() == {"jsonrpc", "id", "result"}, answer


def test_options_of_pending_transactions_are_empty_or_a_flag(client: WebSocketClient) -> None:
    error = client.asked("eth_subscribe", ["newPendingTransactions", {"a": 1}])["error"]

    assert error["code"] == -32602


def test_logs_are_those_that_the_filter_wants(
    client: WebSocketClient, chain: EmbeddedChain
) -> None:
    every = subscribed(client, "logs", {})
    some = subscribed(client, "logs", {"topics": [None, f"0x{TOPIC_B.hex()}"]})
    subscribed(client, "logs", {"address": "0x" + "11" * 20})
    later = subscribed(client, "logs", {"fromBlock": "0x5", "topics": [f"0x{TOPIC_A.hex()}"]})
    chain.mempool.submit(
        emitting(
            3,
            EmittedLog(topics=(TOPIC_A, TOPIC_B), data=b"one"),
            EmittedLog(topics=(), data=b"two"),
        )
    )
    height = chain.produce()
    chain.mempool.submit(emitting(4, EmittedLog(topics=(TOPIC_A,), data=b"three")))
    chain.produce()

    by_id: dict[str, list[Any]] = {}
    for _ in range(5):
        found = client.json()["params"]
        by_id.setdefault(found["subscription"], []).append(found["result"])

    assert [log["data"] for log in by_id.pop(every)] == ["0x6f6e65", "0x74776f", "0x7468726565"]
    (log,) = by_id.pop(some)
    assert [log["data"] for log in by_id.pop(later)] == ["0x7468726565"]
    assert by_id == {}
    criteria = {"fromBlock": hex(height), "address": f"0x{CONTRACT.hex()}"}
    assert log == client.asked("eth_getLogs", [criteria])["result"][0]


def test_new_pending_transactions_notifies_of_transactions(
    client: WebSocketClient, chain: EmbeddedChain
) -> None:
    hashes = subscribed(client, "newPendingTransactions")
    whole = subscribed(client, "newPendingTransactions", True)
    raw = transfer(3)
    own_hash = f"0x{decode(raw).hash.hex()}"
    chain.mempool.submit(raw)

    found = {}
    for _ in range(2):
        message = client.json()["params"]
        found[message["subscription"]] = message["result"]

    assert found[hashes] == own_hash
    assert (found[whole]["hash"], found[whole]["blockHash"]) == (own_hash, None)
    assert found[whole] == client.asked("eth_getTransactionByHash", [own_hash])["result"]


def test_new_pending_transactions_notifies_of_transactions_mined_at_once(
    client: WebSocketClient, chain: EmbeddedChain
) -> None:
    hashes = subscribed(client, "newPendingTransactions")
    expected = []
    for nonce in range(3, 23):
        expected.append(f"0x{decode(transfer(nonce)).hash.hex()}")
        chain.mempool.submit(transfer(nonce))
        chain.produce()

    assert [told(client, hashes) for _ in expected] == expected


def test_transaction_receipts_are_sent_as_one_list_per_block(
    client: WebSocketClient, chain: EmbeddedChain
) -> None:
    raws = [transfer(nonce) for nonce in (3, 4, 5)]
    own = [f"0x{decode(raw).hash.hex()}" for raw in raws]
    every = subscribed(client, "transactionReceipts")
    some = subscribed(client, "transactionReceipts", {"transactionHashes": own[1:]})
    for raw in raws[:2]:
        chain.mempool.submit(raw)
    chain.produce()
    # A block without receipts causes no notification.
    chain.produce()
    chain.mempool.submit(raws[2])
    chain.produce()

    found: dict[str, list[Any]] = {every: [], some: []}
    for _ in range(4):
        message = client.json()["params"]
        found[message["subscription"]].append(message["result"])
    receipts = [client.asked("eth_getTransactionReceipt", [each])["result"] for each in own]
    assert found == {every: [receipts[:2], receipts[2:]], some: [receipts[1:2], receipts[2:]]}
    error = client.asked(
        "eth_subscribe", ["transactionReceipts", {"transactionHashes": own * 67}]
    )
    assert error["error"]["message"].startswith("exceed max number of transaction hashes")


def test_syncing_is_sent_at_once_and_on_change(
    client: WebSocketClient, chain: EmbeddedChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = subscribed(client, "syncing")
    assert told(client, own) is False
    again = subscribed(client, "syncing")
    assert told(client, again) is False

    monkeypatch.setattr(chain.network, "catching_up", lambda: True)
    chain.produce()

    status = {"startingBlock": "0x1", "currentBlock": "0x4", "highestBlock": "0x4"}
    for _ in range(2):
        assert client.json()["params"]["result"] == {"syncing": True, "status": status}


def test_ids_are_those_of_one_connection(serving: Serve, chain: EmbeddedChain) -> None:
    connect = serving()
    one, other = connect(), connect()
    own = subscribed(one, "newHeads")

    assert other.asked("eth_unsubscribe", [own])["error"] == {
        "code": -32000,
        "message": "subscription not found",
    }
    assert one.asked("eth_unsubscribe", [own])["result"] is True
    assert "error" in one.asked("eth_unsubscribe", [own])
    chain.produce()
    assert one.asked("eth_blockNumber")["result"] == "0x4"


def test_the_subscribe_reply_precedes_its_notifications(
    client: WebSocketClient, chain: EmbeddedChain
) -> None:
    calls = [
        {"jsonrpc": "2.0", "id": 1, "method": "eth_subscribe", "params": ["syncing"]},
        {"jsonrpc": "2.0", "id": 2, "method": "eth_subscribe", "params": ["newHeads"]},
        {"jsonrpc": "2.0", "id": 3, "method": "eth_blockNumber"},
    ]
    client.text(json.dumps(calls))
    syncing, heads, height = (answer["result"] for answer in client.json())

    assert height == "0x3"
    assert told(client, syncing) is False
    chain.produce()
    assert told(client, heads)["number"] == "0x4"


def test_a_batch_can_subscribe_and_unsubscribe(client: WebSocketClient) -> None:
    own = subscribed(client, "newHeads")
    unsubscribe = {"jsonrpc": "2.0", "method": "eth_unsubscribe", "params": [own]}
    client.text(json.dumps([{**unsubscribe, "id": 1}, {**unsubscribe, "id": 2}]))

    done, failed = client.json()
    assert done["result"] is True
    assert failed["error"]["message"] == "subscription not found"


@pytest.mark.parametrize(
    ("params", "code", "text"),
    [
        (["other"], -32601, 'no "other" subscription in eth namespace'),
        ([1], -32602, "expected subscription name as first argument"),
        ([], -32602, "expected subscription name as first argument"),
        ({}, -32602, "non-array args"),
        (None, -32602, "non-array args"),
        (["logs"], -32602, "missing value for required argument 1"),
        (["syncing", {}, {}], -32602, "too many arguments, want at most 2"),
        (["newHeads", {}, {}], -32602, "too many arguments, want at most 2"),
        (["logs", {"topics": [None] * 5}], -32602, "invalid argument 1: exceed max topics"),
        (["logs", {"fromBlock": "pending"}], -32602, "pending logs are not supported"),
        (["logs", {"toBlock": "0x1"}], -32602, "invalid block range params"),
        (
            ["logs", {"fromBlock": "0x2", "toBlock": "0x1"}],
            -32602,
            "invalid block range params",
        ),
        (
            ["newPendingTransactions", "yes"],
            -32602,
            "invalid argument 1: json: cannot unmarshal string into Go value of type bool",
        ),
    ],
)
def test_other_subscriptions_are_refused(
    client: WebSocketClient, params: Any, code: int, text: str
) -> None:
    assert client.asked("eth_subscribe", params)["error"] == {"code": code, "message": text}


@pytest.mark.parametrize(
    ("connections", "hint"),
    [(1, "open another connection"), (2, "raise NODERPC_EVM_MAX_SUBSCRIPTIONS")],
)
def test_too_many_subscriptions_are_refused(
    serving: Serve, connections: int, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evm_hub, "MAX_PER_CONNECTION", 2)
    connect = serving(evm_max_subscriptions=2)
    clients = [connect() for _ in range(connections)]
    for number in range(2):
        own = subscribed(clients[number % connections], "newHeads")

    error = clients[0].asked("eth_subscribe", ["newHeads"])["error"]
    assert error["code"] == -32000
    assert hint in error["message"]
    assert clients[-1].asked("eth_unsubscribe", [own])["result"] is True
    subscribed(clients[0], "logs", {})


def test_blocks_are_converted_once_and_only_for_subscribers(
    serving: Serve, chain: EmbeddedChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    results = chain.reads.results

    def counted(height: int) -> BlockResults:
        made.append(height)
        return results(height)

    monkeypatch.setattr(chain.reads, "results", counted)
    connect = serving()
    clients = [connect() for _ in range(3)]
    chain.produce()
    assert clients[0].asked("eth_blockNumber")["result"] == "0x4"
    assert made == []

    own = [subscribed(client, kind, {}) for client in clients for kind in ("newHeads", "logs")]
    chain.produce()
    for client, subscription in zip(clients, own[::2], strict=True):
        assert told(client, subscription)["number"] == "0x5"

    assert made == [5]


def test_a_message_over_the_limit_ends_the_connection(serving: Serve) -> None:
    client = serving(evm_max_body_bytes=100)()
    client.text("x" * 101)

    assert client.read() is None
    assert client.closed == 1009


def test_a_slow_subscriber_is_disconnected(chain: EmbeddedChain) -> None:
    app = app_for(chain, json_rpc_enable=True, event_buffer=1)
    (layer,) = mounts(app)["noderpc"]._layers
    assert isinstance(layer, EvmLayer)
    peer = Mock()
    session = layer.session(peer, ANONYMOUS)
    session.receive(b'{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]}')
    layer.stop()
    for height in (1, 2):
        layer._hub.publish_block(height)
    assert len(list(session.pull())) == 2
    for height in (1, 2, 3):
        layer._hub.publish_block(height)

    assert list(session.pull()) == []
    reason = "client is too slow to read its events; read faster or raise NODERPC_EVENT_BUFFER"
    peer.drop.assert_called_once_with(reason)
    assert len(layer._hub) == 0


def test_without_the_setting_there_is_no_websocket(serving: Serve) -> None:
    with pytest.raises(ConnectionRefusedError, match="404"):
        serving(json_rpc_enable=False)()


@pytest.mark.parametrize("method", ["eth_subscribe", "eth_unsubscribe", "eth_chainId"])
def test_without_its_namespace_nothing_is_subscribed_to(serving: Serve, method: str) -> None:
    client = serving(evm_api="net")()

    assert client.asked("net_version", [])["result"] == "9000"
    assert client.asked(method, ["newHeads"])["error"]["code"] == -32601
