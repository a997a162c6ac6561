"""Tests that every dialect of CometBFT sends what a real node of its version sent, and reads
it.

Left out of the captured replies are the peers of ``dump_consensus_state``, as no backend knows
the state of other nodes. Left out of the categories of events are those that the nodes did not
send while they were captured: TimeoutPropose, TimeoutWait, Relock, Unlock and PendingTx.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

import pytest

from flask_noderpc.domain import events as event_data
from flask_noderpc.events.messages import Message, keys_of, tx_keys
from flask_noderpc.wire.events import TYPES
from flask_noderpc.wire.schema import WireSchema
from tests.comet import rebuild

from .collect_answers import schema_of
from .golden import ALL, Golden
from .rebuild_answers import ANSWERS, EVENTS, genesis_document, plain
from .reload import loaded_again

KINDS = {name: kind for kind, name in TYPES.items()}

EVERY_VERSION = pytest.mark.parametrize("golden", ALL, ids=lambda golden: golden.version)


def golden_results() -> Iterator[Any]:
    """Yield each captured result with its route."""
    for golden in ALL:
        for call, route, result in golden.of_routes():
            yield pytest.param(golden, route, result, id=f"{golden.version} {call}")


def golden_events() -> Iterator[Any]:
    """Yield each captured notification."""
    for golden in ALL:
        for result in golden.notifications():
            yield pytest.param(
                golden,
                result["data"],
                result["events"],
                id=f"{golden.version} {result['query']}",
            )


EVERY_RESULT = pytest.mark.parametrize(("golden", "route", "result"), list(golden_results()))
EVERY_EVENT = pytest.mark.parametrize(("golden", "data", "keys"), list(golden_events()))


def of_version(golden: Golden, found: Any) -> Any:
    """Return the JSON with the attributes of events as text."""
    return plain(found) if golden.version == "0.34.35" else found


def same(ours: Any, node: Any) -> bool:
    """Return true if both are the same JSON, including the order of members."""
    return json.dumps(ours) == json.dumps(node)


@EVERY_RESULT
def test_replies_equal_those_of_a_real_node(golden: Golden, route: str, result: Any) -> None:
    answer = ANSWERS[route](of_version(golden, result))

    assert same(json.loads(golden.dialect.encode(answer)), result)


@EVERY_RESULT
def test_a_reply_can_be_loaded(golden: Golden, route: str, result: Any) -> None:
    answer = ANSWERS[route](of_version(golden, result))
    schema = schema_of(golden.dialect, answer)

    assert loaded_again(schema, result) == result


@EVERY_EVENT
def test_events_equal_those_of_a_real_node(golden: Golden, data: Any, keys: Any) -> None:
    found = of_version(golden, data["value"])
    value = EVENTS[data["type"].removeprefix("tendermint/event/")](found)
    category = keys["tm.event"][0]
    made = Message(1, 0, category, value, {"tm.event": [category], **keys_of_value(value)})

    (message,) = golden.dialect.behaviours.filter_events([made])
    encoded = json.loads(b'{"data":' + golden.dialect.encode_event(message) + b"}")

    assert same(encoded["data"], data)
    assert encoded["events"] == keys


def keys_of_value(value: Any) -> dict[str, list[str]]:
    """Return the keys that the package derives from an event's value."""
    if isinstance(value, event_data.TxCommitted):
        return tx_keys(value.height, value.tx, value.result.events)
    if isinstance(value, event_data.NewBlock):
        return keys_of(value.results.begin_block_events)
    return {}


@EVERY_EVENT
def test_an_event_can_be_loaded(golden: Golden, data: Any, keys: Any) -> None:
    schema: type[WireSchema] = golden.dialect.events[KINDS[data["type"]]]

    assert loaded_again(schema, data["value"]) == data["value"]


@EVERY_VERSION
def test_all_that_was_captured_is_among_them(golden: Golden) -> None:
    assert len(list(golden.of_routes())) == golden.replies
    assert len(list(golden.notifications())) == golden.events


@EVERY_VERSION
def test_every_kind_of_event_was_captured(golden: Golden) -> None:
    seen = {KINDS[result["data"]["type"]] for result in golden.notifications()}

    assert seen == golden.dialect.events.keys()


@EVERY_VERSION
def test_the_chunk_of_a_genesis_is_the_document_that_the_node_sliced(golden: Golden) -> None:
    replies = rebuild.reply(golden.version)["plain"]
    document = replies["genesis"]["body"]["result"]["genesis"]
    chunk = replies["genesis_chunked?chunk=0"]["body"]["result"]["data"]

    assert golden.dialect.encode(genesis_document(document)) == b64decode(chunk)


@EVERY_VERSION
def test_the_version_of_a_node_is_that_of_its_dialect(golden: Golden) -> None:
    node = rebuild.reply(golden.version)["plain"]["status"]["body"]["result"]["node_info"]

    assert golden.dialect.node_version == node["version"]
