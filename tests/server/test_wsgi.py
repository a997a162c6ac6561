"""Tests of responses of plain WSGI applications under ``noderpc start`` (PEP 3333)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ..helpers.raw_http import exchange
from ..helpers.until import until
from ..helpers.websocket import WebSocketClient
from .node_process import Node, client_seconds, started

APP = """
import io
import pathlib
import sys

import gevent
from flask import Flask, request
from flask_noderpc import NodeRPC
from flask_sock import Sock

app = Flask(__name__)
NodeRPC(app, database={folder!r} + "/chain.db", rpc_laddr="tcp://127.0.0.1:0")


@Sock(app).route("/views/websocket")
def own_websocket(websocket):
    websocket.send(websocket.receive().upper())


@app.post("/views/wrapped")
def wrapped():
    return io.TextIOWrapper(request.stream).read(1)


flask_app = app.wsgi_app
TEXT = [("Content-Type", "text/plain")]


class Closed(list):
    def close(self):
        pathlib.Path({folder!r}, "closed").touch()


def written(environ, start_response):
    write = start_response("200 OK", list(TEXT))
    write(b"first ")
    write(b"second ")
    return [b"third"]


def generated(environ, start_response):
    start_response("200 OK", list(TEXT))
    yield b"one "
    yield b""
    yield b"two"


def listed(environ, start_response):
    start_response("200 OK", list(TEXT))
    return Closed([b"four", b"five"])


def failed_first(environ, start_response):
    start_response("200 OK", list(TEXT))
    try:
        raise LookupError
    except LookupError:
        start_response("404 NOT FOUND", list(TEXT), sys.exc_info())
    return [b"gone"]


def failed_late(environ, start_response):
    write = start_response("200 OK", list(TEXT))
    write(b"sent")
    try:
        raise LookupError
    except LookupError:
        start_response("500 Late", list(TEXT), sys.exc_info())
    return []


def injected(environ, start_response):
    start_response("200 OK", [("X-Text", "a\\r\\nb: c")])
    return [b""]


def unstarted(environ, start_response):
    return [b"text"]


def empty(environ, start_response):
    start_response("204 NO CONTENT", [])
    return []


def raised(environ, start_response):
    raise LookupError


def timed_out(environ, start_response):
    raise gevent.Timeout(1)


def exited(environ, start_response):
    sys.exit(1)


def header_in_japanese(environ, start_response):
    start_response("200 OK", [("X-Text", "日本")])
    return [b""]


def status_in_japanese(environ, start_response):
    start_response("200 日本", list(TEXT))
    return [b""]


def text_for_bytes(environ, start_response):
    start_response("200 OK", list(TEXT))
    return ["text"]


def started_twice(environ, start_response):
    start_response("200 OK", list(TEXT))
    start_response("404 NOT FOUND", list(TEXT))
    return []


def too_long(environ, start_response):
    start_response("200 OK", [*TEXT, ("Content-Length", "3")])
    return [b"ab", b"cd"]


def too_short(environ, start_response):
    start_response("200 OK", [*TEXT, ("Content-Length", "5")])
    return [b"ab", b"cd"]


def closing(environ, start_response):
    start_response("200 OK", [*TEXT, ("Connection", "Close")])
    return []


def patient(environ, start_response):
    gevent.sleep(3)
    start_response("200 OK", list(TEXT))
    return [b"waited"]


def late_reader(environ, start_response):
    gevent.sleep(3)
    body = environ["wsgi.input"].read()
    start_response("200 OK", list(TEXT))
    return [b"%d" % len(body)]


def echoed(environ, start_response):
    start_response("200 OK", list(TEXT))
    return [environ["wsgi.input"].readline(), environ["wsgi.input"].read()]


def wsgi_app(environ, start_response):
    found = globals().get(environ["PATH_INFO"][1:], flask_app)
    return found(environ, start_response)


app.wsgi_app = wsgi_app
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("wsgi")


def command(folder: Path) -> list[str]:
    app = folder / "plain.py"
    app.write_text(APP.format(folder=str(folder)))
    return [sys.executable, "-m", "flask", "--app", str(app), "noderpc", "start"]


@pytest.fixture(scope="module")
def node(folder: Path) -> Iterator[Node]:
    with started(folder, command=command(folder)) as found:
        found.until_up()
        yield found


def get(node: Node, path: str, version: str = "1.1", *lines: str) -> tuple[list[str], str]:
    """Return the lines of the head, and the bytes after it."""
    if version == "1.1":
        lines = (*lines, "Connection: close")
    request = "\r\n".join([f"GET {path} HTTP/{version}", "Host: localhost", *lines, "", ""])
    head, _, body = exchange(node, request.encode()).partition("\r\n\r\n")
    return head.split("\r\n"), body


def test_parts_of_unknown_length_are_sent_in_chunks(node: Node) -> None:
    head, body = get(node, "/written")
    assert head[0] == "HTTP/1.1 200 OK"
    assert "Transfer-Encoding: chunked" in head
    assert body == "6\r\nfirst \r\n7\r\nsecond \r\n5\r\nthird\r\n0\r\n\r\n"

    # An empty chunk would end the response.
    assert get(node, "/generated")[1] == "4\r\none \r\n3\r\ntwo\r\n0\r\n\r\n"


@pytest.mark.parametrize("lines", [(), ("Connection: keep-alive",)])
def test_in_http_1_0_the_end_of_the_connection_ends_such_a_body(
    node: Node, lines: tuple[str, ...]
) -> None:
    head, body = get(node, "/generated", "1.0", *lines)
    assert head[0] == "HTTP/1.0 200 OK"
    assert not any(line.startswith("Transfer-Encoding") for line in head)
    assert body == "one two"


def test_a_list_has_a_known_length_and_is_closed(node: Node, folder: Path) -> None:
    head, body = get(node, "/listed")
    assert "Content-Length: 8" in head
    assert body == "fourfive"
    until((folder / "closed").exists, "close()")


def test_an_error_before_the_first_byte_replaces_the_response(node: Node) -> None:
    head, body = get(node, "/failed_first")
    assert head[0] == "HTTP/1.1 404 Not Found"
    assert body == "gone"


def test_an_error_after_the_first_byte_cuts_the_response(node: Node) -> None:
    head, body = get(node, "/failed_late")
    assert head[0] == "HTTP/1.1 200 OK"
    assert body == "4\r\nsent\r\n"


@pytest.mark.parametrize(
    "path",
    [
        "/injected",
        "/unstarted",
        "/started_twice",
        "/raised",
        "/timed_out",
        "/exited",
        "/header_in_japanese",
        "/status_in_japanese",
        "/text_for_bytes",
    ],
)
def test_an_application_that_fails_is_answered_500(node: Node, path: str) -> None:
    processes = node.children()
    head, body = get(node, path)
    assert head[0] == "HTTP/1.1 500 Internal Server Error"
    assert "Connection: close" in head
    assert body == "Internal Server Error"
    assert f"error while handling GET {path}\nTraceback" in node.log.read_text()
    assert node.children() == processes


def test_a_204_has_neither_length_nor_body(node: Node) -> None:
    head, body = get(node, "/empty")
    assert head[0] == "HTTP/1.1 204 No Content"
    assert not any(line.startswith(("Content-Length", "Transfer-Encoding")) for line in head)
    assert body == ""


@pytest.mark.parametrize(
    ("framing", "body"),
    [
        ("Content-Length: 9", b"line\nrest"),
        ("Transfer-Encoding: chunked", b"3\r\nlin\r\n6\r\ne\nrest\r\n0\r\n\r\n"),
    ],
)
def test_lines_of_a_body_end_where_the_body_ends(node: Node, framing: str, body: bytes) -> None:
    request = f"POST /echoed HTTP/1.1\r\nHost: localhost\r\n{framing}\r\n\r\n".encode() + body
    closing = b"GET /listed HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    received = exchange(node, request + closing)
    assert received.split("\r\n\r\n")[1].startswith("line\nrest")
    assert received.endswith("fourfive")


LAST = b"GET /listed HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def behind(node: Node, path: str, method: str = "GET") -> tuple[str, str]:
    """Return the head of a response, and the bytes after it if /listed is requested next."""
    request = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    head, _, rest = exchange(node, request + LAST).partition("\r\n\r\n")
    return head, rest


@pytest.mark.parametrize("path", ["/listed", "/generated", "/written", "/too_short"])
def test_a_response_to_head_has_no_body(node: Node, path: str) -> None:
    head, rest = behind(node, path, "HEAD")
    assert head.startswith("HTTP/1.1 200 OK\r\n")
    assert rest.startswith("HTTP/1.1 200 OK\r\n")


def test_no_more_is_sent_than_the_content_length_says(node: Node) -> None:
    assert behind(node, "/too_long")[1].startswith("abcHTTP/1.1 200 OK\r\n")


def test_the_connection_ends_behind_a_body_that_is_too_short(node: Node) -> None:
    assert behind(node, "/too_short")[1] == "abcd"


def test_an_application_may_close_the_connection(node: Node) -> None:
    assert behind(node, "/closing")[1] == ""


def test_closing_a_wrapper_of_the_body_leaves_the_next_request(node: Node) -> None:
    logged = len(node.log.read_text())
    request = (
        b"POST /views/wrapped HTTP/1.1\r\nHost: localhost\r\nContent-Length: 40000\r\n\r\n"
    )
    received = exchange(node, request + b"x" * 40_000 + LAST)
    assert received.count("HTTP/1.1 200 OK") == 2
    assert "Traceback" not in node.log.read_text()[logged:]


def test_a_websocket_of_the_application_is_served_and_closed(node: Node) -> None:
    logged = len(node.log.read_text())
    with closing(WebSocketClient(node.url(), "/views/websocket")) as client:
        client.text("text")
        assert client.read() == "TEXT"
        assert client.read() is None
        assert client.closed == 1000
    assert "Traceback" not in node.log.read_text()[logged:]


def test_the_end_of_such_a_websocket_does_not_wait_for_the_client(node: Node) -> None:
    with closing(WebSocketClient(node.url(), "/views/websocket")) as client:
        client.text("text")
        received = b""
        while more := client.sock.recv(100):
            received += more
    # The server sends the text and a Close frame, although the client sends none.
    assert received == b"\x81\x04TEXT\x88\x02\x03\xe8"


@pytest.mark.parametrize("path", ["/patient", "/late_reader"])
def test_an_application_may_take_longer_than_a_client_has_for_the_body(
    tmp_path: Path, path: str
) -> None:
    # The body is longer than what the server reads before the application asks for it.
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200000\r\n\r\n"
    request = head.encode() + bytes(200_000)
    with started(tmp_path, command=command(tmp_path), limits=client_seconds(1)) as node:
        node.until_up()
        assert exchange(node, request + LAST).count("HTTP/1.1 200 OK") == 2
