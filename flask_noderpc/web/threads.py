"""Limit on the server threads that websockets and waiting or forwarded calls occupy.

Each of these occupies a thread for long. Some threads are reserved for other requests, so that
``/health`` always responds.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from flask import has_request_context

from ..concurrency import is_patched
from ..errors import Busy

# One thread in four is reserved for short requests, but at most eight.
_RESERVED_OF, _MAX_RESERVED = 4, 8

# Signals that gunicorn 23's workers handle (Worker.init_signals); SIGABRT ends a worker that
# hangs.
_HANDLED = (signal.SIGABRT, signal.SIGTERM, signal.SIGINT)

_lock: Any
_occupied: set[int]


def _begin() -> None:
    global _lock, _occupied
    _lock, _occupied = threading.Lock(), set()


_begin()
# A forked child resets this state: it has no copy of the parent's threads, one of which may
# hold the lock.
os.register_at_fork(after_in_child=_begin)


@contextmanager
def reserve_thread(threads: int | None, least: int = 0) -> Iterator[None]:
    """Count the current thread as occupied; raise :exc:`~flask_noderpc.errors.Busy` if too
    many threads are occupied.

    ``threads`` is the size of the server's thread pool; if it is ``None``, the size of the
    gunicorn worker's pool is used, and outside gunicorn there is no limit. ``least`` threads
    may be occupied in any case.
    """
    ident = threading.get_ident()
    count = _gunicorn_threads() if threads is None else threads
    # A call that waits on a websocket uses the websocket's thread.
    if count is None or ident in _occupied:
        yield
        return
    with _lock:
        reserved = min(max(1, count // _RESERVED_OF), _MAX_RESERVED)
        if len(_occupied) >= max(least, count - reserved):
            raise Busy(
                f"websockets, waiting and forwarded calls occupy {len(_occupied)} of the"
                f" server's {count} threads, and the others are reserved for requests: give it"
                " more threads (gunicorn: --threads; other servers: also set"
                " NODERPC_SERVER_THREADS to their number), or use gevent workers"
            )
        _occupied.add(ident)
    try:
        yield
    finally:
        with _lock:
            _occupied.discard(ident)


def reserve_request_thread(threads: int | None) -> AbstractContextManager[None]:
    """Count the thread of the current request as occupied while it waits for another node.

    Outside a request nothing is counted, as the threads of this package are not the server's.
    """
    return reserve_thread(threads, least=1) if has_request_context() else nullcontext()


def _gunicorn_threads() -> int | None:
    """Return the number of threads if this process is a gunicorn worker with threads, else
    ``None``."""
    if is_patched():
        return None
    # Find the worker through its signal handlers, as a request has no reference to it. Try
    # several, as an app may have replaced some.
    for number in _HANDLED:
        worker: Any = getattr(signal.getsignal(number), "__self__", None)
        if hasattr(worker, "tpool"):
            threads: int = worker.cfg.threads
            return threads
    return None
