"""Limits on the open connections at an address, in total and for each client.

The limits come from the settings and from the process's limit on file descriptors.
"""

from __future__ import annotations

import logging
import resource
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from enum import Enum
from itertools import chain
from math import inf

import gevent
from gevent.event import Event

from ..concurrency import next_turn
from ..web.rules.head import ClientLimit

log = logging.getLogger("flask_noderpc.server")

PATIENCE_S = 1.0
"""Seconds of waiting after which a slow client may be evicted for a new connection."""


class Phase(Enum):
    """Phase of a connection, by what it waits for."""

    NOTHING = "nothing, the request is processed"
    REQUEST = "its next request"
    HEADERS = "the rest of the headers"
    BODY = "the rest of the body"
    READER = "it to read the response"


class Place(ABC):
    """A connection as the limits see it: its client, what it waits for, and the deadline."""

    def __init__(self, client: str) -> None:
        self.client = client
        self.deadline = inf
        self.since = time.monotonic()
        self.phase = Phase.REQUEST
        self.exempt = 0
        """Number of other limits that count the connection: it is above 0 for a websocket and
        while a call waits, and the total limit then ignores the connection."""

    @property
    @abstractmethod
    def is_awaited(self) -> bool:
        """True if the server waits for the client."""

    @abstractmethod
    def drop(self) -> None:
        """Shut the socket down."""

    def wait_for_client(self, what: Phase, seconds: float) -> None:
        """Set the phase, and the deadline to ``seconds`` from now."""
        self.since = time.monotonic()
        self.phase, self.deadline = what, self.since + seconds

    def is_overdue(self, now: float) -> bool:
        """Return true if the client has exceeded the deadline of its phase."""
        return self.deadline < now and self.is_awaited

    def can_be_evicted(self, now: float) -> bool:
        """Return true if the connection is idle, or the client has been slow for a second."""
        return self.phase is Phase.REQUEST or (
            self.since < now - PATIENCE_S and self.is_awaited
        )


def _refusal(said: bytes) -> bytes:
    return (
        b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n"
        b"Content-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s\n" % (len(said) + 1, said)
    )


_FULL = _refusal(b"too many open connections; raise NODERPC_MAX_OPEN_CONNECTIONS")
_FULL_FOR_CLIENT = _refusal(
    b"too many open connections of this client; raise NODERPC_MAX_CONNECTIONS_PER_CLIENT"
)

# Minimum seconds between two scans for connections that can be evicted. Scanning all of them
# for each new connection would keep the process busy while many clients reconnect, so the
# candidates of one scan are used up first.
_SCAN_S = 0.01
# Maximum number of connections that are evicted between two scans for new ones of a client at
# its limit; further new ones are refused, which takes a tenth of the time.
_MOST_OF_CLIENT = 2
# Maximum number of requests of a limited client in one iteration of the event loop, so that
# other clients are served in between. Otherwise an iteration would handle a request on each of
# the client's connections.
_MOST_IN_TURN = 8


class _Group:
    """Connections that share a limit, and the candidates for eviction among them.

    ``most`` is the maximum number of candidates of one scan.
    """

    def __init__(self, most: int | None = None) -> None:
        self.connections: set[Place] = set()
        self._most = most
        self._candidates: deque[tuple[Place, float]] = deque()
        self._scanned_at = 0.0
        self._finds_more = False
        self._turn, self._in_turn = 0.0, 0
        self._waiting: deque[Event] = deque()

    def await_turn(self) -> None:
        """Wait until a request may be handled; requests wait in order of arrival."""
        if not self._waiting and self._may_answer(gevent.get_hub().loop.now()):
            return
        gate = Event()
        self._waiting.append(gate)
        if len(self._waiting) == 1:
            gevent.spawn(self._wake)
        gate.wait()

    def _may_answer(self, turn: float) -> bool:
        """Count a request and return true, or return false if the maximum for this iteration
        of the event loop is reached."""
        if turn != self._turn:
            self._turn, self._in_turn = turn, 0
        elif self._in_turn >= _MOST_IN_TURN:
            return False
        self._in_turn += 1
        return True

    def _wake(self) -> None:
        """Wake the maximum number of waiting requests in each iteration of the event loop."""
        while self._waiting:
            next_turn()
            for _ in range(min(_MOST_IN_TURN, len(self._waiting))):
                self._waiting.popleft().set()

    def next_to_evict(self) -> Place | None:
        """Return the connection that has been idle the longest, else the one that has been
        slow the longest, or ``None``."""
        now = time.monotonic()
        if now - self._scanned_at > _SCAN_S:
            self._scan(now)
        found = self._next_candidate(now)
        if found is None and self._finds_more:
            self._scan(now)
            found = self._next_candidate(now)
        return found

    def _scan(self, now: float) -> None:
        self._scanned_at = now
        found = [each for each in self.connections if each.can_be_evicted(now)]
        found.sort(key=lambda each: (each.phase is not Phase.REQUEST, each.since))
        self._finds_more = bool(found) and self._most is None
        self._candidates = deque((each, each.since) for each in found[: self._most])

    def _next_candidate(self, now: float) -> Place | None:
        while self._candidates:
            connection, since = self._candidates.popleft()
            is_same = connection in self.connections and connection.since == since
            if is_same and connection.can_be_evicted(now):
                return connection
        return None


class Places:
    """Open connections of an address: at most ``limit`` in total, and ``per_client`` for each
    client."""

    def __init__(self, limit: int, per_client: ClientLimit | None) -> None:
        self._limit, self._per_client = limit, per_client
        self._all = _Group()
        self._clients: dict[str, _Group] = {}
        self._exempt = 0

    def __iter__(self) -> Iterator[Place]:
        return iter(tuple(self._all.connections))

    def refusal(self, client: str) -> bytes:
        """Return the response that refuses a new connection of a client; empty if it is
        accepted, for which another connection may be evicted."""
        if not self._has_room_of(client):
            return _FULL_FOR_CLIENT
        if len(self._all.connections) - self._exempt >= self._limit:
            return b"" if self._evict(self._all) else _FULL
        return b""

    def _has_room_of(self, client: str) -> bool:
        group = self._clients.get(client)
        if group is None or self._per_client is None or not self._per_client.counts(client):
            return True
        return len(group.connections) < self._per_client.count or self._evict(group)

    def _evict(self, group: _Group) -> bool:
        connection = group.next_to_evict()
        if connection is None:
            return False
        connection.drop()
        self.remove(connection)
        return True

    def add(self, connection: Place) -> None:
        """Add an accepted connection."""
        self._all.connections.add(connection)
        group = self._clients.setdefault(connection.client, _Group(_MOST_OF_CLIENT))
        group.connections.add(connection)

    def remove(self, connection: Place) -> None:
        """Remove a connection that is closed or evicted."""
        if connection not in self._all.connections:
            return
        self._all.connections.remove(connection)
        self._exempt -= bool(connection.exempt)
        group = self._clients[connection.client]
        group.connections.remove(connection)
        if not group.connections:
            del self._clients[connection.client]

    def await_turn(self, connection: Place) -> None:
        """Wait while a connection's client has reached its maximum for this iteration of the
        event loop."""
        client = connection.client
        group = self._clients.get(client)
        if group is None or len(group.connections) <= _MOST_IN_TURN:
            return
        if self._per_client is None or not self._per_client.counts(client):
            return
        group.await_turn()

    def exempt(self, connection: Place, count: int) -> None:
        """Set the number of other limits that count a connection; if it is above 0, the total
        limit ignores the connection."""
        if connection in self._all.connections:
            self._exempt += bool(count) - bool(connection.exempt)
        connection.exempt = count


# File descriptors reserved for the store, the executors, Python itself, and connections that
# are being closed.
_RESERVED = 96


@dataclass(frozen=True, slots=True)
class FdBudget:
    """Maximum numbers of objects that need a file descriptor each."""

    connections: int
    """Connections at each address."""
    websockets: int
    """Websockets of each mount."""
    waiting: int
    """Waiting calls of each mount."""


def budget_within(wanted: FdBudget, listeners: int, mounts: int) -> FdBudget:
    """Return the wanted numbers, all reduced by the same factor if the process may have too
    few file descriptors."""
    limit = _raise_limit()
    per_mount = mounts * (wanted.websockets + wanted.waiting)
    files = listeners * wanted.connections + per_mount
    if limit == resource.RLIM_INFINITY or files <= limit - _RESERVED:
        return wanted
    part = max(0, limit - _RESERVED) / files
    budget = FdBudget(*(max(1, int(part * each)) for each in astuple(wanted)))
    pairs = zip(astuple(budget), astuple(wanted), strict=True)
    log.warning(
        "a process may have only %d files open, so limits are lower: %d connections at each"
        " address instead of %d, %d websockets instead of %d, %d waiting calls instead of %d;"
        " raise ulimit -n or lower NODERPC_MAX_OPEN_CONNECTIONS",
        limit,
        *chain.from_iterable(pairs),
    )
    return budget


def _raise_limit() -> int:
    """Raise the soft limit on file descriptors to the hard limit, like Go programs; return
    it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):
            # Some systems report a higher limit than they allow.
            return soft
    return hard
