"""Tests of transactions that are pipelined over one websocket."""

from __future__ import annotations

import base64
import fcntl
import json
import socket
import sqlite3
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from flask_noderpc.domain.abci import ExecTxResult
from flask_noderpc.testing import Node
from tests.helpers.until import PATIENCE, until

from .conftest import Connect

MANY = 40


@contextmanager
def locked(node: Node) -> Iterator[None]:
    """Hold the write lock of the node's store in another program."""
    with closing(
        sqlite3.connect(node.chain.store.location.path, isolation_level=None)
    ) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def message(method: str, request_id: int, params: Any = None) -> str:
    given = {} if params is None else {"params": params}
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "method": method, **given})


def sending(request_id: int, tx: str, method: str = "broadcast_tx_sync") -> str:
    return message(method, request_id, {"tx": base64.b64encode(tx.encode()).decode()})


@pytest.fixture
def checked(node: Node, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Return the transactions that the application checks."""
    found: list[bytes] = []
    check = node.chain.application.check_tx

    def listed(tx: bytes) -> ExecTxResult:
        found.append(tx)
        if len(found) == MANY:
            all_are_checked.set()
        return check(tx)

    all_are_checked.clear()
    monkeypatch.setattr(node.chain.application, "check_tx", listed)
    return found


all_are_checked = threading.Event()


@pytest.mark.sqlite
def test_messages_are_read_while_those_before_them_wait_for_the_store(
    node: Node, connect: Connect, checked: list[bytes]
) -> None:
    client = connect()
    with locked(node):
        for number in range(MANY):
            client.text(sending(number, f"k{number}=v"))
        assert all_are_checked.wait(PATIENCE), f"only {len(checked)} were read"

    answers = [client.json() for _ in range(MANY)]
    assert [answer["id"] for answer in answers] == list(range(MANY))
    assert {answer["result"]["code"] for answer in answers} == {"0"}
    waiting = client.asked("unconfirmed_txs", {"limit": "100"})["result"]["txs"]
    assert [base64.b64decode(tx) for tx in waiting] == checked


@pytest.mark.sqlite
def test_what_was_sent_before_the_peer_left_is_taken(node: Node, connect: Connect) -> None:
    client = connect()
    with locked(node):
        for number in range(300):
            client.text(sending(number, f"left{number}=v"))
        # Wait until the server's side has received everything.
        until(lambda: not unsent(client.sock), "all is sent")
        client.close()

    mempool = node.chain.mempool
    until(lambda: mempool.pending_count().total == 300, "all wait for a block")


def unsent(sock: socket.socket) -> int:
    """Return the bytes that the peer's system has not received yet."""
    return int.from_bytes(fcntl.ioctl(sock, termios.TIOCOUTQ, bytes(4)), sys.byteorder)


def test_more_than_are_read_ahead_are_answered_in_order(node: Node, connect: Connect) -> None:
    client = connect()
    for number in range(500):
        client.text(sending(number, f"k{number}=v"))

    assert [client.json()["id"] for _ in range(500)] == list(range(500))
    assert client.asked("num_unconfirmed_txs")["result"]["total"] == "500"


def test_calls_between_transactions_are_answered_in_order(node: Node, connect: Connect) -> None:
    client = connect()
    for text in (
        sending(1, "a=1"),
        message("num_unconfirmed_txs", 2),
        sending(3, "a=1"),
        sending(4, "no pair = of = these"),
        sending(5, "b=1", "broadcast_tx_async"),
        "no JSON",
        message("num_unconfirmed_txs", 6),
        sending(7, "c=1"),
    ):
        client.text(text)

    answers = [client.json() for _ in range(8)]
    assert [answer["id"] for answer in answers] == [1, 2, 3, 4, 5, None, 6, 7]
    first, one, seen, refused, later, _, two, last = answers
    assert first["result"]["code"] == last["result"]["code"] == "0"
    assert one["result"]["total"] == "1"
    assert "already exists in cache" in seen["error"]["data"]
    assert refused["result"]["code"] != "0"
    assert later["result"]["code"] == "0"
    assert two["result"]["total"] == "2"


def test_pending_replies_are_sent_before_the_close(node: Node, connect: Connect) -> None:
    client = connect()
    for number in range(3):
        client.text(sending(number, f"k{number}=v"))
    client.frame(8, (1000).to_bytes(2))

    assert [client.json()["id"] for _ in range(3)] == [0, 1, 2]
    assert client.read() is None
    assert client.closed == 1000


def test_transactions_of_a_disconnected_client_are_processed(
    node: Node, connect: Connect
) -> None:
    client = connect()
    client.text(sending(1, "a=1"))
    client.text(sending(2, "b=1"))
    client.close()

    assert node.chain.store.wait_for_pending(PATIENCE)
    other = connect()
    until(
        lambda: other.asked("num_unconfirmed_txs")["result"]["total"] == "2",
        "both transactions",
    )
