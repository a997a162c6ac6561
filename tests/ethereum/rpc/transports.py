"""Responses of the EVM layer over each transport, for the same messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from flask import Flask

from flask_noderpc.testing.node import serve
from tests.helpers.websocket import WebSocketClient

TRANSPORTS = ("http", "ws")

Say = Callable[[str], str]
"""Sends a message, and returns the response."""


def posting(app: Flask, address: str = "127.0.0.1") -> Say:
    """Return a function that sends messages to an app by POST, from an address."""
    client = app.test_client()
    client.environ_base["REMOTE_ADDR"] = address
    return lambda sent: client.post("/evm", data=sent, content_type="application/json").text


@contextmanager
def talking(app: Flask, transport: str) -> Iterator[Say]:
    """Yield a function that sends messages to an app, by POST or over one websocket."""
    if transport == "http":
        yield posting(app)
        return
    with serve(app) as url, closing(WebSocketClient(url, path="/evm/ws")) as connection:

        def say(sent: str) -> str:
            connection.text(sent)
            return connection.read() or ""

        yield say
