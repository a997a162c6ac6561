"""Tests that each request has its own headers, regardless of earlier requests on the
connection."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import closing
from random import Random
from typing import Any

import pytest
from flask import Flask, request

from tests.helpers.until import PATIENCE

from .test_response_cache import answer, exchange, serving, without_clocks

_LINES = (
    b"Host: localhost",
    b"Connection: keep-alive",
    b"Accept: */*",
    b"accept: */*",
    b"Accept:  */* ",
    b"Accept: */*; q=0",
    b"X-One: 1",
    b"X-Long: " + b"a" * 1_000,
    b"X-Longer: " + b"b" * 2_000,
    b"Cookie: a=1",
    b"Content-Length: 3",
    b"Content-Type: text/plain",
)
_BODY = b"abc"


def echo() -> Flask:
    app = Flask(__name__)

    @app.route("/", methods=["GET", "POST"])
    def headers() -> dict[str, Any]:
        names = ("HTTP_", "CONTENT_", "SERVER_PROTOCOL", "REQUEST_METHOD")
        found = {
            name: value for name, value in request.environ.items() if name.startswith(names)
        }
        return {**found, "body": request.get_data(as_text=True)}

    return app


def made(random: Random, before: Sequence[bytes]) -> tuple[bytes, Sequence[bytes]]:
    """Return a request and its headers, which are often those that came before with a line more
    or less."""
    lines = list(before)
    match random.randrange(5):
        case 0 if len(lines) > 2:
            del lines[random.randrange(2, len(lines))]
        case 1:
            lines.insert(random.randrange(2, len(lines) + 1), random.choice(_LINES[2:]))
        case 2:
            lines[2:] = random.sample(lines[2:], len(lines) - 2)
    # A request with two lengths is refused.
    lines = list(dict.fromkeys(lines))
    target, version = random.choice((b"/", b"http://b/")), random.choice((b"1.0", b"1.1"))
    end = random.choice((b"\r\n", b"\r\n", b"\r\n", b"\n"))
    first = b"POST %b HTTP/%b\r\n" % (target, version)
    body = _BODY if b"Content-Length: 3" in lines else b""
    return first + b"".join(line + b"\r\n" for line in lines) + end + body, lines


@pytest.mark.parametrize("seed", range(4))
def test_each_request_has_its_own(seed: int) -> None:
    random, requests = Random(seed), []
    lines: Sequence[bytes] = _LINES[:2]
    for _ in range(60):
        request_, lines = made(random, lines)
        requests.append(request_)
    with serving(echo(), None) as served:

        def connection() -> closing[socket.socket]:
            address = "127.0.0.1", served.port
            return closing(socket.create_connection(address, timeout=PATIENCE))

        expected = []
        for each in requests:
            with connection() as alone:
                expected.append(without_clocks(exchange(alone, each)))
        with connection() as kept:
            one_by_one = [without_clocks(exchange(kept, each)) for each in requests]
        with connection() as kept:
            kept.sendall(b"".join(requests))
            at_once = [without_clocks(answer(kept)) for _ in requests]
    assert one_by_one == expected
    assert at_once == expected
    assert len(set(expected)) > 10
