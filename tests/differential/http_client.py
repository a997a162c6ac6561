"""Requests and responses, byte for byte."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field

from ..helpers.http import connection_to
from ..helpers.websocket import WebSocketClient

SHOWN_HEADERS = ("Content-Type", "Cache-Control", "X-Server-Time", "X-Content-Type-Options")


@dataclass(frozen=True, slots=True)
class Ask:
    """One request: ``name`` tells it from all others."""

    name: str
    method: str = "GET"
    path: str = "/"
    body: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    frames: tuple[str, ...] = ()
    """Sent over one websocket instead, each with one reply."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer; over a websocket, the replies."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: str = ""
    replies: tuple[str, ...] = ()


def ask(url: str, request: Ask, timeout: float = 30) -> Reply:
    """Send a request as it is written."""
    if request.frames:
        return Reply(101, replies=_over_websocket(url, request.frames))
    with closing(connection_to(url, timeout=timeout)) as connection:
        connection.request(
            request.method,
            request.path,
            body=request.body.encode() if request.body else None,
            headers=dict(request.headers),
        )
        response = connection.getresponse()
        body = response.read().decode()
        headers = {
            name: value
            for name in SHOWN_HEADERS
            if (value := response.headers.get(name)) is not None
        }
        return Reply(response.status, headers, body)


def _over_websocket(url: str, frames: tuple[str, ...]) -> tuple[str, ...]:
    client = WebSocketClient(url)
    try:
        replies = []
        for frame in frames:
            client.text(frame)
            replies.append(client.read() or "")
        return tuple(replies)
    finally:
        client.close()
