"""Reservation of the server's threads: each websocket and each waiting or forwarded call
occupies one.

Some are reserved for other requests, so that ``/health`` always responds.
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

# One thread in four is reserved for requests, up to this maximum.
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
def reserve_thread(threads: int | None, least: int = 0) -> Iterator[None]:
    """Count the current thread as occupied; raise :exc:`~flask_noderpc.errors.Busy` if too many
    threads are.

    ``threads`` is the size of the server's pool. If it is ``None``, the size of the pool of
    gunicorn's worker is used; outside gunicorn there is no limit. ``least`` threads may always
    be occupied.
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
                f"websockets, waiting and forwarded calls hold {len(_occupied)} of the"
                f" server's {count} threads, the rest is reserved for requests: give it more"
                " (gunicorn's --threads; NODERPC_SERVER_THREADS says how many other servers"
                " have), or gevent's workers"
            )
        _occupied.add(ident)
    try:
        yield
    finally:
        with _lock:
            _occupied.discard(ident)


def reserve_request_thread(threads: int | None) -> AbstractContextManager[None]:
    """Occupy the thread of the current request while it waits for another node.

    Without a request nothing is occupied: threads of this package are not the server's.
    """
    return reserve_thread(threads, least=1) if has_request_context() else nullcontext()


def _gunicorn_threads() -> int | None:
    """Return the number of threads of gunicorn's worker, if this process is one with
    threads."""
    if is_patched():
        return None
    # A request has no reference to the worker, but the worker's methods handle signals. An app
    # may have replaced some of them.
    for number in _HANDLED:
        worker: Any = getattr(signal.getsignal(number), "__self__", None)
        if hasattr(worker, "tpool"):
            threads: int = worker.cfg.threads
            return threads
    return None
