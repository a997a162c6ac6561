"""Reservation of the server's threads: websockets and waiting calls occupy one each.

Some are reserved for other requests, so that ``/health`` is always answered.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import Busy
from .gunicorn import worker_threads

# One thread in four is reserved for requests, and at most so many.
_RESERVED_OF, _MAX_RESERVED = 4, 8

_lock: Any
_occupied: set[int]


def _begin() -> None:
    global _lock, _occupied
    _lock, _occupied = threading.Lock(), set()


_begin()
# A forked child has neither the parent's threads nor the holder of its lock.
os.register_at_fork(after_in_child=_begin)


@contextmanager
def reserve_thread(threads: int | None) -> Iterator[None]:
    """Occupy the current thread; raise :exc:`~flask_noderpc.errors.Busy` where too many are.

    ``threads`` is the size of the server's pool; without it, it is that of gunicorn's
    worker, if this is one, and otherwise there is no limit.
    """
    ident = threading.get_ident()
    count = worker_threads() if threads is None else threads
    # A call that waits on a websocket has the thread of the websocket.
    if count is None or ident in _occupied:
        yield
        return
    with _lock:
        if len(_occupied) >= count - min(max(1, count // _RESERVED_OF), _MAX_RESERVED):
            raise Busy(
                f"websockets and waiting calls hold {len(_occupied)} of the server's {count}"
                " threads, the rest is reserved for requests: give it more (gunicorn's"
                " --threads; NODERPC_SERVER_THREADS says how many other servers have), or"
                " gevent's workers"
            )
        _occupied.add(ident)
    try:
        yield
    finally:
        with _lock:
            _occupied.discard(ident)
