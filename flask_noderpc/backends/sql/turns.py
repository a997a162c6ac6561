"""A few things that many threads use in turn."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from typing import Generic, TypeVar

T = TypeVar("T")


class Turns(Generic[T]):
    """Queue of users for what is idle, first come, first served.

    ``queue.Queue`` and semaphores would let the last user take a thing again before those that
    wait.
    """

    def __init__(self, things: Iterable[T]) -> None:
        # The last one used comes first: an idle node has but one of them open.
        self._idle = list(things)
        self._waiting: deque[_Ticket[T]] = deque()
        self._lock = threading.Lock()

    def acquire(self, timeout: float) -> T | None:
        """Return what is idle; ``None`` after the timeout."""
        with self._lock:
            if self._idle:
                return self._idle.pop()
            ticket = _Ticket[T]()
            self._waiting.append(ticket)
        try:
            ticket.ready.wait(timeout)
        except BaseException:
            # Such as the end of a greenlet: what it got meanwhile is for the next one.
            thing = self._leave(ticket)
            if thing is not None:
                self.release(thing)
            raise
        return self._leave(ticket)

    def _leave(self, ticket: _Ticket[T]) -> T | None:
        with self._lock:
            # It may have become ready just after the timeout.
            if ticket.thing is None:
                self._waiting.remove(ticket)
        return ticket.thing

    def release(self, thing: T) -> None:
        """Give it to whoever has waited longest."""
        with self._lock:
            if self._waiting:
                ticket = self._waiting.popleft()
                ticket.thing = thing
                ticket.ready.set()
            else:
                self._idle.append(thing)

    def idle(self) -> tuple[T, ...]:
        """Return what nobody uses."""
        with self._lock:
            return tuple(self._idle)


class _Ticket(Generic[T]):
    """A waiting user, and what it gets."""

    def __init__(self) -> None:
        self.ready = threading.Event()
        self.thing: T | None = None
