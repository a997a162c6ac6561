"""How many calls may wait or search at the same time, and whose they are."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..backend.base import ChainBackend
from ..errors import Busy, SearchTooCostly
from ..shares import who_gives_way
from ..signals import tell, wait_began, wait_ended
from .threads import held


class Seat:
    """One call that waits."""

    def __init__(self, client: str) -> None:
        self.client = client
        self.lost = ""
        """Why it may wait no longer."""

    def wait_for_block(self, backend: ChainBackend, after: int, seconds: float) -> int:
        """As :meth:`wait_for_height`, of one whose transaction waits; raise also where the
        store has no room for the block."""
        return self.wait_for_height(backend, after, seconds, backend.check_room)

    def wait_for_height(
        self,
        backend: ChainBackend,
        after: int,
        seconds: float,
        check: Callable[[], None] = lambda: None,
    ) -> int:
        """As the backend's; raise :exc:`~flask_noderpc.errors.Busy` when it must rise, and
        what ``check`` raises while there is no new height."""
        deadline = time.monotonic() + seconds
        while not self.lost:
            remaining = deadline - time.monotonic()
            height = backend.wait_for_height(after, max(0.0, min(remaining, _LOOK_S)))
            if height > after or remaining <= _LOOK_S:
                return height
            check()
        raise Busy(self.lost)


class Seats:
    """A bounded number of calls that wait at the same time, shared out among clients.

    ``per_client`` is how many each may have, if that is bounded too.
    """

    def __init__(
        self,
        limit: int,
        setting: str,
        sender: object = None,
        threads: int | None = None,
        per_client: int | None = None,
    ) -> None:
        self.limit = limit
        """How many there are; a server that can hold fewer lowers it."""
        self._sender = sender
        self._threads = threads
        self._closed = False
        self._setting = setting
        self._per_client = per_client
        self._lock = threading.Lock()
        self._taken: dict[Seat, None] = {}

    @contextmanager
    def one(self, client: str = "") -> Iterator[Seat]:
        """Sit down; raise :exc:`~flask_noderpc.errors.Busy` when every seat is taken.

        But where another client has more of them than this one will have, that client's call
        that has waited the longest gives way.
        """
        with held(self._threads):
            seat = self._sit(client)
            tell(wait_began, self._sender)
            try:
                yield seat
            finally:
                with self._lock:
                    self._taken.pop(seat, None)
                tell(wait_ended, self._sender)

    def _sit(self, client: str) -> Seat:
        with self._lock:
            owned = Counter(seat.client for seat in self._taken)
            # Whose address nobody knows are many.
            if client and self._per_client is not None and owned[client] >= self._per_client:
                raise Busy(
                    f"{owned[client]} calls of this client wait already,"
                    f" {self._setting}_PER_CLIENT raises this"
                )
            if len(self._taken) >= self.limit:
                self._make_room(owned, client)
            seat = Seat(client)
            seat.lost = _GOES_AWAY if self._closed else ""
            self._taken[seat] = None
            return seat

    def _make_room(self, owned: Counter[str], newcomer: str) -> None:
        owner = who_gives_way(owned, newcomer)
        if owner is None:
            raise Busy(f"{self.limit} calls wait already, {self._setting} raises this")
        first = next(seat for seat in self._taken if seat.client == owner)
        first.lost = (
            f"{self.limit} calls wait already, {owned[owner]} of this client, and so this one"
            f" gave way; what it sent may still get into a block ({self._setting} raises this)"
        )
        del self._taken[first]

    def close(self) -> None:
        """Let nobody sit any longer."""
        with self._lock:
            self._closed = True
            for seat in self._taken:
                seat.lost = _GOES_AWAY


_GOES_AWAY = "the server goes away"


# How often those who wait look whether they may go on.
_LOOK_S = 0.25


class Turns:
    """Calls that look through many blocks: two at a time, the others wait a little."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._free = threading.BoundedSemaphore(2)

    @contextmanager
    def one(self) -> Iterator[None]:
        """Wait for a turn; raise :exc:`~flask_noderpc.errors.SearchTooCostly`."""
        if not self._free.acquire(timeout=self._seconds):
            raise SearchTooCostly.by_time(self._seconds)
        try:
            yield
        finally:
            self._free.release()
