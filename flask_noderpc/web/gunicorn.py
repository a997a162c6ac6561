"""All that is known of gunicorn: its worker's threads, its sockets, its end of a request."""

from __future__ import annotations

import signal
import socket
from collections.abc import Mapping
from typing import Any, NoReturn

from ..concurrency import is_patched

# gunicorn 23: Worker.init_signals; with SIGABRT the arbiter ends a worker that hangs.
_HANDLED = (signal.SIGABRT, signal.SIGTERM, signal.SIGINT)


def worker_threads() -> int | None:
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


def socket_of(environ: Mapping[str, Any]) -> socket.socket | None:
    """Return the connection's socket, if the request came by gunicorn."""
    found: socket.socket | None = environ.get("gunicorn.socket")
    return found


def read_ahead(body: Any) -> bytes | None:
    """Return the bytes that gunicorn has read behind the head; ``None`` of other servers."""
    unreader = getattr(getattr(body, "reader", None), "unreader", None)
    return None if unreader is None else bytes(unreader.buf.getvalue())


def end_without_response() -> NoReturn:
    """End a request whose connection was answered on its own socket."""
    # gunicorn 23: its workers catch this, and send nothing.
    raise StopIteration
