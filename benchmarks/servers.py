"""The servers that are compared; each runs in a process of its own on the first core.

``python -m benchmarks.servers KIND PORT FILE`` is such a process: ``node`` serves the
chain in FILE, ``pywsgi`` and ``flask`` answer every request with FILE's bytes.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LUA_POST = "wrk.method = 'POST'\nwrk.body = '{body}'\n"
BLOCKS, TXS = 1_000, 10


@dataclass(frozen=True, slots=True)
class Server:
    """A running server."""

    url: str
    process: subprocess.Popen[bytes]

    def sample(self, path: str, post: str | None) -> bytes:
        """What it answers."""
        body = None if post is None else post.encode()
        with urllib.request.urlopen(self.url + path, body) as answer:
            content: bytes = answer.read()
        return content

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait()


@contextmanager
def running(folder: Path) -> Iterator[Callable[..., Server]]:
    """A function that starts servers; all end with the block."""
    started: list[Server] = []

    def start(kind: str, answer: bytes = b"", database: Path | None = None) -> Server:
        port = free_port()
        file = database or folder / (f"{port}.answer" if answer else "chain.db")
        if answer:
            file.write_bytes(answer)
        elif database is None:
            _make_chain(file)
        command = ["taskset", "-c", "0", sys.executable, "-m", "benchmarks.servers"]
        server = Server(
            f"http://127.0.0.1:{port}",
            subprocess.Popen([*command, kind, str(port), str(file)]),
        )
        started.append(server)
        wait_for(port)
        return server

    try:
        yield start
    finally:
        for server in started:
            server.stop()


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def wait_for(port: int) -> None:
    """Wait until somebody listens at a port; raise :exc:`TimeoutError`."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise TimeoutError(f"no server on port {port}")


def _make_chain(file: Path) -> None:
    from flask_noderpc import SQLiteBackend
    from flask_noderpc.testing.chains import ChainMaker, make_blocks

    maker = ChainMaker()
    backend = SQLiteBackend(file)
    backend.init_chain(maker.genesis, maker.state)
    backend.append_block(*make_blocks(maker, BLOCKS, TXS))
    backend.close()


def _serve(kind: str, port: int, file: Path) -> None:
    make = {"node": _node, "pywsgi": _bare, "flask": _view}[kind]
    serve_with_pywsgi(lambda: make(file), port)


def serve_with_pywsgi(make: Callable[[], Any], port: int) -> None:
    """Serve what is made once everything is patched."""
    from gevent import monkey

    monkey.patch_all()
    from gevent.pywsgi import WSGIHandler, WSGIServer

    class Handler(WSGIHandler):  # type: ignore[misc]  # gevent has no types
        """pywsgi leaves Nagle's algorithm on, which costs 40 ms a reply."""

        def __init__(self, sock: socket.socket, *args: Any, **options: Any) -> None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            super().__init__(sock, *args, **options)

    WSGIServer(("127.0.0.1", port), make(), handler_class=Handler, log=None).serve_forever()


def _node(file: Path) -> Any:
    from flask_noderpc import SQLiteBackend
    from flask_noderpc.testing.node import app_for

    return app_for(SQLiteBackend(file), max_subscription_clients=1000)


def _bare(file: Path) -> Any:
    answer = file.read_bytes()
    headers = [("Content-Type", "application/json"), ("Content-Length", str(len(answer)))]

    def app(environ: Any, start_response: Any) -> list[bytes]:
        environ["wsgi.input"].read()
        start_response("200 OK", headers)
        return [answer]

    return app


def _view(file: Path) -> Any:
    from flask import Flask, Response

    answer = file.read_bytes()
    app = Flask("bare")

    @app.route("/", defaults={"path": ""}, methods=["GET", "POST"])
    @app.route("/<path>", methods=["GET", "POST"])
    def view(path: str) -> Response:
        return Response(answer, mimetype="application/json")

    return app


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
