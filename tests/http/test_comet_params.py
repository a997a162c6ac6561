"""Tests of the errors for CometBFT's parameters, over HTTP and the websocket."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest
from flask.testing import FlaskClient

from flask_noderpc.testing.node import app_for, run_node
from flask_noderpc.wire.comet.v038 import COMET_038
from flask_noderpc.wire.dialects import DOCUMENT
from tests.helpers.websocket import WebSocketClient

from ..helpers.http import client_get
from . import chain
from .test_uri_matrix import MATRIX, OURS

STRICT = replace(DOCUMENT, name="strict", params=COMET_038.params)


@pytest.fixture(scope="module")
def client(backend: chain.PeeredBackend) -> FlaskClient:
    return app_for(backend, dialect=STRICT).test_client()


def refused() -> Iterator[tuple[str, str]]:
    """Yield GETs of our routes whose parameters CometBFT 0.38 refuses, with its error."""
    target = ""
    row = re.compile(r' +[\d,]*\b38\b.* 500 .* :: (\{.*"code":-32602.*)')
    for line in MATRIX.read_text(encoding="utf-8").splitlines():
        if line.startswith(">> GET "):
            target = line.removeprefix(">> GET ").strip().removesuffix(" None")
        elif (found := row.match(line)) and urlsplit(target).path.removeprefix("/") in OURS:
            yield target, json.loads(found[1])["error"]["data"]


REFUSED = list(refused())


def test_the_matrix_has_such_rows() -> None:
    assert len(REFUSED) == 25


@pytest.mark.parametrize(("target", "text"), REFUSED)
def test_a_get_is_refused_with_the_text_of_a_node(
    client: FlaskClient, target: str, text: str
) -> None:
    error = client_get(client, target).json["error"]

    assert error == {"code": -32602, "message": "Invalid params", "data": text}


@pytest.mark.parametrize(
    "target",
    [
        '/block?height="5"',
        "/block?height=",
        "/block?height=null",
        "/block?bogus=1&height=5",
        "/block?height=5&height=abc",
        '/validators?page="1"',
        "/abci_query?path=0x2f73746f7265&data=0x",
        '/abci_query?data="na\\"me"',
        '/block_search?query="block.height=5"&per_page=1',
        '/events?filter={"query":"tm.event=\'Tx\'"}',
    ],
)
def test_a_get_is_taken(client: FlaskClient, target: str) -> None:
    assert client_get(client, target).status == 200


def posted(client: FlaskClient, call: dict[str, Any]) -> Any:
    return client.post("/", json={"jsonrpc": "2.0", "id": 1, **call}).get_json()


@pytest.mark.parametrize("call", [{}, {"params": None}, {"params": {}}, {"params": [None]}])
def test_parameters_may_be_left_out(client: FlaskClient, call: dict[str, Any]) -> None:
    # CometBFT panics without the member params; here it means no parameters.
    assert "result" in posted(client, {"method": "block", **call})


def test_a_post_is_refused_with_the_text_of_a_node(client: FlaskClient) -> None:
    answer = posted(client, {"method": "validators", "params": ["5"]})

    assert answer["error"] == {
        "code": -32602,
        "message": "Invalid params",
        "data": "error converting json params to arguments: expected 3 parameters"
        " ([height page per_page]), got 1 ([[34 53 34]])",
    }


def test_a_subscription_is_read_by_the_same_rules() -> None:
    with run_node(dialect=STRICT) as node:
        websocket = WebSocketClient(node.url)
        try:
            websocket.call("subscribe", {"query": 1})
            websocket.call("subscribe", {})
            wrong, empty = (json.loads(websocket.read() or "") for _ in range(2))
        finally:
            websocket.close()

    assert wrong["error"]["data"] == (
        "error converting json params to arguments: json: cannot unmarshal number into"
        " Go value of type string"
    )
    # CometBFT reads a missing query as an empty string, which is not a query.
    assert empty["error"]["data"].startswith("failed to parse query: ")
