"""Send requests, and read responses byte for byte."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field

from ..helpers.http import connection_to
from ..helpers.websocket import WebSocketClient

SHOWN_HEADERS = ("Content-Type", "Cache-Control", "X-Server-Time", "X-Content-Type-Options")


@dataclass(frozen=True, slots=True)
class Ask:
    """A request with a unique ``name``."""

    name: str
    method: str = "GET"
    path: str = "/"
    body: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    frames: tuple[str, ...] = ()
    """Messages that are sent over one websocket instead, with one reply for each."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A response, or the replies over a websocket."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: str = ""
    replies: tuple[str, ...] = ()


def ask(url: str, request: Ask, timeout: float = 30) -> Reply:
    """Send a request exactly as written."""
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
