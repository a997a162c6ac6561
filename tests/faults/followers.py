"""Clients that follow a chain: by a subscription, by reconnecting, or by polling."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from http.client import HTTPException
from itertools import cycle
from typing import Any
from urllib.parse import urlencode

from ..helpers.http import HttpStatusError
from ..helpers.until import PATIENCE
from ..helpers.websocket import WebSocketClient
from .servers import Server

BOOKMARK_EVERY = 50

Place = tuple[int, int]
"""Position of a match: its height, and its index at this height."""


def place(data: Any) -> Place:
    value = data["value"]
    if "Vote" in value:
        return int(value["Vote"]["height"]), value["Vote"]["validator_index"]
    return int(value["TxResult"]["height"]), value["TxResult"]["index"]


def events_after(ask: Callable[..., Any], cursor: str, **params: Any) -> list[Any]:
    """Return all items after a cursor, oldest first, page by page.

    Pages have ten items, the default, so some end between the transactions of one block.
    """
    params = {"after": cursor, **params}
    page = ask(**params)
    items: list[Any] = page["items"]
    while page["more"]:
        page = ask(**params, before=items[-1]["cursor"])
        items += page["items"]
    return items[::-1]


class Follower(threading.Thread):
    """A subscriber that notes the place of each match of a category in its notifications."""

    def __init__(self, category: str) -> None:
        super().__init__(daemon=True)
        self.category = category
        self.told: list[Place] = []
        self.is_away = False
        """Whether the test goes on without waiting for this subscriber."""
        self._query = f"tm.event='{category}'"

    @property
    def height(self) -> int:
        """The height of the last match that it received."""
        return self._last()[0]

    def end(self) -> None:
        """Wait until the thread has ended."""
        self.join(PATIENCE)
        assert not self.is_alive()

    def _last(self) -> Place:
        return self.told[-1] if self.told else (0, 0)


class Subscriber(Follower):
    """A subscriber over a websocket; when that is lost, the subscriber is away."""

    def __init__(self, url: str, category: str) -> None:
        super().__init__(category)
        self._url = url
        self._client = self._connected()
        self._subscribe()
        self.start()

    def _connected(self) -> WebSocketClient:
        return WebSocketClient(self._url, timeout=PATIENCE)

    def _subscribe(self) -> None:
        assert self._client.asked("subscribe", {"query": self._query}, "match")["result"] == {}

    def run(self) -> None:
        self.read_on()

    def read_on(self) -> None:
        """Note events until the connection is lost, or the response to the final call
        arrives."""
        while (text := self._client.read()) is not None:
            message = json.loads(text)
            if message["id"] == "end":
                return
            self.note(message["id"], message["result"])
        self.is_away = True

    def note(self, kind: str, result: Any) -> None:
        assert kind == "match"
        self.told.append(place(result["data"]))

    def end(self) -> None:
        """Read all events that were sent so far, and close the connection."""
        if not self.is_away:
            self._client.call("unsubscribe_all", request_id="end")
        super().end()
        self._client.close()


class Returner(Subscriber):
    """A subscriber that connects again after its connection is lost, and asks for the events
    that it missed.

    Notifications carry no cursor. So the subscriber sometimes asks for the newest match with
    its cursor, and stores it as a bookmark, which counts from when the match arrived.
    """

    def __init__(self, url: str, category: str) -> None:
        self._bookmarks: dict[Place, str] = {}
        self._held: list[Any] = []
        self._asked_for: set[Place] = set()
        self.missed = self.told_twice = 0
        self.may_return = threading.Event()
        super().__init__(url, category)

    def _subscribe(self) -> None:
        if not self._bookmarks:
            # The bookmark is set before the subscription, so no event falls between the two.
            self._bookmarks[0, 0] = self._ask()["newest"]
        super()._subscribe()

    def run(self) -> None:
        self.read_on()
        if self.is_away:
            assert self.may_return.wait(PATIENCE)
            self._come_back()
            self.is_away = False
            self.read_on()

    def note(self, kind: str, result: Any) -> None:
        if kind == "bookmark":
            self._bookmarks |= {place(i["data"]): i["cursor"] for i in result["items"]}
        elif place(result["data"]) in self._asked_for:
            # The first repetition is expected; any later one is a duplicate.
            self._asked_for.remove(place(result["data"]))
            self.told_twice += 1
        else:
            super().note(kind, result)
            if len(self.told) % BOOKMARK_EVERY == 0:
                asked = {"filter": {"query": self._query}, "max_results": 1}
                self._client.call("events", asked, "bookmark")

    def _come_back(self) -> None:
        self._client.close()
        self._client = self._connected()
        # Subscribe first, and on the same connection: events that the response lacks arrive as
        # notifications.
        self._subscribe()
        items = events_after(self._ask, self._cursor(), filter={"query": self._query})
        last = self._last()
        missed = [found for item in items if (found := place(item["data"])) > last]
        self.missed = len(missed)
        self._asked_for = set(missed)
        self.told += missed
        for held in self._held:
            self.note(held["id"], held["result"])

    def _cursor(self) -> str:
        """Return the latest cursor whose match has arrived."""
        last = self._last()
        return max(cursor for at, cursor in self._bookmarks.items() if at <= last)

    def _ask(self, **params: Any) -> Any:
        """Return the response to ``events``; notifications that arrive meanwhile are held
        back."""
        self._client.call("events", params, "answer")
        while (message := self._client.json())["id"] != "answer":
            self._held.append(message)
        return message["result"]


class Poller(Follower):
    """A client that polls each server in turn, as behind a load balancer, until it has the
    events of a height."""

    def __init__(self, servers: Sequence[Server], category: str, last: int) -> None:
        super().__init__(category)
        self._servers: Iterator[Server] = cycle(servers)
        self._until = last
        self.failures = 0
        self.start()

    def run(self) -> None:
        cursor = ""
        while self.height < self._until:
            items = events_after(self._ask, cursor, filter=f'"{self._query}"', wait_time="5s")
            self.told += [place(item["data"]) for item in items]
            cursor = items[-1]["cursor"] if items else cursor

    def _ask(self, **params: Any) -> Any:
        path = f"/events?{urlencode(params)}"
        try:
            return next(self._servers).get(path)
        except HttpStatusError:
            raise
        except (OSError, HTTPException):
            # A worker was killed, so ask the next server.
            self.failures += 1
            return next(self._servers).get(path)
