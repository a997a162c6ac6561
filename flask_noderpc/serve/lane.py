"""Answers that were sent before, sent again before a request is even taken apart.

The first request of its kind goes the whole way, through Flask and every guard. Where its
answer followed from its parameters and the chain alone, what was sent is kept under all bytes
that were asked, headers too: the same bytes get the same answer while the chain is the same.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any

from flask import Flask

from ..extension import mounts
from ..kept import Kept
from ..mount import Mount
from ..rpc.dispatch import Told

# Beside their bytes: the entries, and what Python needs for them.
_OVERHEAD_BYTES = 1_000
_MOST = 1_000_000

_CLOCKS = re.compile(rb"(?<=\r\n)(Date|X-Server-Time): [^\r]*")
_REPEATABLE = (b"HTTP/1.1 200 ", b"HTTP/1.1 304 ")


def reason_against(app: Flask) -> str:
    """What of the host's has to see every request of an app; empty where nothing does."""
    if type(app).wsgi_app is not Flask.wsgi_app or "wsgi_app" in vars(app):
        return "the app has WSGI middleware"
    if any(mount.asks_host for mount in mounts(app).values()):
        return "the app authorizes each call"
    hooks: tuple[dict[Any, list[Any]], ...] = (
        app.url_value_preprocessors,
        app.before_request_funcs,
        app.after_request_funcs,
        app.teardown_request_funcs,
    )
    if not all(_is_ours(one) for kind in hooks for found in kind.values() for one in found):
        return "the app has hooks around requests"
    return ""


def _is_ours(hook: object) -> bool:
    return isinstance(getattr(hook, "__self__", None), Mount)


@dataclass(frozen=True, slots=True)
class _Sent:
    """An answer, its clocks left out, and what it was sent to."""

    asked: bytes
    head: bytes
    body: bytes
    told: Told


class Lane:
    """What was sent, by what was asked; bounded in bytes."""

    def __init__(self, most_bytes: int) -> None:
        self._sent: Kept[bytes, _Sent] = Kept(_MOST, most_bytes, _weight)
        self._clocks: dict[bytes, bytes] = {}
        self._second = 0

    def find(self, asked: bytes) -> bytes | None:
        """The answer to a request, if it is the same as before."""
        sent = self._sent.get(asked)
        if sent is None:
            return None
        try:
            if not sent.told.holds():
                return None
        except Exception:
            # Whatever it is, the long way tells.
            return None
        with sent.told.telling():
            return sent.head % self._now() + sent.body

    def learn(self, asked: bytes, told: Told, sent: bytes) -> None:
        """Keep what was sent."""
        head, end, body = sent.partition(b"\r\n\r\n")
        if head.startswith(_REPEATABLE) and b"\r\nSet-Cookie:" not in head:
            made = _CLOCKS.sub(rb"\1: %(\1)b", (head + end).replace(b"%", b"%%"))
            self._sent.keep(asked, _Sent(asked, made, body, told))

    def _now(self) -> dict[bytes, bytes]:
        """What the clocks of an answer show."""
        second = int(time.time())
        if second != self._second:
            date = formatdate(second, usegmt=True).encode()
            self._clocks = {b"Date": date, b"X-Server-Time": b"%d" % second}
            self._second = second
        return self._clocks


def _weight(sent: _Sent) -> int:
    return len(sent.asked) + len(sent.head) + len(sent.body) + _OVERHEAD_BYTES
