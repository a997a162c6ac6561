"""Tests of the server of ``flask_noderpc.testing.node`` when it ends."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit
from urllib.request import urlopen

from flask import Flask

from flask_noderpc.testing.node import serve
from tests.helpers.until import PATIENCE


def test_a_request_that_is_read_after_the_end_does_not_reach_the_app() -> None:
    """The app's store is closed by then, and would be opened again."""
    app = Flask("closed")
    seen: list[str] = []

    @app.get("/<name>")
    def record(name: str) -> str:
        seen.append(name)
        return name

    with serve(app) as url:
        late = socket.create_connection((urlsplit(url).hostname, urlsplit(url).port), PATIENCE)
        late.sendall(b"GET /late HTTP/1.0\r\n")
        # Connections are accepted in order, so the first one already has its thread.
        with urlopen(f"{url}/early", timeout=PATIENCE) as response:
            assert response.read() == b"early"
    with late, late.makefile("rb") as answer:
        late.sendall(b"\r\n")
        assert b" 503 " in answer.readline()
    assert seen == ["early"]
