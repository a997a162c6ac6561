"""Tests that ``broadcast_tx_async`` responds without waiting for the store."""

from __future__ import annotations

import logging
import sqlite3
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from flask_noderpc import EmbeddedChain
from flask_noderpc.backends.base.capabilities import MempoolLimits
from flask_noderpc.chain.clock import ManualClock
from flask_noderpc.concurrency import Pending
from flask_noderpc.domain.abci import ExecTxResult
from flask_noderpc.jsonrpc.waiters import AsyncTxs
from flask_noderpc.signals import async_tx_refused
from flask_noderpc.testing.node import app_for

from ..helpers.http import client_call
from ..helpers.until import PATIENCE


def made(path: Path, **limits: int) -> EmbeddedChain:
    chain = EmbeddedChain(
        path, clock=ManualClock(), produce=False, limits=MempoolLimits(**limits)
    )
    chain.start()
    return chain


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the write lock of the store, as another program would."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def send(client: FlaskClient, tx: bytes) -> Any:
    return client_call(client, "broadcast_tx_async", {"tx": b64encode(tx).decode()})


def total(client: FlaskClient) -> str:
    found: str = client_call(client, "num_unconfirmed_txs")["result"]["total"]
    return found


def test_it_is_answered_while_the_store_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "chain.db"
    with closing(made(path, max_tx_bytes=100, max_txs=2)) as chain:
        client = app_for(chain).test_client()
        with locked(path):
            assert send(client, b"a=1")["result"]["code"] == "0"
            assert "already exists in cache" in send(client, b"a=1")["error"]["data"]
            assert "Tx too large" in send(client, b"b=" + b"x" * 100)["error"]["data"]
            assert send(client, b"c=1")["result"]["code"] == "0"
            assert "mempool is full" in send(client, b"d=1")["error"]["data"]
        assert total(client) == "2"


def test_a_manual_block_includes_async_transactions_sent_before(tmp_path: Path) -> None:
    with closing(made(tmp_path / "chain.db")) as chain:
        client = app_for(chain).test_client()
        for number in range(50):
            send(client, b"k%d=v" % number)
        height = chain.produce()

        assert len(chain.reads.block(height)[1].txs) == 50


@pytest.mark.features
def test_async_transactions_refused_by_the_store_are_counted_and_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Two processes of one store both see room for one more transaction."""
    path = tmp_path / "chain.db"
    refused: list[Exception] = []
    received = threading.Event()

    def count(sender: object, *, error: Exception) -> None:
        refused.append(error)
        received.set()

    with closing(made(path, max_txs=1)) as one, closing(made(path, max_txs=1)) as other:
        clients = [app_for(chain, metrics=True).test_client() for chain in (one, other)]
        with async_tx_refused.connected_to(count), caplog.at_level(logging.WARNING):
            with locked(path):
                for number, client in enumerate(clients):
                    assert send(client, b"k%d=1" % number)["result"]["code"] == "0"
            assert received.wait(PATIENCE)
            assert [total(client) for client in clients] == ["1", "1"]
        assert len(refused) == 1
        assert "mempool is full" in str(refused[0])
        message = [r.getMessage() for r in caplog.records if r.name == "flask_noderpc.mempool"]
        assert len(message) == 1
        assert "broadcast_tx_async" in message[0]
        assert "\nnoderpc_async_txs_refused_total 1.0\n" in clients[0].get("/metrics").text


class BlockedLog(logging.Handler):
    """A log handler that accepts a first record, and blocks later ones until it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.records = 0
        self.is_blocked, self.resume = threading.Event(), threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        """Block from the second record on."""
        self.records += 1
        if self.records > 1:
            self.is_blocked.set()
            assert self.resume.wait(PATIENCE)


def test_the_queue_is_read_again_after_refusals_are_logged(
    tmp_path: Path,
) -> None:
    def refuse() -> ExecTxResult:
        raise ValueError("no")

    handler = BlockedLog()
    logger = logging.getLogger("flask_noderpc.mempool")
    logger.addHandler(handler)
    with closing(made(tmp_path / "chain.db")) as chain:
        txs = AsyncTxs(chain)
        result = ExecTxResult()
        taken = threading.Semaphore(0)
        try:
            for _ in range(2):
                txs.add(Pending(refuse), 1)
            assert handler.is_blocked.wait(PATIENCE)

            def send_many() -> None:
                for _ in range(600):
                    txs.add(Pending(lambda: result), 1)
                    taken.release()

            sender = threading.Thread(target=send_many, daemon=True)
            sender.start()
            # The queue holds 500 transactions.
            assert all(taken.acquire(timeout=PATIENCE) for _ in range(500))
            handler.resume.set()
            sender.join(PATIENCE)
            assert not sender.is_alive()
        finally:
            handler.resume.set()
            logger.removeHandler(handler)
