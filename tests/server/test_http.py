"""Tests of status lines and headers of ``noderpc start``: versions, phrases."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..helpers.raw_http import CLOSING, GET, HEALTH, answers, exchange, post
from .node_process import Node, started

OLD = GET.replace(b"1.1", b"1.0")
HANDSHAKE = CLOSING.replace(b"/health", b"/websocket").replace(
    b"Connection: close",
    b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="
    b"\r\nSec-WebSocket-Version: 8",
)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    folder = tmp_path_factory.mktemp("node")
    with started(folder, "--dialect", "comet-0.38", limits={"idle_s": 2}) as found:
        found.until_up()
        yield found


@pytest.mark.parametrize(
    ("request_", "line"),
    [
        (CLOSING, "HTTP/1.1 200 OK"),
        (CLOSING.replace(b"/health", b"/nosuch"), "HTTP/1.1 404 Not Found"),
        (CLOSING.replace(b"/health", b"/websocket"), "HTTP/1.1 400 Bad Request"),
        (HANDSHAKE, "HTTP/1.1 400 Bad Request"),
        (CLOSING.replace(b"/health", b"/tx"), "HTTP/1.1 500 Internal Server Error"),
        (post("Connection: close", "Content-Length: 1", body=b"{"), "HTTP/1.1 500 "),
    ],
    ids=["answer", "no route", "no handshake", "version 8", "error", "no JSON"],
)
def test_each_answer_has_the_phrase_of_its_status_and_the_server_s_time(
    node: Node, request_: bytes, line: str
) -> None:
    head = exchange(node, request_).partition("\r\n\r\n")[0]

    assert head.startswith(line)
    assert "\r\nX-Server-Time: " in head


def test_http_1_0_is_answered_as_such_and_closed(node: Node) -> None:
    answer = exchange(node, OLD + OLD)

    assert answer.startswith("HTTP/1.0 200 OK\r\n")
    assert "\r\nConnection: close\r\n" in answer
    assert answer.count("HTTP/1.") == 1


def test_http_1_0_keep_alive_is_honoured_on_request(node: Node) -> None:
    kept = OLD.replace(b"\r\n\r\n", b"\r\nConnection: keep-alive\r\n\r\n")
    answer = exchange(node, kept * 3 + OLD)

    assert answer.count("HTTP/1.0 200 OK\r\n") == 4
    assert answer.count("\r\nConnection: keep-alive\r\n") == 3


@pytest.mark.parametrize(
    ("expected", "statuses"),
    [(b"foo", [417]), (b"100-continue-not", [417]), (b"100-Continue", [200]), (b"", [200])],
)
def test_an_expectation_that_the_server_does_not_know_fails(
    node: Node, expected: bytes, statuses: list[int]
) -> None:
    # Bytes behind the refused request are not read as a request.
    header = b"\r\nExpect: " + expected + b"\r\n\r\n"
    request = CLOSING.replace(b"\r\n\r\n", header)

    assert answers(node, request + GET) == statuses


def test_100_continue_may_be_expected_in_any_case_of_letters(node: Node) -> None:
    request = post(
        "Expect: 100-Continue", "Content-Length: 42", "Connection: close", body=HEALTH
    )
    answer = exchange(node, request)

    assert answer.startswith("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")
    # RFC 9110, 10.1.1: an expectation in HTTP/1.0 is ignored.
    assert exchange(node, request.replace(b"1.1", b"1.0")).startswith("HTTP/1.0 200 OK\r\n")


@pytest.mark.parametrize(
    "request_",
    [
        post("Content-Length: 50000000"),
        GET.replace(b"\r\n\r\n", b"\r\nContent-Length: 42\r\n\r\n"),
    ],
    ids=["too large", "not read"],
)
def test_a_response_instead_of_100_continue_ends_the_connection(
    node: Node, request_: bytes
) -> None:
    request_ = request_.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n")
    answer = exchange(node, request_ + GET)

    assert answer.count("HTTP/1.1") == 1
    assert "\r\nConnection: close\r\n" in answer


@pytest.mark.parametrize(
    "lines", [b"Connection: TE, Close", b"Connection: te\r\nConnection: close"]
)
def test_close_may_be_one_of_several_connection_options(node: Node, lines: bytes) -> None:
    assert answers(node, CLOSING.replace(b"Connection: close", lines) + GET) == [200]


def test_keep_alive_may_be_one_of_several_connection_options(node: Node) -> None:
    kept = OLD.replace(b"\r\n\r\n", b"\r\nConnection: TE, Keep-Alive\r\n\r\n")

    assert exchange(node, kept + OLD).count("HTTP/1.0 200 OK\r\n") == 2


@pytest.mark.parametrize(
    ("target", "line"),
    [
        (b"http://localhost/health", "HTTP/1.1 200 OK"),
        (b"HTTP://localhost/health?a=b", "HTTP/1.1 200 OK"),
        (b"http://localhost", "HTTP/1.1 200 OK"),
        # RFC 9112, 3.2.2: the host of the target replaces the Host header.
        (b"http://evil.example/health", "HTTP/1.1 403 Forbidden"),
    ],
)
def test_a_target_may_be_a_whole_url(node: Node, target: bytes, line: str) -> None:
    assert exchange(node, CLOSING.replace(b"/health", target)).startswith(line)


def test_an_empty_line_before_a_request_is_ignored_once(node: Node) -> None:
    # RFC 9112, 2.2; Go ignores an empty line behind a POST.
    first = post("Content-Length: 42", body=HEALTH)

    assert answers(node, first + b"\r\n" + CLOSING) == [200, 200]
    assert answers(node, first + b"\r\n\r\n" + CLOSING) == [200, 400]


@pytest.mark.parametrize(
    ("lines", "statuses"),
    [
        (b"X: " + b" " * 60_000 + b"\x01", [400]),
        (b"X: " + b"\t " * 30_000 + b"\x00", [400]),
        (b"X: a" + b" " * 60_000 + b"b", [200, 200]),
        (b"X:" + b" " * 30_000 + b"\r\nY:" + b"\t" * 30_000, [200, 200]),
    ],
    ids=["blanks", "tabs and blanks", "blanks within a value", "blanks alone"],
)
def test_long_blanks_in_a_header_delay_nobody(
    node: Node, lines: bytes, statuses: list[int]
) -> None:
    """A backtracking pattern would block the process for minutes to hours."""
    request = GET.replace(b"\r\n\r\n", b"\r\n" + lines + b"\r\n\r\n")

    assert answers(node, request + CLOSING) == statuses


def test_a_long_target_with_two_hosts_delays_nobody(node: Node) -> None:
    target = b"http://" + b"a" * 8_000

    assert answers(node, GET.replace(b"/health", target + b"\x7f")) == [400]


def test_blanks_around_a_value_are_no_part_of_it(node: Node) -> None:
    request = CLOSING.replace(b"close", b"\t  close \t ")

    assert answers(node, request + GET) == [200]


@pytest.mark.parametrize(
    "request_",
    [
        GET.replace(b"localhost", b"local host"),
        GET.replace(b"localhost", b"localhost/a"),
        GET.replace(b"localhost", b"\xe4"),
        GET.replace(b"GET", b"G(T"),
        GET.replace(b"/health", b"health"),
        GET.replace(b"/health", b"?health"),
        GET.replace(b"/health", b"http:///health"),
        GET.replace(b"/health", b"http://%6cocalhost/health"),
        GET.replace(b"/health", b"http://[localhost/health"),
        GET.replace(b"/health", b"http://a@localhost/health"),
        GET.replace(b"/health", b"*"),
        GET.replace(b"GET /health", b"CONNECT localhost:80"),
        GET.replace(b"GET", b"CONNECT"),
    ],
    ids=lambda request_: request_.split(b"\r\n\r\n")[0].decode("latin-1"),
)
def test_a_head_that_go_refuses_is_refused(node: Node, request_: bytes) -> None:
    assert answers(node, request_ + CLOSING) == [400]


def test_options_may_ask_the_server_itself(node: Node) -> None:
    asked = GET.replace(b"GET /health", b"OPTIONS *")

    assert len(answers(node, asked + CLOSING)) == 2
