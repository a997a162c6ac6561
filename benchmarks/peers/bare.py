"""Bare servers, which send the bytes of a file as the response to every request.

``python -m benchmarks.peers.bare KIND PORT FILE`` runs one: gevent's ``pywsgi`` alone, a
``Flask view`` behind it, or ``Flask-JSONRPC``, which has the result as a value.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..process import Server, free_port, served
from . import MissingError

PYWSGI, VIEW, JSONRPC = "pywsgi", "Flask view", "Flask-JSONRPC"


@contextmanager
def bare(kind: str, file: Path, answer: bytes) -> Iterator[Server]:
    """Run a server that sends these bytes, which are written to the file."""
    if kind == JSONRPC and find_spec("flask_jsonrpc") is None:
        raise MissingError("Flask-JSONRPC is not installed (the extra benchmarks)")
    port = free_port()
    file.write_bytes(answer)
    words = [sys.executable, "-m", "benchmarks.peers.bare", kind, str(port), str(file)]
    with served(words, port) as server:
        yield server


def serve_with_pywsgi(make: Callable[[], Any], port: int) -> None:
    """Patch with gevent, then make the app and serve it."""
    from gevent import monkey

    monkey.patch_all()
    from gevent.pywsgi import WSGIHandler, WSGIServer

    class Handler(WSGIHandler):  # type: ignore[misc]  # gevent has no types
        """Turn off Nagle's algorithm, which pywsgi leaves on and which costs 40 ms a
        response."""

        def __init__(self, sock: socket.socket, *args: Any, **options: Any) -> None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            super().__init__(sock, *args, **options)

    WSGIServer(("127.0.0.1", port), make(), handler_class=Handler, log=None).serve_forever()


def _alone(answer: bytes) -> Any:
    headers = [("Content-Type", "application/json"), ("Content-Length", str(len(answer)))]

    def app(environ: Any, start_response: Any) -> list[bytes]:
        environ["wsgi.input"].read()
        start_response("200 OK", headers)
        return [answer]

    return app


def _view(answer: bytes) -> Any:
    from flask import Flask, Response

    app = Flask("bare")

    @app.route("/", defaults={"path": ""}, methods=["GET", "POST"])
    @app.route("/<path>", methods=["GET", "POST"])
    def view(path: str) -> Response:
        return Response(answer, mimetype="application/json")

    return app


def _jsonrpc(answer: bytes) -> Any:
    import flask_jsonrpc
    from flask import Flask

    replies = json.loads(answer)
    reply = replies[0] if isinstance(replies, list) else replies
    app = Flask("jsonrpc")

    def block(height: str) -> dict[str, Any]:
        result: dict[str, Any] = reply["result"]
        return result

    flask_jsonrpc.JSONRPC(app, "/", enable_web_browsable_api=False).register(
        block, name="block"
    )
    return app


_KINDS = {PYWSGI: _alone, VIEW: _view, JSONRPC: _jsonrpc}

if __name__ == "__main__":
    _make, _answer = _KINDS[sys.argv[1]], Path(sys.argv[3]).read_bytes()
    serve_with_pywsgi(lambda: _make(_answer), int(sys.argv[2]))
