"""Tests of upstream nodes that are slow, broken, overloaded, or send something else."""

from __future__ import annotations

import gzip
import json
import logging
import socket
import threading
import tracemalloc
from base64 import b64decode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from flask import Flask
from hypothesis import given
from hypothesis import strategies as st

from flask_noderpc.cli import main
from flask_noderpc.companion import http as http_client
from flask_noderpc.companion import pool, race
from flask_noderpc.companion import throttle as throttles
from flask_noderpc.companion.address import Address
from flask_noderpc.companion.from_settings import upstreams_of
from flask_noderpc.companion.http import UpstreamLimits
from flask_noderpc.companion.pool import NoUpstream, Upstreams
from flask_noderpc.companion.reader import MismatchedResponse, Reader
from flask_noderpc.companion.threads import in_background
from flask_noderpc.companion.throttle import Throttle
from flask_noderpc.companion.upstream import BatchSize, Param, Upstream, call
from flask_noderpc.errors import (
    Busy,
    ConfigurationError,
    UpstreamError,
    UpstreamMismatch,
    UpstreamRefused,
    UpstreamUnavailable,
)
from flask_noderpc.jsoncodec import Raw
from flask_noderpc.settings import read_settings
from flask_noderpc.testing.node import run_node, serve
from tests.helpers.until import PATIENCE, until

from .conftest import LIMITS
from .raw_node import Respond, http, raw_node, results, sends

PATIENT = UpstreamLimits(timeout=PATIENCE, patience=0.1, max_bytes=100_000)
# Limits of a request that is to time out.
HASTE = replace(PATIENT, timeout=0.5)


def node_at(url: str, limits: UpstreamLimits = PATIENT) -> Upstream:
    """Return an upstream."""
    return Upstream(url, dialect="comet-0.38", limits=limits)


def _hangs(peer: socket.socket, body: bytes) -> None:
    peer.recv(1)


def _drips(head: bytes) -> Respond:
    def respond(peer: socket.socket, body: bytes) -> None:
        peer.sendall(head)
        pause = threading.Event()
        # Each pause is a tenth of the timeout, until the other side closes.
        while not pause.wait(0.05):
            peer.sendall(b" ")

    return respond


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
HTML = b"<html><body>Too many requests</body></html>"
UNUSABLE: dict[str, tuple[Respond, str]] = {
    "hangs": (_hangs, "no response within"),
    "drips a head": (_drips(b"HTTP/1.1 200 OK\r\nX:"), "no response within"),
    "drips a body": (_drips(b"HTTP/1.1 200 OK\r\n\r\n"), "no response within"),
    "drips the size of a chunk": (_drips(CHUNKED + b"1;"), "no response within"),
    "drips trailers": (_drips(CHUNKED + b"2\r\n{}\r\n0\r\nX:"), "no response within"),
    "closes": (sends(b""), "broke"),
    "half a body": (sends(http(b'{"jsonrpc":"2.0"}')[:-4]), "broke"),
    "not HTTP": (sends(b"SSH-2.0-OpenSSH_9.2\r\n"), "broke"),
    "HTML": (
        sends(http(HTML, Content_Type="text/html")),
        "expected JSON, got HTTP status 200 with text/html",
    ),
    "HTML 429": (sends(http(HTML, "429 Too Many Requests", Retry_After="7")), "429"),
    "HTML 502": (sends(http(HTML, "502 Bad Gateway", Content_Type="text/html")), "502"),
    "JSON 503": (sends(http(b'{"error":"overloaded"}', "503 Unavailable")), "503"),
    "not UTF-8": (sends(http(b'{"id":"\xff"}')), "'utf-8' codec"),
    "nothing": (sends(http(b"")), "expected JSON"),
    "half JSON": (
        sends(http(b'{"jsonrpc":"2.0","id":0,"resu')),
        "expected a JSON-RPC response",
    ),
    "neither result nor error": (sends(http(b'{"jsonrpc":"2.0","id":0}')), "neither"),
    "too large": (sends(http(b"{" + b" " * 200_000 + b"}")), "--upstream-max-bytes"),
    "compressed and too large": (
        sends(http(gzip.compress(b"{" + b" " * 9_000_000 + b"}"), Content_Encoding="gzip")),
        "--upstream-max-bytes",
    ),
    "damaged compression": (sends(http(b"{}", Content_Encoding="gzip")), "expected gzip data"),
}


@pytest.mark.parametrize("kind", UNUSABLE)
def test_no_usable_response_is_one_clear_error(kind: str) -> None:
    """The error names the node, comes in time, and leaves no open connection."""
    respond, said = UNUSABLE[kind]
    is_slow = respond is _hangs or "drips" in kind
    with raw_node(respond) as url:
        node = node_at(url, HASTE if is_slow else PATIENT)
        with pytest.raises(UpstreamUnavailable, match=said) as caught:
            node.raw("status")
        assert url in str(caught.value)
        node.close()


def test_a_handshake_that_hangs() -> None:
    """The timeout of a connection applies."""
    with raw_node(_hangs) as url, pytest.raises(UpstreamUnavailable, match="too long"):
        node_at(url.replace("http:", "https:"), HASTE).raw("status")


def test_a_name_whose_look_up_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lookup is abandoned after the timeout of a connection."""
    released = threading.Event()

    def look_up(*args: object, **given: object) -> list[object]:
        released.wait(PATIENCE)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    with pytest.raises(UpstreamUnavailable, match="connecting took too long"):
        node_at("http://slow.example:26657", HASTE).raw("status")
    released.set()


def test_nobody_is_there() -> None:
    """Both the address and the name are unreachable."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(UpstreamUnavailable, match="can't be reached"):
        node_at(f"http://127.0.0.1:{port}").raw("status")


def test_the_seconds_to_wait_are_known() -> None:
    """The next request waits that long, or fails at once if it may not wait."""
    with raw_node(UNUSABLE["HTML 429"][0]) as url:
        node = node_at(url)
        with pytest.raises(UpstreamUnavailable) as caught:
            node.raw("status")
        assert caught.value.retry_after == 7
        with pytest.raises(Busy, match="NODERPC_UPSTREAM_RATE"):
            node.raw("status")


def test_an_error_of_a_call_is_not_one_of_the_node() -> None:
    """The code, the message and the data are the node's."""
    error = {"code": -32603, "message": "Internal error", "data": "height 9 is not available"}
    body = json.dumps({"jsonrpc": "2.0", "id": 0, "error": error}).encode()
    with raw_node(sends(http(body, "500 Internal Server Error"))) as url:
        with pytest.raises(UpstreamRefused, match="height 9 is not available") as caught:
            node_at(url).raw("block", height=9)
        assert (caught.value.code, caught.value.message) == (-32603, "Internal error")


def test_what_does_not_decode_is_not_usable() -> None:
    """The error names the member, as the node may just have been upgraded."""
    said = "status: the result can't be decoded: node_info"
    with raw_node(results({"node_info": {"id": "nothing"}})) as url:
        reader = Reader(node_at(url))
        with pytest.raises(UpstreamUnavailable, match=said):
            reader.status()


def test_smaller_batches_after_a_refused_one() -> None:
    """All calls get a response, and later batches are small at once."""
    sizes = []

    def respond(peer: socket.socket, body: bytes) -> None:
        asked = json.loads(body)
        sizes.append(len(asked) if isinstance(asked, list) else 1)
        if sizes[-1] > 3:
            error = {"code": -32600, "message": "batch too large"}
            peer.sendall(http(json.dumps({"id": None, "error": error}).encode()))
        else:
            results(sizes[-1])(peer, body)

    with raw_node(respond) as url:
        node = node_at(url)
        calls = [call("block", height=height) for height in range(1, 12)]
        assert len(node.ask(calls)) == len(node.ask(calls)) == 11
    assert sizes[:3] == [10, 5, 2]
    assert set(sizes[2:]) <= {1, 2}


def test_larger_batches_are_tried_again() -> None:
    """The reason of a refusal may be gone; after a rate limit a batch never grows beyond the
    calls of one second."""
    size = BatchSize()
    size.record_refusal(10)
    size.record_refusal(5)
    assert size.calls == 2
    for _ in range(1000):
        size.record_success()
    assert size.calls == 10
    assert [BatchSize(rate).calls for rate in (1, 5, 50)] == [2, 5, 10]


def test_a_batch_that_is_too_large_is_asked_in_parts() -> None:
    """The batch is split down to single calls; if such a response is too large, the call
    fails."""

    def respond(peer: socket.socket, body: bytes) -> None:
        results("x" * 40_000)(peer, body)

    with raw_node(respond) as url:
        node = node_at(url)
        assert len(node.ask([call("block_results", height=height) for height in range(5)])) == 5
        small = node_at(url, replace(PATIENT, max_bytes=30_000))
        with pytest.raises(UpstreamUnavailable, match="--upstream-max-bytes"):
            small.ask([call("block_results", height=1), call("block_results", height=2)])


def test_large_responses_are_read_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound counts responses of all nodes; small responses are read meanwhile."""
    monkeypatch.setattr(http_client, "_LARGE_BYTES", 10_000)
    body = http(json.dumps({"jsonrpc": "2.0", "id": 0, "result": "x" * 50_000}).encode())
    rest, done = threading.Event(), threading.Event()

    def pauses(peer: socket.socket, _: bytes) -> None:
        peer.sendall(body[:40_000])
        rest.wait()
        peer.sendall(body[40_000:])

    def read(url: str) -> None:
        node_at(url).raw("block_results")
        done.set()

    with (
        raw_node(pauses) as first,
        raw_node(sends(body)) as second,
        raw_node(results(1)) as small,
        ThreadPoolExecutor(2) as threads,
    ):
        slow = threads.submit(node_at(first).raw, "block_results")
        until(http_client._one_large.locked, "the first is large")
        other = threads.submit(read, second)
        node_at(small).raw("status")
        assert not done.wait(0.5)
        rest.set()
        slow.result(PATIENCE)
        other.result(PATIENCE)


def test_a_batch_that_lacks_a_response() -> None:
    """The calls are sent one by one, as nothing says which response is missing."""
    asked = []

    def respond(peer: socket.socket, body: bytes) -> None:
        asked.append(json.loads(body))
        response = {"jsonrpc": "2.0", "id": 0, "result": len(asked)}
        is_batch = isinstance(asked[-1], list)
        peer.sendall(http(json.dumps([response] if is_batch else response).encode()))

    with raw_node(respond) as url:
        answers = node_at(url).ask([call("status"), call("health")])
    assert [bytes(each) for each in answers if isinstance(each, Raw)] == [b"2", b"3"]
    assert [each["method"] for each in asked[1:]] == ["status", "health"]


def test_parameters_as_a_node_takes_them() -> None:
    """Integers are strings, and bytes are base64."""
    bodies = []

    def respond(peer: socket.socket, body: bytes) -> None:
        bodies.append(json.loads(body))
        results({})(peer, body)

    with raw_node(respond) as url:
        node_at(url).raw("tx", hash=b"\x01\x02", prove=True, height=1 << 60, path="/store")
    (asked,) = bodies
    assert asked["params"] == {
        "hash": "AQI=",
        "prove": True,
        "height": str(1 << 60),
        "path": "/store",
    }


def test_credentials_are_sent_and_not_shown() -> None:
    """This covers credentials before the host, in the path and in the query."""
    with raw_node(sends(http(HTML))) as url:
        secret = url.replace("http://", "http://usér:pa%20ss@") + "/key-123?token=abc"
        node = node_at(secret)
        sent = node.address.headers["Authorization"]
        with pytest.raises(UpstreamUnavailable) as caught:
            node.raw("status")
    assert b64decode(sent.split()[1]).decode() == "usér:pa ss"
    for text in (str(caught.value), repr(node.address), node.name, repr(caught.value)):
        for hidden in ("pa%20ss", "pa ss", "key-123", "abc"):
            assert hidden not in text


@pytest.mark.parametrize("broken", [b"", b"no header\r\n"])
def test_keys_of_a_url_are_in_no_log(broken: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """Credentials are neither in urllib3's log at level DEBUG, nor in its warnings about
    headers that it can't parse."""
    caplog.set_level(logging.DEBUG)
    body = b'{"jsonrpc":"2.0","id":0,"result":{}}'
    answer = http(body).replace(b"\r\n\r\n", b"\r\n" + broken + b"\r\n", 1)
    with raw_node(sends(answer)) as url:
        node_at(f"{url}/v1/KEY?apikey=KEY").raw("status")
    assert "POST /…" in caplog.text
    assert "KEY" not in caplog.text


def test_credentials_in_a_header(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The header comes from the environment or a file, and is sent with each request."""
    caplog.set_level(logging.DEBUG)
    file = tmp_path / "header"
    file.write_text("x-api-key: KEY\n")
    sent: list[str] = []

    def answer(environ: dict[str, str], start: Callable[..., object]) -> list[bytes]:
        sent.append(environ["HTTP_X_API_KEY"])
        start("200 OK", [])
        return [b'{"jsonrpc":"2.0","id":0,"result":{}}']

    app = Flask("node")
    app.wsgi_app = answer  # type: ignore[assignment, method-assign]
    with serve(app) as url:
        given = {"upstream": (url,), "upstream_header": f"@{file}"}
        (reader,) = upstreams_of(read_settings({}, given), 0.0).usable_readers()
        reader.node.raw("status")
    assert sent == ["KEY"]
    assert "KEY" not in f"{reader.node.address!r} {caplog.text}"


@pytest.mark.parametrize("header", ["KEY", "KEY: a\nb: c", "KEY:", "@/none/KEY"])
def test_a_header_that_is_none(header: str) -> None:
    """The error does not show the header."""
    with pytest.raises(ConfigurationError, match="NODERPC_UPSTREAM_HEADER: ") as raised:
        read_settings({"NODERPC_UPSTREAM_HEADER": header}, {})
    assert "KEY" not in str(raised.value)


@pytest.mark.parametrize("command", [["follow", "--upstream"], ["import"], ["conform"]])
def test_a_header_on_the_command_line(command: list[str]) -> None:
    """All users of the machine would see the header; the error names the cure."""
    flags = ["http://127.0.0.1:1", "--upstream-header", "x-api-key: KEY"]
    result = CliRunner().invoke(main, [*command, *flags])
    assert result.exit_code == 2
    assert "set NODERPC_UPSTREAM_HEADER, or read it from a file" in result.output
    assert "KEY" not in result.output.replace("NODERPC_UPSTREAM_HEADER", "")


def test_a_slash_in_a_password_is_no_path() -> None:
    """The rest of the password would be shown in logs as a path; the error says how to write
    the slash."""
    with pytest.raises(ConfigurationError, match="%2F") as caught:
        node_at("http://user:12/34@node:26657")
    assert "34" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "name", "path"),
    [
        ("host:26657", "http://host:26657", "/"),
        ("tcp://1.2.3.4:26657", "http://1.2.3.4:26657", "/"),
        ("https://host/rpc/", "https://host:443", "/rpc/"),
        ("http://[::1]:5/x?y=z", "http://[::1]:5", "/x?y=z"),
    ],
)
def test_addresses(text: str, name: str, path: str) -> None:
    """Operators write addresses in these forms."""
    found = Address.parse(text)
    assert (found.name, found.path) == (name, path)


@given(st.text(max_size=60))
def test_other_texts_are_refused_in_one_way(text: str) -> None:
    """No text raises another exception."""
    with suppress(ConfigurationError):
        Address.parse(text)


@pytest.mark.parametrize("dialect", ["comet-0.34", "comet-0.37", "comet-0.38", "comet-1.0"])
def test_the_dialect_is_that_of_the_version_or_of_the_shape(dialect: str) -> None:
    """Forks have different version numbers."""
    with run_node(dialect=dialect) as node:
        node.produce()
        assert Upstream(node.url, limits=LIMITS).dialect.name == dialect
        fork = Upstream(node.url, limits=LIMITS)
        raw = fork.raw

        def other_version(method: str, **params: Param):  # type: ignore[no-untyped-def]
            found = raw(method, **params)
            if method != "status":
                return found
            status = json.loads(bytes(found))
            status["node_info"]["version"] = "7.1.3-fork"
            return json.dumps(status).encode()

        fork.raw = other_version  # type: ignore[method-assign]
        assert fork.dialect.name == dialect


def test_another_upstream_is_asked_where_one_fails() -> None:
    """The first node is asked again when it responds."""
    with raw_node(sends(http(HTML))) as broken, raw_node(results({"n": 1})) as works:
        upstreams = Upstreams([Reader(node_at(broken)), Reader(node_at(works))], 0.1)
        for _ in range(3):
            found = upstreams.attempt(lambda reader: reader.node.raw("x"))
            assert bytes(found) == b'{"n": 1}'
        assert upstreams.refused == {}


def test_a_method_that_does_not_decode_is_no_failing_node() -> None:
    """A fork may have other results for one method; other methods are still asked."""
    with raw_node(results({"n": 1})) as url:
        reader = Reader(node_at(url))
        upstreams = Upstreams([reader], 0.0)
        with pytest.raises(UpstreamUnavailable, match="the result can't be decoded"):
            upstreams.attempt(lambda reader: reader.status())
        assert upstreams.states() == {reader.name: "up"}


def test_all_are_tried_again_until_the_patience_ends() -> None:
    """A node that restarts responds within the patience."""
    count = 0

    def respond(peer: socket.socket, body: bytes) -> None:
        nonlocal count
        count += 1
        (results("ready") if count > 3 else sends(b""))(peer, body)

    with raw_node(respond) as url:
        found = Upstreams([Reader(node_at(url))], PATIENCE)
        assert bytes(found.attempt(lambda reader: reader.node.raw("x"))) == b'"ready"'


def test_a_silent_node_is_not_waited_for() -> None:
    """Another node is asked, too, and is asked first from then on."""
    released, asked = threading.Event(), list[bytes]()

    def hang(peer: socket.socket, body: bytes) -> None:
        asked.append(body)
        released.wait()

    with raw_node(hang) as silent, raw_node(results("found")) as works:
        upstreams = Upstreams([Reader(node_at(url)) for url in (works, silent)])
        for _ in range(6):
            found = upstreams.attempt(lambda reader: reader.node.raw("x"))
            assert bytes(found) == b'"found"'
        released.set()
    assert len(asked) == 1


def test_what_takes_long_is_asked_of_one_node() -> None:
    """The response may come later than the time after which another node would be asked."""
    urls, asked = list[str](), threading.Event()

    def respond(peer: socket.socket, body: bytes) -> None:
        urls.append("asked")
        asked.wait(2 * race.SILENT_S)
        results("found")(peer, body)

    with raw_node(respond) as url, raw_node(respond) as other:
        upstreams = Upstreams([Reader(node_at(each)) for each in (url, other)])
        found = upstreams.attempt(lambda reader: reader.node.raw("x"), alone=True)
    assert bytes(found) == b'"found"'
    assert len(urls) == 1


REFUSAL = b'{"jsonrpc":"2.0","id":0,"error":{"code":-32603,"message":"not available"}}'


@pytest.mark.parametrize("turn", range(2))
def test_a_refusal_counts_if_all_nodes_were_asked(turn: int) -> None:
    """A node that can't be reached may have what the other lacks, so the caller gets an
    error."""
    with raw_node(sends(http(REFUSAL))) as lacks, raw_node(sends(b"")) as broken:
        urls = (lacks, broken) if turn else (broken, lacks)
        upstreams = Upstreams([Reader(node_at(url)) for url in urls], 0.1)
        with pytest.raises(UpstreamUnavailable):
            upstreams.attempt(lambda reader: reader.node.raw("x"))
        with pytest.raises(UpstreamRefused, match="not available"):
            upstreams.attempt(lambda reader: reader.node.raw("x"), final=(UpstreamRefused,))


def test_nodes_behind_one_gateway() -> None:
    """The nodes get numbers, as their paths are secret; a node that is given twice has one
    name."""
    urls = ("https://host/key-a", "https://host/key-b", "other:1")
    names = [
        reader.name for reader in Upstreams.from_urls(urls, "", LIMITS, 0.0).usable_readers()
    ]
    assert names == ["https://host:443", "https://host:443 (2)", "http://other:1"]
    with pytest.raises(ConfigurationError, match="twice"):
        Upstreams.from_urls((urls[0], "https://host:443/key-a"), "", LIMITS, 0.0)


def test_an_answer_to_another_request_refuses_a_node_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A proxy may just have been moved to another machine."""

    def misplaced(reader: Reader) -> None:
        raise MismatchedResponse(reader.name, "block is not that of height 5")

    monkeypatch.setattr(pool, "_MISPLACED_S", 0.05)
    with raw_node(results("found")) as url:
        upstreams = Upstreams([Reader(node_at(url))], 0.0)
        with pytest.raises(NoUpstream, match="height 5"):
            upstreams.attempt(misplaced)
        until(lambda: _is_usable(upstreams), "it is asked again")
        assert upstreams.attempt(lambda reader: bytes(reader.node.raw("x"))) == b'"found"'


def _is_usable(upstreams: Upstreams) -> bool:
    with suppress(NoUpstream):
        return bool(upstreams.usable_readers())
    return False


def test_a_refused_call_is_no_reason_to_wait() -> None:
    """All nodes refuse the call."""
    body = b'{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"Method not found"}}'
    with raw_node(sends(http(body))) as url:
        found = Upstreams([Reader(node_at(url))], PATIENCE)
        with pytest.raises(UpstreamRefused, match="Method not found"):
            found.attempt(lambda reader: reader.node.raw("x"))


def _take(throttle: Throttle, taken: list[int]) -> Callable[[], None]:
    def work() -> None:
        with throttle.admit(1, PATIENCE):
            taken.append(1)

    return work


def test_requests_in_flight_are_limited() -> None:
    """A waiting request is admitted when another ends."""
    throttle, taken = Throttle("node", 2, 0), list[int]()
    with throttle.admit(1, 0), throttle.admit(1, 0):
        with pytest.raises(Busy), throttle.admit(1, 0.01):
            raise AssertionError
        waiting = threading.Thread(target=_take(throttle, taken))
        waiting.start()
        assert taken == []
    waiting.join()
    assert taken == [1]


def test_overload_halves_what_is_in_flight() -> None:
    """The limit grows again with success."""
    throttle = Throttle("node", 4, 0)
    throttle.record_overload(0.0)
    throttle.record_overload(0.0)
    with throttle.admit(1, PATIENCE), pytest.raises(Busy), throttle.admit(1, 0.01):
        raise AssertionError
    for _ in range(20):
        throttle.record_success()
    with throttle.admit(1, 0), throttle.admit(1, 0):
        pass


def _admitted(throttle: Throttle, taken: list[str], *work: tuple[str, bool]) -> list[str]:
    """Return the order in which waiting work is admitted after the one in flight."""
    threads = []
    with throttle.admit(1, 0):
        for number, (name, gives_way) in enumerate(work):
            target = partial(_work, throttle, taken, name, gives_way)
            threads.append(threading.Thread(target=target))
            threads[-1].start()
            until(lambda number=number: len(throttle._line) > number, "it waits")  # type: ignore[misc]
    for thread in threads:
        thread.join()
    return taken


def _work(throttle: Throttle, taken: list[str], name: str, gives_way: bool) -> None:
    with ExitStack() as stack:
        if gives_way:
            stack.enter_context(in_background(threading.Event()))
        stack.enter_context(throttle.admit(1, PATIENCE))
        taken.append(name)


def test_the_longest_waiting_request_is_the_next() -> None:
    """Requests are admitted in their order, so that none waits forever."""
    work = [(str(number), False) for number in range(8)]
    assert _admitted(Throttle("node", 1, 0), [], *work) == [name for name, _ in work]


@pytest.mark.parametrize("rate", [0, 1000])
def test_background_work_gives_way(rate: float) -> None:
    """Later urgent requests, such as the head's, come first."""
    work = ("backfill", True), ("more", True), ("head", False)
    found = _admitted(Throttle("node", 1, rate), [], *work)
    assert found == ["head", "backfill", "more"]


def test_background_work_leaves_a_request_to_others() -> None:
    """A request for the head need not wait for a batch of the backfill."""
    throttle, ended = Throttle("node", 2, 0), threading.Event()
    with in_background(ended), throttle.admit(1, 0):
        ended.set()
        with pytest.raises(Busy), throttle.admit(1, 0):
            raise AssertionError
        with ThreadPoolExecutor(1) as other:
            # The other thread has its own context, so its request is urgent.
            other.submit(_take(throttle, [])).result(PATIENCE)


def test_urgent_calls_may_be_a_second_ahead_of_the_rate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Background work waits until the rate has caught up, and only as long as it is needed."""
    # The clock stands still, so the rate limit gives no new requests.
    monkeypatch.setattr(throttles, "time", SimpleNamespace(monotonic=lambda: 1000.0))
    throttle, ended = Throttle("node", 9, 10.0), threading.Event()
    for _ in range(2):
        with throttle.admit(9, 0):
            pass
    ended.set()
    with in_background(ended), pytest.raises(Busy), throttle.admit(1, PATIENCE):
        raise AssertionError
    with pytest.raises(Busy), throttle.admit(1, 0):
        raise AssertionError


def test_calls_beyond_the_rate_wait_or_fail() -> None:
    """Each call of a batch is counted."""
    throttle = Throttle("node", 9, 0.01)
    with throttle.admit(10, 0):
        pass
    with pytest.raises(Busy), throttle.admit(1, 1):
        raise AssertionError


def test_errors_are_of_one_root() -> None:
    """Callers can catch the errors that they can handle."""
    for kind in (UpstreamMismatch, UpstreamRefused, UpstreamUnavailable):
        assert issubclass(kind, UpstreamError)


def _growth(url: str, limits: UpstreamLimits, said: str) -> int:
    """Return the maximum memory in bytes that a refused response to one call takes."""
    node = node_at(url, limits)
    tracemalloc.start()
    try:
        with pytest.raises(UpstreamUnavailable, match=said):
            node.raw("status")
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        node.close()


def _endless(header: bytes, start: bytes, unit: bytes) -> Respond:
    def respond(peer: socket.socket, body: bytes) -> None:
        peer.sendall(b"HTTP/1.1 200 OK\r\n" + header + b"\r\n" + start)
        while True:
            peer.sendall(unit * 8_000)

    return respond


MEGABYTE = 1_000_000
GZIP = b"Content-Encoding: gzip\r\n"
BOMB = gzip.compress(b"{" + b" " * (100 * MEGABYTE) + b"}")


@pytest.mark.parametrize(
    ("respond", "said"),
    [
        (sends(http(BOMB, Content_Encoding="gzip")), "--upstream-max-bytes"),
        (_endless(b"", b"{", b" "), "--upstream-max-bytes"),
        # Bytes that decode to nothing: empty blocks of deflate, and empty gzip files.
        (
            _endless(GZIP, gzip.compress(b"")[:10], b"\0\0\0\xff\xff"),
            "--upstream-max-bytes",
        ),
        (_endless(GZIP, b"", gzip.compress(b"")), "at most 10000 gzip members"),
        # One wide character makes each character of a str take four bytes.
        (
            sends(http(b'{"id":"\xf0\x9f\x98\x80' + b"a" * 7 * MEGABYTE)),
            "expected a JSON-RPC response",
        ),
    ],
    ids=["gzip", "endless", "empty blocks", "empty members", "wide characters"],
)
def test_refusing_a_large_response_takes_at_most_twice_the_limit(
    respond: Respond, said: str
) -> None:
    limit = 8 * MEGABYTE
    with raw_node(respond) as url:
        assert _growth(url, replace(PATIENT, max_bytes=limit), said) < 2 * limit


@pytest.mark.parametrize("cut", [1, 9, 20, 1_000])
def test_a_compressed_response_may_come_in_members_and_must_end(cut: int) -> None:
    status = b'{"jsonrpc":"2.0","id":0,"result":' + b" " * 100_000 + b'"a"}'
    whole = b"".join(map(gzip.compress, (status[:cut], status[cut:])))
    patient = replace(PATIENT, max_bytes=200_000)
    with raw_node(sends(http(whole, Content_Encoding="gzip"))) as url:
        assert bytes(node_at(url, patient).raw("status")) == b'"a"'
    cut_off = sends(http(whole[:-9], Content_Encoding="gzip"))
    with raw_node(cut_off) as url, pytest.raises(UpstreamUnavailable, match="is truncated"):
        node_at(url, patient).raw("status")


@pytest.mark.parametrize("coding", ["gzip", "GZIP", "x-gzip", "gzip, identity"])
def test_gzip_has_several_names(coding: str) -> None:
    body = gzip.compress(b'{"jsonrpc":"2.0","id":0,"result":"a"}')
    with raw_node(sends(http(body, Content_Encoding=coding))) as url:
        assert bytes(node_at(url).raw("status")) == b'"a"'


@pytest.mark.parametrize("coding", ["", "identity", ","])
def test_a_body_may_say_that_it_is_not_encoded(coding: str) -> None:
    plain = b'{"jsonrpc":"2.0","id":0,"result":"a"}'
    with raw_node(sends(http(plain, Content_Encoding=coding))) as url:
        assert bytes(node_at(url).raw("status")) == b'"a"'


def test_an_overloaded_node_may_compress_nothing() -> None:
    busy = b"HTTP/1.1 503 Busy\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n"
    with raw_node(sends(busy)) as url, pytest.raises(UpstreamUnavailable, match="503"):
        node_at(url).raw("status")


@pytest.mark.parametrize("coding", ["br", "gzip, gzip"])
def test_an_encoding_that_was_not_asked_for_is_refused(coding: str) -> None:
    encoded = sends(http(b"{}", Content_Encoding=coding))
    with (
        raw_node(encoded) as url,
        pytest.raises(UpstreamUnavailable, match=f"expected gzip, got {coding}"),
    ):
        node_at(url).raw("status")


def test_calls_are_asked_one_by_one_where_batches_are_forbidden() -> None:
    """Some gateways answer a batch with 403 and a text."""

    def respond(peer: socket.socket, body: bytes) -> None:
        if body.startswith(b"["):
            page = http(b"no batches here", "403 Forbidden", Content_Type="text/plain")
            peer.sendall(page)
        else:
            results("a")(peer, body)

    with raw_node(respond) as url:
        answers = node_at(url).ask([call("block", height=height) for height in range(7)])
        assert [bytes(each) for each in answers if isinstance(each, Raw)] == [b'"a"'] * 7


@pytest.mark.parametrize("status", ["301 Moved Permanently", "307 Temporary Redirect"])
def test_a_redirect_is_told_with_its_target(status: str) -> None:
    moved = sends(http(b"", status, Location="https://new.example/rpc"))
    said = "a redirect to https://new.example/rpc; name that URL instead"
    with raw_node(moved) as url, pytest.raises(UpstreamUnavailable, match=said):
        node_at(url).raw("status")


def test_the_pause_that_any_refusal_asks_for_is_kept() -> None:
    busy = sends(http(b"come back", "403 Forbidden", Retry_After="7"))
    with raw_node(busy) as url, pytest.raises(UpstreamUnavailable) as caught:
        node_at(url).raw("status")
    assert caught.value.retry_after == 7


def test_a_failure_that_nobody_thought_of_leads_to_the_next_node() -> None:
    urls = ["http://127.0.0.1:1", "http://127.0.0.1:2"]
    nodes = Upstreams.from_urls(urls, "comet-0.38", PATIENT, patience=0.0)
    bad, good = (reader.name for reader in nodes.usable_readers())

    def action(reader: Reader) -> str:
        # Converting a value of 5 MB of digits raises ValueError.
        return reader.name if reader.name == good else str(int("9" * 5_000))

    assert bad != good
    assert [nodes.attempt(action) for _ in range(8)] == [good] * 8
    with pytest.raises(UpstreamUnavailable, match=r"can't be decoded \(ValueError\)"):
        nodes.attempt(lambda reader: int("9" * 5_000))
    nodes.close()


def test_a_closed_pool_is_not_a_failure_of_its_node(caplog: pytest.LogCaptureFixture) -> None:
    nodes = Upstreams.from_urls(["http://127.0.0.1:1"], "comet-0.38", PATIENT, patience=0.0)
    nodes.close()
    with pytest.raises(UpstreamUnavailable, match="this process is stopping"):
        nodes.attempt(lambda reader: reader.status())
    assert not caplog.records
