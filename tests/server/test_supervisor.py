"""Tests of ``noderpc start`` when its node can't start, at first or after it was ready."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from ..helpers.http import get
from ..helpers.imports import loaded
from ..helpers.ports import free_port
from ..helpers.until import PATIENCE, until
from .node_process import (
    COMMAND,
    Node,
    refusal,
    started,
    without_warnings,
)


def has_listener(port: int) -> bool:
    """Return true if a process listens at a port of this machine."""
    try:
        socket.create_connection(("127.0.0.1", port), PATIENCE).close()
    except ConnectionRefusedError:
        return False
    return True


def test_nothing_listens_where_the_node_does_not_get_ready(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        node.until_up()
        node.end()
    port = free_port()
    flags = ("--home", str(tmp_path), "--rpc.laddr", f"tcp://127.0.0.1:{port}")
    with closing(sqlite3.connect(tmp_path / "data" / "noderpc.db")) as other:
        # The node waits for the lock, longer than most starts take.
        other.execute("BEGIN IMMEDIATE")
        again = Node(tmp_path, command=[*COMMAND, *flags], log="again.log")
        try:
            looks: list[bool] = []

            def ends_without_listener() -> bool:
                looks.append(has_listener(port))
                return again.has_ended()

            until(ends_without_listener, "its end")
            assert len(looks) > 1
            assert not any(looks)
            # A restart may find the store unlocked.
            assert again.end() == 1
        finally:
            again.kill()
    (message,) = without_warnings(again.log.read_text()).splitlines()
    assert message.startswith("Error: ")
    assert "another program holds the write lock" in message


def test_a_file_that_is_no_store_is_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "noderpc.db").write_bytes(b"no database" * 500)

    (message,) = refusal("--home", str(tmp_path)).splitlines()

    assert message.startswith(
        f"Error: {tmp_path / 'data' / 'noderpc.db'}: the file is not a SQLite"
    )


def test_a_process_that_ends_by_itself_is_not_tried_again(tmp_path: Path) -> None:
    (tmp_path / "hosts.py").write_text(
        "import pathlib, sys\n"
        "from flask import Flask\n"
        "from flask_noderpc import NodeRPC\n"
        f"loads = pathlib.Path({str(tmp_path / 'loads')!r})\n"
        "with loads.open('a') as file:\n"
        "    file.write('x')\n"
        # The app fails in workers, but not in the parent, which loads it first.
        "if len(loads.read_text()) > 1:\n"
        "    sys.exit(3)\n"
        "app = Flask(__name__)\n"
        f"NodeRPC(app, database={str(tmp_path / 'chain.db')!r}, rpc_laddr='tcp://127.0.0.1:0')\n"
    )
    app = str(tmp_path / "hosts.py")

    command = [sys.executable, "-m", "flask", "--app", app, "noderpc", "start"]
    message = refusal(command=command, status=1)

    assert "a process of the node ended with status 3 before it was ready" in message
    assert (tmp_path / "loads").read_text() == "xx"


def answered(url: str) -> tuple[int, str]:
    """Return the status and the text of the response to a GET; 0 if the server does not
    respond."""
    try:
        answer = get(url)
        return answer.status, answer.text
    except OSError as error:
        return 0, str(error)


def test_a_worker_ends_when_its_parent_was_killed_early(
    tmp_path: Path,
) -> None:
    port = free_port()
    flags = ("--home", str(tmp_path), "--rpc.laddr", f"tcp://127.0.0.1:{port}")
    with started(tmp_path, command=[*COMMAND, *flags]) as node:
        # The process gets its spec before it creates the store.
        until((tmp_path / "data" / "noderpc.db").exists, "its store")
        node.tell(signal.SIGSTOP)
        until(lambda: has_listener(port), "that it serves")
        node.end(signal.SIGKILL)
        until(lambda: not has_listener(port), "its end")


def test_a_process_ends_when_its_parent_was_killed_before_it_got_its_spec(
    tmp_path: Path,
) -> None:
    with started(tmp_path) as node:
        until(lambda: bool(node.children()), "its process")
        children = node.children()
        node.end(signal.SIGKILL)
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in children), "its end")


def executors(node: Node) -> list[str]:
    """Return the PIDs of the executor processes of a node with one worker."""
    (worker,) = node.children()
    threads = Path(f"/proc/{worker}/task").glob("*/children")
    return [pid for thread in threads for pid in thread.read_text().split()]


def test_the_executor_that_was_started_early_runs_the_blocks(tmp_path: Path) -> None:
    with started(tmp_path, "--dev", "--block-interval", "0.05", "--empty-blocks") as node:
        node.until_up()
        until(lambda: node.height() > 1, "blocks")
        # One executor runs blocks, and one calls.
        until(lambda: len(executors(node)) == 2, "the executor of calls")


def point(link: Path, folder: Path) -> None:
    """Point a link to a folder atomically."""
    fresh = link.with_name("fresh")
    fresh.symlink_to(folder)
    fresh.replace(link)


def test_a_running_node_with_an_unusable_store_stays_up_and_reports_it(tmp_path: Path) -> None:
    good, bad, link = (tmp_path / name for name in ("good", "bad", "link"))
    good.mkdir()
    bad.mkdir()
    (bad / "noderpc.db").write_bytes(b"no database" * 500)
    point(link, good)
    with started(tmp_path, "--database", str(link / "noderpc.db")) as node:
        node.until_up()
        url = node.url()
        (child,) = node.children()
        point(link, bad)
        os.kill(child, signal.SIGKILL)

        def says_why() -> bool:
            status, text = answered(url + "/readyz")
            return status == 503 and "the file is not a SQLite database" in text

        until(says_why, "an answer of the one in its place")
        assert answered(url + "/health")[0] == 200
        assert '"code":-32603' in answered(url + "/status")[1].replace(" ", "")
        assert child not in node.children()

        point(link, good)
        until(lambda: answered(url + "/readyz")[0] == 200, "that it is ready again")
        assert node.end() == 0


def test_the_process_that_supervises_loads_nothing_of_those_that_serve() -> None:
    unwanted = {
        *("marshmallow", "cryptography", "gevent", "flask", "jinja2", "asyncio", "ssl"),
        *("multiprocessing", "flask_noderpc.mount", "flask_noderpc.cli.store"),
    }

    assert loaded("flask_noderpc.cli, flask_noderpc.server.start", unwanted) == []
