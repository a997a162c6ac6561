"""Tests of a cassette, which records a node's responses, and replays them without the node."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from flask_noderpc.testing import run_node
from flask_noderpc.testing.cassette import NotRecorded, play
from tests.helpers.until import PATIENCE


def fetch(url: str, body: Any = None) -> Any:
    """Return the JSON of a response, also of an error."""
    data = None if body is None else json.dumps(body).encode()
    try:
        with urlopen(Request(url, data), timeout=PATIENCE) as response:
            return json.loads(response.read())
    except HTTPError as error:
        return json.loads(error.read())


def call(method: str, number: int = 1, **params: str) -> dict[str, Any]:
    """Return a call of JSON-RPC."""
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def asked(url: str, then: Callable[[], object]) -> list[Any]:
    """Return the responses to a test's requests, some of which come before the chain grows."""
    found = [fetch(url, call("status"))]
    then()
    calls = [call("block", 2, height="1"), call("block", 3, height="99")]
    return [
        *found,
        fetch(url, call("status", 7)),
        fetch(url, calls),
        fetch(f"{url}/block?height=1"),
        fetch(f"{url}/block?height=no"),
    ]


def test_what_was_recorded_is_replayed(tmp_path: Path) -> None:
    """Responses are replayed in order, with the IDs of the new calls, without the node."""
    file = tmp_path / "node.json"
    with run_node(dialect="comet-0.38") as node:
        node.produce()
        with play(file, node.url) as url:
            recorded = asked(url, node.produce)
        heights = [each["result"]["sync_info"]["latest_block_height"] for each in recorded[:2]]
        assert heights == ["1", "2"]
        assert recorded[2][0]["result"] == recorded[3]["result"]
        assert "error" in recorded[2][1]
        assert "error" in recorded[4]
    with play(file, node.url) as url:
        assert asked(url, lambda: None) == recorded
        # The last response is repeated.
        assert fetch(url, call("status", 7)) == recorded[1]


def test_a_request_that_is_missing(tmp_path: Path) -> None:
    """The client gets an error, and the test fails with the request's name."""
    file = tmp_path / "node.json"
    file.write_text("{}")

    def ask() -> None:
        with play(file) as url:
            assert "not recorded" in fetch(url, call("block", height="5"))["error"]["data"]
            fetch(f"{url}/health")

    with pytest.raises(NotRecorded, match="remove the file to record it again") as caught:
        ask()
    assert '{"method": "block", "params": {"height": "5"}}' in str(caught.value)
    assert "GET /health" in str(caught.value)
    with pytest.raises(NotRecorded, match="does not exist"), play(tmp_path / "other.json"):
        pass


def test_the_fixture_serves_a_file_beside_the_test(
    noderpc_cassette: Callable[..., str], tmp_path: Path
) -> None:
    file = tmp_path / "node.json"
    file.write_text('{"GET /health": [{"status": 200, "body": {"result": {}}}]}')
    assert fetch(noderpc_cassette(str(file)) + "/health") == {"result": {}}
