"""The app that the tests serve under each server, and two servers that have no command.

``python -m tests.faults.served KIND FD`` serves on an open socket until SIGTERM;
``tests.faults.patched`` patches for gevent first.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from flask import Flask

from flask_noderpc import get_backend, noderpc_bp
from flask_noderpc.chain.embedded import EmbeddedChain
from flask_noderpc.web.connection import Timing
from flask_noderpc.web.connections import WebSocketServer


def create_app() -> Flask:
    """Return an app with the node at its root, settings from the environment, and routes for
    the tests."""
    WebSocketServer.timing = Timing(**json.loads(os.environ.get("TIMING", "{}")))
    app = Flask("noderpc_served")
    app.config.from_prefixed_env()
    app.register_blueprint(noderpc_bp)
    app.add_url_rule("/census", view_func=census)
    app.add_url_rule("/check", view_func=check)
    return app


def census() -> dict[str, int]:
    """Return counts of the process' resources; a leak shows in one of them."""
    gc.collect()
    status = dict(
        line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines()
    )
    files = list(_files())
    return {
        "pid": os.getpid(),
        "files": len(files),
        "sockets": sum("socket:" in file for file in files),
        "tasks": _greenlets() if "gevent" in sys.modules else threading.active_count(),
        "threads": int(status["Threads"]),
        "memory_kb": int(status["VmRSS"].split()[0]),
    }


def _files() -> Iterator[str]:
    for name in os.listdir("/proc/self/fd"):
        # The file may have been closed meanwhile.
        with suppress(FileNotFoundError):
            yield os.readlink(f"/proc/self/fd/{name}")


def _greenlets() -> int:
    from greenlet import greenlet

    return sum(isinstance(found, greenlet) and not found.dead for found in gc.get_objects())


def check() -> str:
    """Copy the store while it is in use, and verify the copy; return its height."""
    chain = get_backend()
    assert isinstance(chain, EmbeddedChain)
    chain.store.backup(f"{chain.store.location.path}.copy")
    return str(chain.store.verify())


def serve_threads(descriptor: int) -> None:
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    # Block the signal before threads start: they inherit the mask, and one of them would get
    # the signal.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    server = make_server("127.0.0.1", 0, create_app(), threaded=True, fd=descriptor)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    signal.sigwait([signal.SIGTERM])
    server.shutdown()


def serve_pywsgi(descriptor: int) -> None:
    import gevent
    from gevent.event import Event
    from gevent.pywsgi import WSGIServer

    server = WSGIServer(gevent.socket.socket(fileno=descriptor), create_app(), log=None)
    server.start()
    ended = Event()
    gevent.signal_handler(signal.SIGTERM, ended.set)
    ended.wait()
    server.stop()


def main(kind: str, descriptor: str) -> None:
    (serve_threads if kind == "werkzeug" else serve_pywsgi)(int(descriptor))
    sys.stderr.flush()
    # Exit here, as the interpreter would remove gevent before logging's patched locks, and some
    # versions print an error.
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
