"""A proxy between a forked chain and the other chain's node, which counts, changes or refuses
calls."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.request import Request, urlopen

import flask

from flask_noderpc.testing.node import serve
from tests.helpers.until import PATIENCE


def posted(url: str, method: str, *params: Any) -> Any:
    """Return the response of a node to a call."""
    call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    headers = {"Content-Type": "application/json"}
    with urlopen(Request(url, json.dumps(call).encode(), headers), timeout=PATIENCE) as found:
        return json.load(found)


def asked(url: str, method: str, *params: Any) -> Any:
    """Return the result of a call; fail if it is an error."""
    response = posted(url, method, *params)
    assert "error" not in response, response
    return response["result"]


class Between:
    """Forwards each call to a node."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.calls: Counter[str] = Counter()
        """How often each call was made, as JSON of its method and parameters."""
        self.change: Callable[[str, Any], Any] = lambda method, result: result
        """Function that returns the result to send."""
        self.refused: tuple[str, ...] = ()
        """Methods that the node does not offer."""

    def answer(self) -> dict[str, Any]:
        """Respond to the call in the request."""
        call = flask.request.get_json()
        method, params = call["method"], call["params"]
        self.calls[json.dumps([method, params])] += 1
        if method in self.refused:
            text = f"the method {method} does not exist/is not available"
            return {
                "jsonrpc": "2.0",
                "id": call["id"],
                "error": {"code": -32601, "message": text},
            }
        response: dict[str, Any] = posted(self._url, method, *params)
        if "result" in response:
            response["result"] = self.change(method, response["result"])
        return response


@contextmanager
def between(url: str) -> Iterator[tuple[Between, str]]:
    """Run a proxy for the node at a URL; yield it with its URL."""
    proxy, app = Between(url), flask.Flask(__name__)
    app.add_url_rule("/", view_func=proxy.answer, methods=["POST"])
    with serve(app) as at:
        yield proxy, at
