"""HTTP requests over a socket, or through Flask's test client."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPSConnection
from ssl import SSLContext
from typing import Any, Self
from urllib.parse import quote, urlencode, urlsplit

from flask.testing import FlaskClient

from .until import PATIENCE

JSON = {"Content-Type": "application/json"}


class HttpStatusError(OSError):
    """An error status, although a result was expected."""


@dataclass(frozen=True)
class HttpResponse:
    """Status, headers and body."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode()

    @property
    def json(self) -> Any:
        """The body as JSON, which has no NaN and no Infinity."""
        return json.loads(self.body, parse_constant=_refuse_constant)

    @property
    def result(self) -> Any:
        """The result of a call; raise if it failed."""
        reply = self.raise_for_status().json
        assert "result" in reply, reply
        return reply["result"]

    def raise_for_status(self) -> Self:
        """Return this response; raise :exc:`HttpStatusError` for an error status."""
        if self.status >= 400:
            raise HttpStatusError(f"{self.status}: {self.text}")
        return self


def _refuse_constant(text: str) -> None:
    raise AssertionError(f"{text} is not JSON")


def connection_to(
    url: str, *, source: str = "", tls: SSLContext | None = None, timeout: float = PATIENCE
) -> HTTPConnection:
    """Return a connection to the host of a URL, from the address ``source``."""
    parts = urlsplit(url)
    bind = (source, 0) if source else None
    if parts.scheme == "https":
        return HTTPSConnection(parts.netloc, timeout=timeout, source_address=bind, context=tls)
    return HTTPConnection(parts.netloc, timeout=timeout, source_address=bind)


def request(
    url: str,
    body: bytes | Iterable[bytes] | None = None,
    headers: Mapping[str, str] | None = None,
    **options: Any,
) -> HttpResponse:
    """GET a URL, or POST a body to it, over a new connection."""
    target = url.partition("://")[2].partition("/")[2]
    method = "GET" if body is None else "POST"
    with closing(connection_to(url, **options)) as connection:
        is_chunked = body is not None and not isinstance(body, bytes)
        connection.request(
            method, f"/{target}", body, dict(headers or {}), encode_chunked=is_chunked
        )
        response = connection.getresponse()
        return HttpResponse(response.status, dict(response.headers), response.read())


def get(url: str, path: str = "", params: dict[str, str] | None = None) -> HttpResponse:
    """GET a path of a node."""
    query = "?" + urlencode(params, quote_via=quote) if params else ""
    return request(url + path + query)


def call(
    url: str, method: str, params: object = None, request_id: object = 1, **options: Any
) -> HttpResponse:
    """POST a JSON-RPC call to a URL."""
    body = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
    return request(url, json.dumps(body).encode(), JSON, **options)


def client_get(client: FlaskClient, path: str) -> HttpResponse:
    """GET a path through Flask's test client."""
    response = client.get(path)
    return HttpResponse(response.status_code, dict(response.headers), response.data)


def client_post(
    client: FlaskClient, body: bytes | str, path: str = "/", **options: Any
) -> HttpResponse:
    """POST a body through Flask's test client."""
    response = client.post(path, data=body, **options)
    return HttpResponse(response.status_code, dict(response.headers), response.data)


def client_call(
    client: FlaskClient, method: str, params: object = None, path: str = "/"
) -> Any:
    """Return the response to a JSON-RPC call through Flask's test client."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer = client_post(client, json.dumps(body), path)
    assert answer.status == 200, answer.body
    return answer.json
