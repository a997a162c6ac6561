"""Tests of servers without websockets or with one thread: handshakes are refused with a
hint."""

from __future__ import annotations

import base64
import logging
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import HTTPServer
from pathlib import Path
from types import ModuleType
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest
import werkzeug.serving
from flask import Flask

from flask_noderpc import NodeRPC, noderpc_bp
from flask_noderpc.extension import mounts

from ..helpers.http import request

HANDSHAKE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": base64.b64encode(bytes(16)).decode(),
}


class Silent(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Flask]:
    made = Flask("host", instance_path=str(tmp_path))
    NodeRPC(made, produce=False)
    yield made
    mounts(made)["noderpc"].backend.close()


@contextmanager
def running(server: HTTPServer) -> Iterator[int]:
    """Run a server in a thread; yield its port."""
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def asked(port: int, path: str, headers: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Return status and text of the response to a GET."""
    answer = request(f"http://127.0.0.1:{port}{path}", headers=headers)
    return answer.status, answer.text


def test_where_apps_get_no_socket_the_servers_that_give_one_are_named(app: Flask) -> None:
    # Python's own server has no websockets, like waitress and uWSGI.
    with running(make_server("127.0.0.1", 0, app, handler_class=Silent)) as port:
        status, text = asked(port, "/websocket", HANDSHAKE)
    assert status == 501
    assert re.search(
        "^no websocket: WSGIServer.* the socket: use `noderpc start`, gunicorn", text
    )


def test_a_single_threaded_server_refuses_websockets(app: Flask) -> None:
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    with running(werkzeug.serving.make_server("127.0.0.1", 0, app, threaded=False)) as port:
        status, text = asked(port, "/websocket", HANDSHAKE)
        assert asked(port, "/health")[0] == 200
    assert status == 503
    assert "has one thread, which a websocket would block: run gunicorn with --threads" in text


def test_hypercorn_is_reported_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "hypercorn.app_wrappers", ModuleType("app_wrappers"))
    Flask("host").register_blueprint(noderpc_bp)
    (message,) = caplog.messages
    assert message.startswith(
        "hypercorn does not serve websockets of WSGI apps: use `noderpc start`"
    )
