"""Tests that a long batch under gevent does not delay other clients."""

from __future__ import annotations

import json
import select
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from ..helpers.http import connection_to
from .servers import serving

CALLS = 10_000
# One request may arrive before the batch begins, and one may be served while it is read.
BY_CHANCE = 2


def _post(connection: HTTPConnection, body: Any) -> None:
    headers = {"Content-Type": "application/json"}
    connection.request("POST", "/", json.dumps(body).encode(), headers)


def test_others_are_answered_before_a_long_batch_ends(tmp_path: Path) -> None:
    # Nothing is cached, so that each call takes a while.
    call = {"jsonrpc": "2.0", "id": 1, "method": "consensus_state"}
    settings: dict[str, Any] = {"max_batch": CALLS, "cache_bytes": 0}
    with serving("pywsgi", tmp_path / "chain.db", **settings) as server:
        batch, other = (connection_to(server.url) for _ in range(2))
        # The very first call starts the chain.
        _post(other, call)
        assert "result" in json.load(other.getresponse())
        _post(batch, [call] * CALLS)
        assert batch.sock is not None
        answered = 0
        while not select.select([batch.sock], [], [], 0)[0]:
            _post(other, {**call, "method": "health"})
            other.getresponse().read()
            answered += 1
        found = json.load(batch.getresponse())
        batch.close()
        other.close()

    assert len(found) == CALLS
    assert all("result" in each for each in found)
    assert answered > BY_CHANCE, answered
