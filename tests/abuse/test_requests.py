"""Tests of broken and ambiguous requests at ``noderpc start``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from ..helpers.raw_http import GET, HEALTH, answers, post
from ..server.node_process import Node, client_seconds, started

LENGTH = f"Content-Length: {len(HEALTH)}"
CHUNKED = "Transfer-Encoding: chunked"
IDLE_S = 2.0


@contextmanager
def _up(folder: Path, limits: Mapping[str, float]) -> Iterator[Node]:
    with started(folder, limits=limits) as found:
        found.until_up()
        yield found
        found.until_up()
        assert "Traceback" not in found.log.read_text()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    # The deadline closes no connection: a busy machine may take seconds for a large request.
    with _up(tmp_path_factory.mktemp("node"), client_seconds(600, IDLE_S)) as found:
        yield found


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node whose clients have a second for each step."""
    with _up(tmp_path_factory.mktemp("impatient"), client_seconds(1, IDLE_S)) as found:
        yield found


@pytest.mark.parametrize(
    "request_",
    [
        post(LENGTH, CHUNKED, body=b"0\r\n\r\n" + GET),
        post(CHUNKED, LENGTH, body=b"0\r\n\r\n" + GET),
        post(LENGTH, "Content-Length: 0", body=HEALTH),
        post(f"{LENGTH}, {len(HEALTH)}", body=HEALTH),
        post(f"Content-Length: +{len(HEALTH)}", body=HEALTH),
        post("Content-Length: 4_2", body=HEALTH),
        post("Content-Length: -5", body=HEALTH),
        post("Content-Length: " + "9" * 5000),
        post("Transfer-Encoding: xchunked", LENGTH, body=HEALTH),
        post("Transfer-Encoding: gzip, chunked", body=b"0\r\n\r\n" + GET),
        post("Transfer-Encoding: identity", CHUNKED, body=b"0\r\n\r\n" + GET),
        post(CHUNKED).replace(b"1.1", b"1.0") + b"0\r\n\r\n" + GET,
        post(LENGTH.replace(":", " :"), body=HEALTH),
        post("nonsense", LENGTH, body=HEALTH),
        post("X: a", " " + LENGTH, body=HEALTH),
        post(f"X: a\r{LENGTH}", body=HEALTH),
        post("X: \0", LENGTH, body=HEALTH),
        post("Host: y", LENGTH, body=HEALTH),
        GET.replace(b"Host: localhost\r\n", b""),
        GET.replace(b"\r\n\r\n", b"\r\n" + b"A: b\r\n" * 200 + b"\r\n"),
        GET.replace(b"\r\n\r\n", b"\r\nA: " + b"b" * 70_000 + b"\r\n\r\n"),
        GET.replace(b"\r\n\r\n", b"\r\n" + (b"A: " + b"b" * 60_000 + b"\r\n") * 90 + b"\r\n"),
        b"GET /health\r\n\r\n",
        b"GET /health HTTP/0.9\r\n\r\n",
        b"GET /health HTTP/1\r\nHost: localhost\r\n\r\n",
        b"GET /health HTTP/2.0\r\nHost: localhost\r\n\r\n",
        b"GET /health HTTP/a.b\r\nHost: localhost\r\n\r\n",
        b"GET  /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        # The beginning of a TLS handshake, and random bytes.
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500) + b"\r\n",
        bytes(range(256)) * 100,
    ],
    ids=lambda request_: repr(request_[:90]),
)
def test_ambiguous_requests_are_refused_and_the_connection_closed(
    node: Node, request_: bytes
) -> None:
    # The bytes after it must not be read as another request.
    assert answers(node, request_) == [400]


def test_a_request_line_has_an_end(node: Node) -> None:
    assert answers(node, b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n") == [414]


@pytest.mark.parametrize(
    "chunks", [b"zz\r\n", b"\r\n", b"3\r\nabcd\r\n", b"f" * 30, b"0\r\nno\r\n"]
)
def test_behind_broken_chunks_nothing_is_a_request(node: Node, chunks: bytes) -> None:
    assert answers(node, post(CHUNKED, body=chunks + GET)) == [400]


def test_requests_that_come_all_at_once_are_answered_one_by_one(node: Node) -> None:
    assert answers(node, GET * 50) == [200] * 50


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (post("Content-Length: 1000000000000", body=b"abc"), 413),
        (post(CHUNKED, body=b"200000\r\n" + b" " * 0x1F0000), 413),
        (post(CHUNKED, body=b"\r\n"), 400),
        # The handler never reads this body.
        (GET.replace(b"\r\n\r\n", b"\r\nContent-Length: 10\r\n\r\nab"), 200),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_the_rest_of_a_body_is_not_waited_for_without_end(
    impatient: Node, request_: bytes, status: int
) -> None:
    assert answers(impatient, request_) == [status]


def test_a_body_that_is_announced_and_never_sent_is_cut_off(impatient: Node) -> None:
    assert answers(impatient, post(CHUNKED, body=b"ffffffffffffffff\r\nabc")) == []
    assert answers(impatient, post("Expect: 100-continue", LENGTH)) == [100]
