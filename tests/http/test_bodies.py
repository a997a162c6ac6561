"""Tests of POST bodies that are not JSON-RPC, too large, or inconsistent with their headers."""

from __future__ import annotations

import gzip
import json
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from flask.testing import FlaskClient

from flask_noderpc.testing.node import app_for, serve
from tests.helpers.until import PATIENCE

from ..helpers.http import HttpResponse, client_post, request
from .chain import PeeredBackend

LIMIT = 2000
HEALTH = b'{"jsonrpc":"2.0","id":1,"method":"health"}'


def assert_refused(answer: HttpResponse, status: int, code: int) -> None:
    assert answer.status == status
    assert answer.headers["Content-Type"] == "application/json"
    reply = answer.json
    assert reply.keys() == {"jsonrpc", "id", "error"}
    assert reply["error"]["code"] == code
    assert isinstance(reply["error"]["data"], str)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"hello",
        b"NaN",
        b"[NaN]",
        b'{"id":NaN,"method":"health"}',
        b'{"id":1,"method":"block","params":{"height":Infinity}}',
        b"[" * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 100_000,
        b'{"id":1,"method":"health","params":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"id":1,"method":"health","more":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        HEALTH[:-1],
        HEALTH + b" x",
        HEALTH + HEALTH,
        b"\xef\xbb\xbf" + HEALTH,
        b"\xff\xfe" + HEALTH.decode().encode("utf-16-le"),
        b'{"id":1,"method":"health\xe2\x82"}',
        b'{"id":"\xff","method":"health"}',
        b'{"id":1,"method":"health","params":"\xed\xa0\x80"}',
        b'{"id":"\\ud800","method":"health"}',
        b'{"id":1,"method":"\\ud800"}',
        b'{"id":1,"method":"block","params":{"height":"\\udc00"}}',
        b'{"id":1,"method":"he\nalth"}',
        b'{"id":"\\x","method":"health"}',
        b'{"id":01,"method":"health"}',
        b'{"id":1..2,"method":"health"}',
        b"{'id':1,'method':'health'}",
        b'{"id":1,"method":"health",}',
        b'[{"id":1,"method":"health"},]',
    ],
    ids=lambda body: repr(body[:40]),
)
def test_malformed_json_is_a_parse_error(client: FlaskClient, body: bytes) -> None:
    answer = client_post(client, body)

    assert_refused(answer, 400, -32700)
    assert answer.json["id"] is None
    assert answer.json["error"]["message"] == "Parse error. Invalid JSON"


@pytest.mark.parametrize(
    "body", [b"[]", b"{}", b"null", b"1", b"1e400", b'"health"', b"true", b'{"id":1}']
)
def test_json_that_is_no_request_is_an_invalid_request(
    client: FlaskClient, body: bytes
) -> None:
    assert_refused(client_post(client, body), 400, -32600)


def test_a_batch_of_something_else_is_answered_with_its_error(client: FlaskClient) -> None:
    assert_refused(client_post(client, b"[1]"), 200, -32600)


def test_of_a_key_that_is_there_twice_the_last_counts(client: FlaskClient) -> None:
    body = b'{"id":1,"id":2,"method":"nosuch","method":"health"}'

    assert client_post(client, body).json == {"jsonrpc": "2.0", "id": 2, "result": {}}


def test_blanks_around_a_request_are_nothing(client: FlaskClient) -> None:
    assert client_post(client, b"\r\n\t " + HEALTH + b"\n").json["result"] == {}


@pytest.mark.parametrize("version", [b"", b'"jsonrpc":"1.0",', b'"jsonrpc":2,'])
def test_the_version_is_not_looked_at(client: FlaskClient, version: bytes) -> None:
    body = b"{" + version + b'"id":1,"method":"health"}'

    assert client_post(client, body).json["result"] == {}


@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "application/json; charset=utf-16",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "nonsense",
        "",
    ],
)
def test_the_content_type_is_not_looked_at(client: FlaskClient, content_type: str) -> None:
    answer = client_post(client, HEALTH, content_type=content_type)

    assert (answer.status, answer.json["result"]) == (200, {})


@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate", "gzip, identity", "nonsense"])
def test_a_content_encoding_is_refused_with_415(client: FlaskClient, encoding: str) -> None:
    answer = client_post(client, gzip.compress(HEALTH), headers={"Content-Encoding": encoding})

    assert_refused(answer, 415, -32600)
    assert f"Content-Encoding: {encoding}" in answer.json["error"]["data"]


@pytest.mark.parametrize("encoding", ["identity", "Identity"])
def test_no_encoding_may_be_named(client: FlaskClient, encoding: str) -> None:
    answer = client_post(client, HEALTH, headers={"Content-Encoding": encoding})

    assert answer.json["result"] == {}


# The tests below need a real socket.


@pytest.fixture(scope="module")
def address(backend: PeeredBackend) -> Iterator[tuple[str, int]]:
    with serve(app_for(backend, max_body_bytes=LIMIT)) as url:
        parts = urlsplit(url)
        yield str(parts.hostname), int(parts.port or 0)


def padded(size: int) -> bytes:
    return HEALTH + b" " * (size - len(HEALTH))


def post(address: tuple[str, int], body: bytes, *, chunked: bool = False) -> HttpResponse:
    host, port = address
    # Without a length, http.client sends an iterable in chunks.
    content = iter([body[:100], body[100:]]) if chunked else body
    return request(f"http://{host}:{port}/", content)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_of_the_limit_is_read(address: tuple[str, int], chunked: bool) -> None:
    answer = post(address, padded(LIMIT), chunked=chunked)

    assert (answer.status, answer.json["result"]) == (200, {})


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_over_the_limit_is_refused_and_names_the_setting(
    address: tuple[str, int], chunked: bool
) -> None:
    answer = post(address, padded(LIMIT + 1), chunked=chunked)

    assert_refused(answer, 413, -32600)
    assert str(LIMIT) in answer.json["error"]["data"]
    assert "NODERPC_MAX_BODY_BYTES" in answer.json["error"]["data"]


def raw(address: tuple[str, int], head: str, body: bytes = b"") -> tuple[int, bytes]:
    """Return the response to bytes that no real client sends."""
    with socket.create_connection(address, timeout=PATIENCE) as peer:
        peer.sendall(f"POST / HTTP/1.0\r\nHost: localhost\r\n{head}\r\n\r\n".encode() + body)
        peer.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: peer.recv(65536), b""))
    top, _, content = answer.partition(b"\r\n\r\n")
    return int(top.split()[1]), content


@pytest.mark.parametrize(
    ("head", "status"),
    [
        # The announced length alone is enough to refuse the body.
        ("Content-Length: 1000000000000", 413),
        # The length is larger than the body.
        (f"Content-Length: {len(HEALTH) + 10}", 400),
        # The length is smaller than the body, and the rest is an incomplete request.
        ("Content-Length: 10", 400),
        ("Content-Length: 0", 400),
        ("Content-Length: -5", 400),
        ("Content-Length: many", 400),
    ],
)
def test_a_wrong_content_length_is_refused(
    address: tuple[str, int], head: str, status: int
) -> None:
    found, body = raw(address, head, HEALTH)

    assert found == status
    assert json.loads(body)["error"]["code"] in (-32600, -32700)


def test_chunks_that_break_off_are_refused(address: tuple[str, int]) -> None:
    found, body = raw(address, "Transfer-Encoding: chunked", b'5\r\n{"id\r\nzz\r\n')

    assert found == 400
    assert json.loads(body)["error"]["code"] in (-32600, -32700)
