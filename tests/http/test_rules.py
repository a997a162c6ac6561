"""Tests of HTTP rules as functions of plain values, and of their order in an adapter."""

from __future__ import annotations

from http import HTTPStatus
from io import BytesIO
from typing import Any

import pytest

from flask_noderpc import MemoryChain
from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.errors import BodyEncoded, BodyTooLarge, OriginRefused, ParseError
from flask_noderpc.ethereum.rpc.admission import admission
from flask_noderpc.jsonrpc.reply import Reply
from flask_noderpc.testing import make_chain
from flask_noderpc.testing.node import app_for
from flask_noderpc.web.rules.admit import (
    NODE_ADMISSIONS,
    Admitted,
    Policy,
    Refusal,
    admit,
    admit_host,
)
from flask_noderpc.web.rules.head import Head
from flask_noderpc.web.rules.origin import Cors, OriginPolicy
from flask_noderpc.web.rules.render import render

POLICY = Policy(
    OriginPolicy(readers=("https://viewer.example",), hosts=("node.example",)),
    Cors(("https://viewer.example",), ()),
    max_body=100,
    server_time=True,
    admissions={**NODE_ADMISSIONS, "evm": admission(50)},
)
FOREIGN = {"HTTP_ORIGIN": "https://evil.example"}


def head(endpoint: str, method: str = "POST", **options: Any) -> Head:
    values = {"host": "node.example", "address": "192.0.2.1", "fields": {}, **options}
    return Head(endpoint, method, **values)


def test_a_program_is_admitted_with_the_limit_of_its_body() -> None:
    found = admit(POLICY, head("rpc", content_length=100, max_body=80, fields={}))
    assert isinstance(found, Refusal)
    found = admit(POLICY, head("rpc", content_length=80, max_body=80))
    assert isinstance(found, Admitted)
    assert (found.max_body, found.permissions.client) == (80, "192.0.2.1")
    assert found.permissions[:3] == (True, True, False)


@pytest.mark.parametrize(
    ("refused", "error"),
    [
        (head("rpc", content_length=101), BodyTooLarge),
        (head("rpc", fields={"HTTP_CONTENT_ENCODING": "gzip"}), BodyEncoded),
        (head("rpc", content_length=9, fields=FOREIGN), OriginRefused),
        (head("status", "GET", fields=FOREIGN), OriginRefused),
        (head("evm", mimetype="application/json", max_body=9, content_length=10), ParseError),
    ],
)
def test_a_request_is_refused_by_its_head(refused: Head, error: type[Exception]) -> None:
    found = admit(POLICY, refused)
    assert isinstance(found, Refusal)
    assert isinstance(found.error, error)


@pytest.mark.parametrize(
    ("refused", "status"),
    [
        (head("evm", "PUT"), 405),
        (head("evm", content_length=51), 413),
        (head("evm", mimetype="text/plain"), 415),
        (head("websocket", "GET", fields=FOREIGN), 403),
    ],
)
def test_a_request_is_refused_in_plain_text(refused: Head, status: int) -> None:
    found = admit(POLICY, refused)
    assert isinstance(found, Refusal)
    assert found.response is not None
    assert found.response.status == status


def test_a_host_that_is_not_listed_is_refused() -> None:
    assert admit_host(POLICY, head("rpc")) is None
    refusal = admit_host(POLICY, head("rpc", host="evil.example"))
    assert refusal is not None
    assert refusal.response is not None
    assert refusal.response.status == 403


@pytest.mark.parametrize("sent", ['"abc"', 'W/"abc"', '"x", W/"abc"', "*", "abc"])
def test_a_known_result_is_304_with_the_headers_of_every_response(sent: str) -> None:
    fields = {"HTTP_IF_NONE_MATCH": sent, "HTTP_ORIGIN": "https://viewer.example"}
    reply = Reply(HTTPStatus.OK, b"{}", cacheable=True, etag="abc")
    found = admit(POLICY, head("block", "GET", fields=fields))
    assert isinstance(found, Admitted)
    response = render(found, reply, 12)
    assert (response.status, response.body) == (304, b"")
    assert response.headers == [
        ("Cache-Control", "public, max-age=86400"),
        ("ETag", '"abc"'),
        ("X-Server-Time", "12"),
        ("Vary", "Origin, Sec-Fetch-Site, Referer"),
        ("Access-Control-Allow-Origin", "https://viewer.example"),
        (
            "Access-Control-Expose-Headers",
            "ETag, Retry-After, X-Cosmos-Block-Height, X-NodeRPC-Coverage,"
            " X-NodeRPC-Provenance, X-Server-Time",
        ),
    ]


@pytest.mark.parametrize("sent", ['"abcd"', "", 'W/""', '"ab", "bc"'])
def test_another_result_is_sent_whole(sent: str) -> None:
    found = admit(POLICY, head("block", "GET", fields={"HTTP_IF_NONE_MATCH": sent}))
    assert isinstance(found, Admitted)
    response = render(found, Reply(HTTPStatus.OK, b"{}", etag="abc"), 12)
    assert (response.status, response.body) == (200, b"{}")
    assert ("Content-Length", "2") in response.headers


class Unread(BytesIO):
    """A body that must not be read."""

    def read(self, size: int | None = -1) -> bytes:
        raise AssertionError("the body is read")

    def readinto(self, buffer: object, /) -> int:
        raise AssertionError("the body is read")


def test_a_refused_origin_is_answered_before_its_body_is_read() -> None:
    chain = make_chain()
    app = app_for(
        ChainBackend(MemoryChain(chain.genesis, chain.blocks, state=chain.state)),
        read_origins=(),
    )
    headers = {"Origin": "https://evil.example", "Expect": "100-continue"}
    answer = app.test_client().post("/", input_stream=Unread(b"{}"), headers=headers)
    assert answer.status_code == 403
    assert "NODERPC_READ_ORIGINS" in answer.text
