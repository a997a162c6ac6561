"""Tests of logs without gaps: subscriptions that begin with stored blocks, pages of logs, and
logs of blocks that a reorg removes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flask_noderpc import EmbeddedChain
from flask_noderpc.ethereum.ethermint_double import EmittedLog
from flask_noderpc.testing.node import app_for, serve
from tests.helpers.websocket import WebSocketClient

from .chain import CONTRACT, TOPIC_A, TOPIC_B, emitting, ethereum_chain
from .conftest import Serve
from .dev.fixtures import FIRST, chain_of, dev_app
from .test_websocket import subscribed

EVERY = {"address": f"0x{CONTRACT.hex()}"}
Place = tuple[int, int]


def place(log: dict[str, Any]) -> Place:
    return int(log["blockNumber"], 16), int(log["logIndex"], 16)


def cursor_of(log: dict[str, Any]) -> str:
    height, index = place(log)
    return f"{height}.{index}"


class Emitter:
    """Makes blocks of random transactions with logs; some logs have two topics."""

    def __init__(self, chain: EmbeddedChain, nonce: int = 3) -> None:
        self.chain, self._nonce = chain, nonce
        self._random = Random(1)

    def block(self) -> None:
        for _ in range(self._random.randrange(3)):
            topics = self._random.choice(((TOPIC_A,), (TOPIC_A, TOPIC_B), ()))
            logs = [EmittedLog(topics=topics, data=bytes((n,))) for n in range(3)]
            self.chain.mempool.submit(emitting(self._nonce, *logs))
            self._nonce += 1
        self.chain.produce()


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedChain]:
    """A chain of 40 blocks with logs."""
    with closing(ethereum_chain(tmp_path_factory.mktemp("replay"))) as chain:
        emitter = Emitter(chain)
        for _ in range(37):
            emitter.block()
        yield chain


def told(client: WebSocketClient, count: int) -> list[dict[str, Any]]:
    """Return the logs of the next notifications."""
    return [client.json()["params"]["result"] for _ in range(count)]


def all_logs(client: WebSocketClient, **criteria: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.asked(
        "eth_getLogs", [{"fromBlock": "0x0", **criteria}]
    )["result"]
    return found


@pytest.mark.parametrize(
    "options", [{}, {"topics": [f"0x{TOPIC_A.hex()}", f"0x{TOPIC_B.hex()}"]}]
)
def test_a_subscription_begins_with_stored_logs(
    serving: Serve, chain: EmbeddedChain, options: dict[str, Any]
) -> None:
    emitter = Emitter(chain)
    for _ in range(20):
        emitter.block()
    connect = serving()
    client, reader = connect(), connect()
    stored = all_logs(reader, **options)
    third = place(stored[3])[0]
    for first in ("0x0", hex(third), "earliest"):
        subscribed(client, "logs", {**options, "fromBlock": first})
        low = third if first == hex(third) else 0
        expected = [log for log in stored if place(log)[0] >= low]
        assert told(client, len(expected)) == expected
    for _ in range(10):
        emitter.block()
    new = all_logs(reader, **options)[len(stored) :]
    by_id: dict[str, list[Any]] = {}
    for _ in range(3 * len(new)):
        message = client.json()["params"]
        by_id.setdefault(message["subscription"], []).append(message["result"])
    assert list(by_id.values()) == [new] * 3


def test_a_cursor_continues_within_a_block(serving: Serve, chain: EmbeddedChain) -> None:
    emitter = Emitter(chain)
    for _ in range(10):
        emitter.block()
    connect = serving()
    stored = all_logs(connect())
    for known in range(len(stored)):
        client = connect()
        subscribed(client, "logs", {"cursor": cursor_of(stored[known])})
        rest = stored[known + 1 :]
        assert told(client, len(rest)) == rest
    client = connect()
    subscribed(client, "logs", {"cursor": cursor_of(stored[-1])})
    emitter = Emitter(chain, nonce=1_000)
    assert emitter
    height = chain.produce()
    assert client.asked("eth_blockNumber")["result"] == hex(height)


def test_a_range_ends(serving: Serve, chain: EmbeddedChain) -> None:
    emitter = Emitter(chain)
    for _ in range(5):
        emitter.block()
    connect = serving()
    client, reader = connect(), connect()
    latest = chain.reads.latest_height()
    wanted = {"fromBlock": "0x1", "toBlock": hex(latest + 2)}
    subscribed(client, "logs", wanted)
    for _ in range(6):
        emitter.block()
    expected = [log for log in all_logs(reader) if place(log)[0] <= latest + 2]
    assert told(client, len(expected)) == expected
    subscribed(client, "logs", {"fromBlock": "0x1", "toBlock": hex(latest)})
    expected = [log for log in expected if place(log)[0] <= latest]
    assert told(client, len(expected)) == expected


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        ({"fromBlock": "0x2", "limit": 5}, "limit and order are options of eth_getLogs"),
        ({"order": "desc"}, "limit and order are options of eth_getLogs"),
        ({"cursor": "x"}, "cursor: expected the cursor of an earlier page, such as 120.3"),
        ({"fromBlock": "0x5", "toBlock": "0x4"}, "invalid block range params"),
        ({"fromBlock": "pending"}, "pending logs are not supported"),
    ],
)
def test_a_wrong_beginning_is_refused(
    client: WebSocketClient, wanted: dict[str, Any], text: str
) -> None:
    assert text in client.asked("eth_subscribe", ["logs", wanted])["error"]["message"]


def test_pruned_blocks_are_not_left_out_silently(serving: Serve, chain: EmbeddedChain) -> None:
    emitter = Emitter(chain)
    for _ in range(5):
        emitter.block()
    chain.store.prune(2)
    client = serving()()
    lowest = chain.reads.base_height()
    error = client.asked("eth_subscribe", ["logs", {"fromBlock": hex(lowest - 1)}])["error"]
    assert error["code"] == 4444
    expected = all_logs(client, fromBlock=hex(lowest))
    subscribed(client, "logs", {"fromBlock": hex(lowest)})
    assert told(client, len(expected)) == expected


@pytest.mark.parametrize("first", ["0x0", "earliest"])
def test_a_range_before_the_first_block_has_no_logs(
    client: WebSocketClient, first: str
) -> None:
    subscribed(client, "logs", {"fromBlock": first, "toBlock": "0x0"})
    # The connection is still there.
    assert client.asked("eth_chainId")["result"]


def test_a_cursor_needs_no_beginning(serving: Serve, chain: EmbeddedChain) -> None:
    emitter = Emitter(chain)
    for _ in range(8):
        emitter.block()
    connect = serving()
    client = connect()
    stored = all_logs(client)
    known = stored[2]
    latest = chain.reads.latest_height()
    rest = page(client, cursor=cursor_of(known), limit=1000)
    assert rest == {"logs": stored[3:], "cursor": None}
    before = page(client, cursor=cursor_of(known), order="desc", fromBlock="0x0")
    assert before == {"logs": stored[1::-1], "cursor": None}
    subscribed(client, "logs", {"cursor": cursor_of(known), "toBlock": hex(latest)})
    assert told(client, len(stored) - 3) == stored[3:]
    chain.store.prune(2)
    gone = client.asked("eth_getLogs", [{"fromBlock": "earliest", "cursor": cursor_of(known)}])
    assert gone["error"]["code"] == 4444


# Reorgs.

# Code that logs its calldata with topic 7, and init code that returns this code.
_LOGGING = bytes.fromhex("3660006000376007366000a100")
_CREATION = bytes.fromhex("600d600c600039600d6000f3") + _LOGGING


def test_a_reorg_sends_the_removed_logs(tmp_path: Path) -> None:
    app = dev_app(tmp_path)
    with closing(chain_of(app)) as chain, serve(app) as url:
        client, replaying = (WebSocketClient(url, path="/evm/ws") for _ in range(2))
        with closing(client), closing(replaying):

            def done(method: str, *params: Any) -> Any:
                return client.asked(method, list(params))["result"]

            def send(**tx: Any) -> str:
                sent: str = done("eth_sendTransaction", {"from": FIRST, **tx})
                return sent

            def emit(*data: str) -> list[dict[str, Any]]:
                for each in data:
                    send(to=contract, data=each)
                height = chain.produce()
                found: list[dict[str, Any]] = done(
                    "eth_getLogs", {"fromBlock": hex(height), "toBlock": hex(height)}
                )
                return found

            created = send(data=f"0x{_CREATION.hex()}")
            first = chain.produce()
            contract = done("eth_getTransactionReceipt", created)["contractAddress"]
            kept, gone = emit("0x01"), emit("0x02", "0x03")
            subscribed(replaying, "logs", {"fromBlock": hex(first)})
            assert told(replaying, 3) == [*kept, *gone]
            live = WebSocketClient(url, path="/evm/ws")
            with closing(live):
                subscribed(live, "logs", {"address": contract})
                last = emit("0x04")
                assert told(live, 1) == told(replaying, 1) == last
                done("anvil_reorg", 2, [])
                removed = [{**log, "removed": True} for log in [*last, *gone[::-1]]]
                assert told(live, 3) == removed
                assert told(replaying, 3) == removed
                new = emit("0x05")
                assert told(live, 1) == told(replaying, 1) == new
                done("anvil_rollback", 1)
                (again,) = ({**log, "removed": True} for log in new)
                assert told(live, 1) == told(replaying, 1) == [again]


class Follower(threading.Thread):
    """A subscriber that applies removals, until it has the log with the last data."""

    def __init__(self, url: str, wanted: dict[str, Any]) -> None:
        super().__init__(daemon=True)
        self._client = WebSocketClient(url, path="/evm/ws")
        subscribed(self._client, "logs", wanted)
        self.logs: dict[tuple[str, str], dict[str, Any]] = {}
        self.faults: list[dict[str, Any]] = []
        self.start()

    def run(self) -> None:
        with closing(self._client):
            while not self.logs or list(self.logs.values())[-1]["data"] != LAST:
                log = self._client.json()["params"]["result"]
                key = log["blockHash"], log["logIndex"]
                # A log comes once, and its removal comes after it.
                if log["removed"] != (key in self.logs):
                    self.faults.append(log)
                if log["removed"]:
                    self.logs.pop(key, None)
                else:
                    self.logs[key] = log


LAST = "0xff"


def test_random_reorgs_leave_the_logs_of_the_chain(tmp_path: Path) -> None:
    app, chance = dev_app(tmp_path), Random(7)
    with closing(chain_of(app)) as chain, serve(app) as url:
        client = app.test_client()

        def done(method: str, *params: Any) -> Any:
            call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            reply = client.post("/evm", json=call).get_json()
            assert "result" in reply, reply
            return reply["result"]

        def emit(data: str) -> None:
            done("eth_sendTransaction", {"from": FIRST, "to": contract, "data": data})

        created = done("eth_sendTransaction", {"from": FIRST, "data": f"0x{_CREATION.hex()}"})
        chain.produce()
        contract = done("eth_getTransactionReceipt", created)["contractAddress"]
        followers = [Follower(url, {"address": contract})]
        for step in range(40):
            for _ in range(chance.randrange(1, 4)):
                for number in range(chance.randrange(3)):
                    emit(f"0x{step:02x}{number:02x}")
                chain.produce()
            depth = chance.randrange(1, 4)
            if chance.randrange(2) and int(done("eth_blockNumber"), 16) > depth + 1:
                done(chance.choice(("anvil_reorg", "anvil_rollback")), depth)
            if step % 4 == 0:
                followers.append(Follower(url, {"address": contract, "fromBlock": "0x1"}))
        emit(LAST)
        chain.produce()
        for each in followers:
            each.join()
        expected = done("eth_getLogs", {"fromBlock": "0x1", "address": contract})
        assert [each.faults for each in followers] == [[]] * len(followers)
        for each in followers:
            assert list(each.logs.values()) == expected


# Pages.


def page(client: WebSocketClient, **criteria: Any) -> dict[str, Any]:
    found: dict[str, Any] = client.asked("eth_getLogs", [criteria])["result"]
    return found


@settings(max_examples=40, deadline=None)
@given(
    limit=st.integers(1, 20),
    order=st.sampled_from(["asc", "desc"]),
    first=st.integers(0, 40),
    topic=st.sampled_from([None, TOPIC_A, TOPIC_B]),
    slices=st.sampled_from([1, 7, 10_000]),
)
@pytest.mark.hypothesis
def test_pages_of_logs_are_all_logs(
    story: EmbeddedChain, limit: int, order: str, first: int, topic: bytes | None, slices: int
) -> None:
    app = app_for(story, json_rpc_enable=True, evm_block_range_cap=max(slices, 41))
    client = app.test_client()

    def asked(**criteria: Any) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": "eth_getLogs", "params": [criteria]}
        return client.post("/evm", json=body).get_json()["result"]

    topics = [None, f"0x{topic.hex()}"] if topic == TOPIC_B else None
    wanted = {"fromBlock": hex(first), "topics": topics}
    expected = asked(**wanted)
    narrow = app_for(story, json_rpc_enable=True, evm_block_range_cap=slices)
    client = narrow.test_client()
    found, cursor = [], None
    while True:
        one = asked(**wanted, limit=limit, order=order, cursor=cursor)
        assert len(one["logs"]) <= limit
        found += one["logs"]
        cursor = one["cursor"]
        if cursor is None:
            break
    assert found == (expected if order == "asc" else expected[::-1])
