"""Limit of threads that are occupied for long, on servers with a thread pool.

A call that waits for a block and an open websocket occupy a thread each. Some threads are
reserved for other requests, so that ``/health`` is always answered.
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

# One thread in four is reserved for requests, and at most so many.
_RESERVED_OF, _MAX_RESERVED = 4, 8

# gunicorn 23: Worker.init_signals; with SIGABRT the arbiter ends a worker that hangs.
_HANDLED = (signal.SIGABRT, signal.SIGTERM, signal.SIGINT)

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
    count = _of_gunicorn() if threads is None else threads
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


def _of_gunicorn() -> int | None:
    """Return the number of threads of gunicorn's worker, if this is one with threads."""
    if is_patched():
        return None
    # No request refers to the worker, but its handlers of signals are its methods. A
    # host may have replaced some of them.
    for number in _HANDLED:
        worker: Any = getattr(signal.getsignal(number), "__self__", None)
        if hasattr(worker, "tpool"):
            threads: int = worker.cfg.threads
            return threads
    return None
