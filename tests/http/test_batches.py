"""Tests of batches: several calls in one body."""

from __future__ import annotations

import json
from typing import Any

import pytest
from flask.testing import FlaskClient

from flask_noderpc.jsonrpc import context
from flask_noderpc.testing.node import app_for

from ..helpers.http import client_call, client_post
from .chain import TX, PeeredBackend


def health(request_id: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": "health"}


NOTIFICATION = {"jsonrpc": "2.0", "method": "health"}


def replies(client: FlaskClient, *calls: object) -> Any:
    answer = client_post(client, json.dumps(calls))
    assert answer.status == 200, answer.body
    return answer.json


def test_replies_come_in_the_order_of_the_calls(client: FlaskClient) -> None:
    found = replies(client, *(health(request_id) for request_id in range(10)))

    assert [reply["id"] for reply in found] == list(range(10))


def test_a_batch_of_one_is_answered_bare(client: FlaskClient) -> None:
    # CometBFT responds in this way, and CosmJS relies on it.
    assert replies(client, health(7)) == {"jsonrpc": "2.0", "id": 7, "result": {}}


def test_the_limit_is_the_last_size_that_is_taken(client: FlaskClient) -> None:
    assert len(replies(client, *[health(1)] * 10)) == 10


def test_one_call_more_than_the_limit_refuses_them_all(client: FlaskClient) -> None:
    answer = client_post(client, json.dumps([health(1)] * 11))

    error = answer.json["error"]
    assert (answer.status, error["code"]) == (400, -32600)
    assert "maximum (10)" in error["data"]
    assert "NODERPC_MAX_BATCH" in error["data"]


def test_a_batch_of_notifications_is_answered_with_nothing(client: FlaskClient) -> None:
    answer = client_post(client, json.dumps([NOTIFICATION] * 3))

    assert (answer.status, answer.body) == (200, b"")
    assert "Content-Type" not in answer.headers


def test_a_notification_among_calls_has_no_reply(client: FlaskClient) -> None:
    found = replies(client, health(1), NOTIFICATION, health(2), health(None), health(3))

    assert [reply["id"] for reply in found] == [1, 2, 3]


def test_a_notification_is_not_executed(client: FlaskClient) -> None:
    params = {"tx": "bm90aWZpZWQ9MQ=="}
    before = client_call(client, "num_unconfirmed_txs")["result"]

    answer = client_post(client, json.dumps({"method": "broadcast_tx_sync", "params": params}))

    assert (answer.status, answer.body) == (200, b"")
    assert client_call(client, "num_unconfirmed_txs")["result"] == before


def test_each_call_fails_alone(client: FlaskClient) -> None:
    calls = [
        health(1),
        5,
        health(True),
        {"id": 2, "method": 5},
        {"id": 3, "method": "nosuch"},
        {"id": 4, "method": "block", "params": {"height": "x"}},
        {"id": 5, "method": "block", "params": {"height": "99"}},
        [health(6)],
        health(7),
    ]

    found = replies(client, *calls)

    outcome = [(reply["id"], reply.get("error", {}).get("code", 0)) for reply in found]
    assert outcome == [
        (1, 0),
        (None, -32600),
        (None, -32600),
        (2, -32600),
        (3, -32601),
        (4, -32602),
        (5, -32603),
        (None, -32600),
        (7, 0),
    ]


@pytest.mark.parametrize(
    "element", ["1e400", '{"id":2,"method":1e400}', "1" + "0" * 5000, '{"id":2,"method":null}']
)
def test_a_number_beyond_every_range_is_no_request(client: FlaskClient, element: str) -> None:
    answer = client_post(client, f"[{json.dumps(health(1))},{element}]")

    assert answer.status == 200
    assert [reply.get("error", {}).get("code", 0) for reply in answer.json] == [0, -32600]


def test_calls_of_a_batch_see_the_effects_of_earlier_ones(client: FlaskClient) -> None:
    send = {"id": 1, "method": "broadcast_tx_sync", "params": {"tx": "YmF0Y2g9MQ=="}}

    first, second = replies(client, send, send)

    assert first["result"]["code"] == "0"
    assert second["error"]["data"] == "tx already exists in cache"


# The result is larger than the 20,000 bytes that the client fixture's mount allows.
LARGE = {"id": 1, "method": "blockchain"}


def test_answers_beyond_the_size_cap_become_errors(client: FlaskClient) -> None:
    found = replies(client, *[LARGE] * 10)

    failed = ["error" in reply for reply in found]
    assert failed == sorted(failed)
    assert 1 < failed.count(False) < 10
    assert "NODERPC_MAX_RESPONSE_BYTES" in found[-1]["error"]["data"]


def test_no_call_is_executed_beyond_the_batch_response_limit(backend: PeeredBackend) -> None:
    client = app_for(backend, max_response_bytes=1).test_client()
    before = backend.mempool.pending_count()
    send = {"id": 2, "method": "broadcast_tx_sync", "params": {"tx": "bGF0ZT0x"}}

    found = replies(client, health(1), health(1), send)

    assert [reply["error"]["code"] for reply in found] == [-32603] * 3
    assert backend.mempool.pending_count().total in (before.total, before.total + 1)


def test_a_lone_call_has_no_size_cap(backend: PeeredBackend) -> None:
    client = app_for(backend, max_response_bytes=1).test_client()

    assert client_call(client, "tx", {"hash": tx_hash_text()})["result"]["height"] == "2"


def tx_hash_text() -> str:
    from hashlib import sha256

    return sha256(TX).hexdigest()


def test_the_limit_is_a_setting(backend: PeeredBackend) -> None:
    client = app_for(backend, max_batch=2).test_client()

    assert len(replies(client, health(1), health(2))) == 2
    assert client_post(client, json.dumps([health(1)] * 3)).status == 400


def test_calls_beyond_the_time_of_a_batch_are_refused(
    backend: PeeredBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context, "BATCH_S", 1e-9)
    client = app_for(backend).test_client()

    replies = client_post(client, '[{"id":1,"method":"health"},{"method":"x"},{"id":2}]').json

    assert replies[0]["error"]["code"] == -32603
    assert "send fewer calls" in replies[0]["error"]["data"]
    assert replies[1]["error"]["code"] == -32600
    assert len(replies) == 2
