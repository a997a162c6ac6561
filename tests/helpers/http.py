"""Speaking to a node: over Flask's test client, or over a real socket."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from flask.testing import FlaskClient


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body; NaN and the like are no JSON."""
        return json.loads(self.body, parse_constant=_no_json)


def _no_json(text: str) -> None:
    raise AssertionError(f"{text} is no JSON")


def get(url: str, path: str, params: dict[str, str] | None = None) -> Answer:
    """GET over a socket."""
    query = "?" + urlencode(params, quote_via=quote) if params else ""
    return _sent(urllib.request.Request(url + path + query))


def post(url: str, method: str, params: object = None, request_id: object = 1) -> Answer:
    """A JSON-RPC call over a socket."""
    call = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
    return _sent(urllib.request.Request(url, json.dumps(call).encode(), method="POST"))


def _sent(request: urllib.request.Request) -> Answer:
    try:
        with urllib.request.urlopen(request, timeout=120) as response:
            return Answer(response.status, dict(response.headers), response.read())
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, dict(error.headers), error.read())


def sent(client: FlaskClient, body: bytes | str, path: str = "/", **options: Any) -> Answer:
    """The answer to a POST of this body."""
    response = client.post(path, data=body, **options)
    return Answer(response.status_code, dict(response.headers), response.data)


def called(client: FlaskClient, method: str, params: object = None, path: str = "/") -> Any:
    """The reply to a call: a dictionary with ``result`` or ``error``."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer = sent(client, json.dumps(body), path)
    assert answer.status == 200, answer.body
    return answer.json


def got(client: FlaskClient, path: str) -> Answer:
    """The answer to a GET."""
    response = client.get(path)
    return Answer(response.status_code, dict(response.headers), response.data)
