"""Tests of the shutdown of a server whose websockets reconnect as soon as they are closed."""

from __future__ import annotations

import json
import re
import signal
import sqlite3
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.sync.client import ClientConnection

from flask_noderpc.backends import open_store

from ..faults.processes import is_long
from ..helpers.ports import free_port
from ..helpers.until import PATIENCE, until
from ..server.node_process import started
from .fixtures import Way, call, running, serving

CLIENTS = 8
GOING_AWAY = 1001
# On a busy machine, two workers that start together may wait too long for each other's lock.
LOCKED = "another program holds the write lock: wait until it has ended (database is locked)"


class Returning:
    """A client that subscribes to new blocks, and reconnects at once when the connection
    ends."""

    def __init__(self, way: Way, ended: threading.Event) -> None:
        self._way = way
        self._ended = ended
        self.codes: list[int | None] = []
        """Close codes of all connections."""
        self.refusals: list[int] = []
        """Statuses of refused handshakes."""
        self.errors: list[str] = []
        self.repeated = 0
        """Number of blocks that one subscription received twice."""
        self.blocks = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def join(self) -> None:
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                with self._way.websocket() as websocket:
                    self._follow(websocket)
            except InvalidStatus as error:
                self.refusals.append(error.response.status_code)
            except (OSError, EOFError, WebSocketException):
                # No server listens yet, or the server has ended.
                self._ended.wait(0.02)

    def _follow(self, websocket: ClientConnection) -> None:
        heights: Counter[str] = Counter()
        try:
            websocket.send(json.dumps(call("subscribe", {"query": "tm.event='NewBlock'"})))
            while True:
                message = json.loads(websocket.recv(PATIENCE))
                if "error" in message:
                    # Without a subscription, no message would follow.
                    self.errors.append(message["error"]["data"])
                    return
                if message["result"]:
                    block = message["result"]["data"]["value"]["block"]
                    heights[block["header"]["height"]] += 1
                    self.blocks += 1
        except ConnectionClosed:
            self.codes.append(websocket.close_code)
        self.repeated += sum(heights.values()) - len(heights)


@contextmanager
def returning(way: Way) -> Iterator[list[Returning]]:
    """Run clients that reconnect; yield them once each has received a block."""
    ended = threading.Event()
    clients = [Returning(way, ended) for _ in range(CLIENTS)]
    try:
        until(lambda: all(client.blocks for client in clients), "a block for each")
        yield clients
    finally:
        ended.set()
        for client in clients:
            client.join()


def check_goodbyes(clients: list[Returning]) -> None:
    """All clients read that the server goes away, and none received an event twice."""
    for client in clients:
        assert set(client.codes) == {GOING_AWAY}
        assert set(client.refusals) <= {503}
        assert set(client.errors) <= {LOCKED}
        assert client.repeated == 0


def has_more_blocks(clients: list[Returning], seen: list[int]) -> bool:
    """Return true if each client has received a block beyond those it had seen."""
    return all(client.blocks > n for client, n in zip(clients, seen, strict=True))


def exited(log: str) -> set[str]:
    """Return the PIDs of gunicorn's workers that have ended."""
    return set(re.findall(r"Worker exiting \(pid: (\d+)\)", log))


def test_gunicorn_shutdown_does_not_wait_for_reconnecting_clients(tmp_path: Path) -> None:
    with serving("gevent", tmp_path, block_interval=0.1) as (server, way):
        with returning(way) as clients:
            server.tell(signal.SIGHUP)
            until(lambda: len(exited(server.log.read_text())) == 2, "the end of both workers")
            seen = [client.blocks for client in clients]
            until(lambda: has_more_blocks(clients, seen), "a block of the new workers for each")
            assert server.end() == 0
        check_goodbyes(clients)
        # A server that ends quickly may not have refused a connection.
        assert not is_long() or any(client.refusals for client in clients)
        assert "graceful timeout" not in server.log.read_text()
        assert "Traceback" not in server.log.read_text()


def test_clients_refused_by_a_locked_store_hear_blocks_once_it_is_free(tmp_path: Path) -> None:
    with serving("gevent", tmp_path, block_interval=0.1) as (server, way):
        with returning(way) as clients:
            with closing(connected(tmp_path / "noderpc.db")) as other:
                other.execute("BEGIN IMMEDIATE")
                server.tell(signal.SIGHUP)
                until(lambda: all(client.errors for client in clients), "a refusal for each")
            seen = [client.blocks for client in clients]
            until(lambda: has_more_blocks(clients, seen), "a block for each")
            assert server.end() == 0
        check_goodbyes(clients)


def connected(database: Path) -> sqlite3.Connection:
    """Return the connection of another program, which waits for the write lock."""
    return sqlite3.connect(database, timeout=PATIENCE, isolation_level=None)


def test_noderpc_start_shutdown_does_not_wait_for_reconnecting_clients(tmp_path: Path) -> None:
    words = ("--workers", "2", "--block-interval", "0.1", "--empty-blocks")
    with started(tmp_path, *words) as node:
        node.until_up()
        port = int(node.url().rpartition(":")[2])
        with returning(Way(port, host="127.0.0.1")) as clients:
            assert node.end() == 0
        check_goodbyes(clients)
        assert "did not stop within" not in node.log.read_text()


def test_flask_run_releases_its_lease_at_sigterm(tmp_path: Path) -> None:
    port, database = free_port(), str(tmp_path / "noderpc.db")
    flask = [sys.executable, "-m", "flask", "--app", "example_app", "run", "--port", str(port)]
    with running(flask, tmp_path / "log", {"FLASK_NODERPC_DATABASE": database}) as server:
        server.until_answered(lambda: Way(port).get("/status"))
        with closing(open_store(database, read_only=True)) as store:
            until(lambda: bool(store.lease_state().owner), "a lease")
            assert server.end() == 128 + signal.SIGTERM
            assert store.lease_state().owner == ""
        assert "Traceback" not in server.log.read_text()
