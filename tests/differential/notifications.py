"""Events that subscribers of a node and of its companion receive."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

from ..helpers.until import until
from ..helpers.websocket import WebSocketClient
from .compare import Difference, differences
from .http_client import Reply
from .sides import Side, Version

# Queries for the events of a block; `explained` has the reasons for the events of its rounds.
_QUERIES = (
    "tm.event='NewBlock'", "tm.event='NewBlockHeader'", "tm.event='Tx'",
    "tm.event='ValidatorSetUpdates'", "tm.event='NewEvidence'",
    "tm.event='Tx' AND app.key='name'", "app.creator='Cosmoshi' AND tx.height>3",
)  # fmt: skip
_BLOCK_EVENTS = ("tm.event='NewBlockEvents'",)


class Listener:
    """Subscriptions at one side, each over its own websocket."""

    def __init__(self, side: Side, version: Version) -> None:
        queries = _QUERIES + (_BLOCK_EVENTS if version.is_modern else ())
        self.told: dict[str, list[str]] = {query: [] for query in queries}
        self._clients = []
        for query, heard in self.told.items():
            client = WebSocketClient(side.url, timeout=3600)
            self._clients.append(client)
            client.call("subscribe", {"query": query})
            reply = client.read()
            assert "result" in json.loads(reply or "{}"), reply
            threading.Thread(target=_hear, args=(client, heard), daemon=True).start()

    def close(self) -> None:
        """Close all websockets."""
        for client in self._clients:
            client.close()

    def height(self) -> int:
        """The height of the latest block in the events, or 0."""
        blocks = self.told[_QUERIES[0]]
        return int(_data(blocks[-1])["block"]["header"]["height"]) if blocks else 0


def _data(text: str) -> Any:
    return json.loads(text)["result"]["data"]["value"]


def _hear(client: WebSocketClient, heard: list[str]) -> None:
    try:
        while text := client.read():
            heard.append(text)
    except OSError:
        return


def unequal(node: Listener, companion: Listener, height: int) -> Iterator[Difference]:
    """Wait for a height; yield the differences, ignoring the order of events' keys, which Go
    does not define."""
    until(lambda: node.height() >= height and companion.height() >= height, str(height))
    counts = [[*map(len, side.told.values())] for side in (node, companion)]
    try:
        until(
            lambda: [*map(len, node.told.values())] == [*map(len, companion.told.values())],
            "as many",
            patience=10,
        )
    except AssertionError:
        yield Difference("notifications", "counts", counts[0], counts[1])
    for query, heard in node.told.items():
        for pair in zip(heard, companion.told[query], strict=False):
            theirs, own = (Reply(101, replies=(_sorted(text),)) for text in pair)
            yield from differences(f"notification {query}", theirs, own)


def _sorted(text: str) -> str:
    found = json.loads(text)
    events = found["result"]["events"]
    found["result"]["events"] = dict(sorted(events.items())) if events else events
    return json.dumps(found)
