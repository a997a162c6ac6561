"""Tests of the shutdown of ``noderpc start``: with many clients, two signals, a process that
hangs."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from ..faults.processes import check_duration
from ..helpers.raw_http import GET, connect
from ..helpers.until import PATIENCE, until
from ..helpers.websocket import WebSocketClient
from ..server.node_process import COMMAND, Node, started

CLIENTS = 500
SOON_S = 2.0


def test_five_hundred_websockets_get_close_1001_at_shutdown(tmp_path: Path) -> None:
    many = ("--max-subscription-clients", "1000", "--consensus.create_empty_blocks=false")
    with started(tmp_path, *many) as node, ExitStack() as stack:
        node.until_up()
        clients = [
            stack.enter_context(closing(WebSocketClient(node.url(), timeout=PATIENCE)))
            for _ in range(CLIENTS)
        ]
        for client in clients[::5]:
            client.asked("subscribe", {"query": "tm.event='NewBlock'"})

        began = time.monotonic()
        ended = threading.Thread(target=node.end)
        ended.start()
        for client in clients:
            client.read()
        received = time.monotonic() - began
        stack.close()
        ended.join(PATIENCE)

        assert [client.closed for client in clients] == [1001] * CLIENTS
        check_duration(received, SOON_S)
        assert node.end() == 0
        assert "Traceback" not in node.log.read_text()


def test_keep_alive_connections_close_after_the_pending_call_at_shutdown(
    tmp_path: Path,
) -> None:
    with started(tmp_path, "--block-interval", "1000", "--empty-blocks") as node:
        node.until_up()
        until(lambda: node.height() > 0, "the first block")
        with connect(node.url()) as sock:
            sock.sendall(GET.replace(b"/health", b'/broadcast_tx_commit?tx="a=1"'))
            until(lambda: node.get("/num_unconfirmed_txs")["total"] == "1", "its wait")

            assert node.end() == 0
            assert b"error" in b"".join(iter(lambda: sock.recv(65_536), b""))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_second_stop_signal_changes_nothing(tmp_path: Path, number: int) -> None:
    with started(tmp_path, "--workers", "2") as node:
        node.until_up()
        until(lambda: len(node.children()) == 3, "all processes")
        with closing(WebSocketClient(node.url(), timeout=PATIENCE)) as client:
            again = threading.Timer(0.05, node.tell, (number,))
            again.start()
            assert node.end(number) == 0
            again.join()
            client.read()
        assert client.closed == 1001
        assert node.children() == []
        assert "Traceback" not in node.log.read_text()


def ignoring(number: str, folder: Path) -> list[str]:
    """Return the command of a node whose starter ignores a signal."""
    start = [*COMMAND, "--home", str(folder), "--rpc.laddr", "tcp://127.0.0.1:0"]
    return ["sh", "-c", f'trap "" {number}; exec "$@"', "sh", *start]


def test_in_the_background_of_a_script_it_ends_by_sigint(tmp_path: Path) -> None:
    with started(tmp_path, command=ignoring("INT", tmp_path)) as node:
        node.until_up()
        assert node.end(signal.SIGINT) == 0


def test_under_nohup_it_outlives_its_terminal(tmp_path: Path) -> None:
    with started(tmp_path, command=ignoring("HUP", tmp_path)) as node:
        node.until_up()
        status = Path(f"/proc/{node.pid}/status").read_text()
        ignored = int(status.split("SigIgn:")[1].split()[0], 16)
        assert ignored >> (signal.SIGHUP - 1) & 1
        node.tell(signal.SIGHUP)
        assert node.get("/health") == {}
        assert node.end(signal.SIGTERM) == 0


def test_one_that_hangs_leaves_new_clients_to_the_others_and_is_killed_at_the_end(
    tmp_path: Path,
) -> None:
    with started(tmp_path, "--workers", "2") as node:
        node.until_up()
        until(lambda: len(node.children()) == 3, "all processes")
        hangs = _who_serves(node)
        os.kill(hangs, signal.SIGSTOP)
        for _ in range(20):
            assert node.get("/health") == {}
        assert node.end() == 0
        assert f"process {hangs} did not stop within 15 s and is killed" in node.log.read_text()


def _who_serves(node: Node) -> int:
    """Return the PID of a process that has a client."""
    with connect(node.url()) as sock:
        sock.sendall(GET)
        sock.recv(1)
        inode = _inode(sock.getpeername()[1], sock.getsockname()[1])
        return next(pid for pid in node.children() if inode in _sockets(pid))


def _inode(local: int, remote: int) -> str:
    """Return the name that /proc gives to the server's socket of a loopback connection."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        ports = [int(address.rpartition(":")[2], 16) for address in fields[1:3]]
        if ports == [local, remote]:
            return f"socket:[{fields[9]}]"
    raise AssertionError("there is no such connection")


def _sockets(pid: int) -> set[str]:
    found = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found.add(os.readlink(link))
        except FileNotFoundError:
            continue
    return found
