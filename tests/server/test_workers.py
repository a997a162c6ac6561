"""Tests of a node with several workers: each gets connections, and all give the same
answers."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from flask_noderpc import jsoncodec

from ..helpers.until import PATIENCE
from .node_process import Node, started


@contextmanager
def connections(url: str, count: int) -> Iterator[list[HTTPConnection]]:
    """Open connections that stay open; all are established before the first request."""
    with ExitStack() as stack:
        made = [
            stack.enter_context(closing(HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE)))
            for _ in range(count)
        ]
        for connection in made:
            connection.connect()
        for connection in made:
            answer_of(connection, "/health")
        yield made


def answer_of(connection: HTTPConnection, path: str) -> Any:
    connection.request("GET", path)
    with connection.getresponse() as response:
        content = response.read()
    assert response.status == 200, content
    return jsoncodec.decode(content)


def _served(pid: int, port: int) -> int:
    """Return how many connections to a port a process has."""
    local = f"{socket.htonl(0x7F000001):08X}:{port:04X}"
    established = {
        fields[9]
        for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()
        if (fields := line.split())[1] == local and fields[3] == "01"
    }
    found = 0
    for link in Path(f"/proc/{pid}/fd").iterdir():
        found += os.readlink(link).removeprefix("socket:[").rstrip("]") in established
    return found


needs_proc = pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="needs Linux")


@needs_proc
def test_connections_that_arrive_together_are_spread(tmp_path: Path) -> None:
    with started(tmp_path, "--workers", "2", "--produce=false") as node:
        node.until_up()
        shares = [_shares_of_arrivals(node, 12) for _ in range(8)]

    assert all(sum(each) == 12 for each in shares)
    # A machine that is busy with other work may delay one of the workers.
    assert sum(min(each) > 0 for each in shares) >= 5, shares


def _shares_of_arrivals(node: Node, count: int) -> list[int]:
    """Return how many of new connections each process gets if all wait to be accepted."""
    port = urlsplit(node.url()).port
    assert port is not None
    workers = node.children()
    for pid in workers:
        os.kill(pid, signal.SIGSTOP)
    try:
        waiting = [HTTPConnection("127.0.0.1", port, timeout=PATIENCE) for _ in range(count)]
        for connection in waiting:
            connection.connect()
    finally:
        for pid in workers:
            os.kill(pid, signal.SIGCONT)
    with ExitStack() as stack:
        for connection in waiting:
            stack.enter_context(closing(connection))
            answer_of(connection, "/health")
        return [_served(pid, port) for pid in workers]


@needs_proc
def test_the_others_accept_when_a_worker_hangs(tmp_path: Path) -> None:
    with started(tmp_path, "--workers", "2", "--produce=false") as node:
        node.until_up()
        first, second = node.children()
        os.kill(first, signal.SIGSTOP)
        try:
            # The hanging process has fewer connections, and accepts none.
            with connections(node.url(), 5):
                pass
        finally:
            os.kill(first, signal.SIGCONT)
        os.kill(second, signal.SIGKILL)
        with connections(node.url(), 5):
            pass


def test_all_workers_have_a_block_that_one_has_reported(tmp_path: Path) -> None:
    flags = ("--workers", "2", "--block-interval", "0.05", "--empty-blocks=false")
    with started(tmp_path, *flags) as node:
        node.until_up()
        has_same_head(node)


def has_same_head(node: Node) -> None:
    """Fail if a worker lacks a block that another one has just reported."""
    with connections(node.url(), 8) as made:
        for number in range(20):
            # Only this worker waits for blocks; the other one is never notified of them.
            sent = answer_of(made[0], f'/broadcast_tx_commit?tx="k{number}=v"')
            height = int(sent["result"]["height"])
            for connection in made:
                status = answer_of(connection, "/status")["result"]["sync_info"]
                assert int(status["latest_block_height"]) >= height
                last = answer_of(connection, "/block")["result"]["block"]["header"]
                assert int(last["height"]) >= height
