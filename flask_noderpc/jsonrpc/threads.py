"""Who holds a thread for long, on servers that have so many and no more.

A call that waits for a block and an open websocket hold a thread each. Some are kept from
them, so that ``/health`` is always answered.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..concurrency import is_patched
from ..errors import Busy

# One thread in four is kept for requests, and of many threads so many.
_KEPT_OF, _MOST_KEPT = 4, 8

# gunicorn 23: Worker.init_signals; with SIGABRT the arbiter ends a worker that hangs.
_HANDLED = (signal.SIGABRT, signal.SIGTERM, signal.SIGINT)

_lock: Any
_reserved: set[int]


def _begin() -> None:
    global _lock, _reserved
    _lock, _reserved = threading.Lock(), set()


_begin()
# What the parent's threads hold is nothing to a child, nor is its lock.
os.register_at_fork(after_in_child=_begin)


@contextmanager
def reserve_thread(threads: int | None) -> Iterator[None]:
    """Hold the current thread; raise :exc:`~flask_noderpc.errors.Busy` where too many are.

    ``threads`` is how many the server has; without it those of gunicorn's worker count, if
    there is one, and otherwise there is no bound.
    """
    own = threading.get_ident()
    count = _of_gunicorn() if threads is None else threads
    # A call that waits on a websocket has the thread of the websocket.
    if count is None or own in _reserved:
        yield
        return
    with _lock:
        if len(_reserved) >= count - min(max(1, count // _KEPT_OF), _MOST_KEPT):
            raise Busy(
                f"websockets and waiting calls hold {len(_reserved)} of the server's {count}"
                " threads, the rest is kept for requests: give it more (gunicorn's --threads;"
                " NODERPC_SERVER_THREADS says how many other servers have), or gevent's workers"
            )
        _reserved.add(own)
    try:
        yield
    finally:
        with _lock:
            _reserved.discard(own)


def _of_gunicorn() -> int | None:
    """How many threads a worker of gunicorn has, if this is one with threads."""
    if is_patched():
        return None
    # Nothing in a request tells of the worker, but its handlers of signals are its methods. A
    # host may have replaced some of them.
    for number in _HANDLED:
        worker: Any = getattr(signal.getsignal(number), "__self__", None)
        if hasattr(worker, "tpool"):
            threads: int = worker.cfg.threads
            return threads
    return None
