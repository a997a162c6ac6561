"""A complete node in this process, on a free port of the loopback interface, which starts in
less than a second."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flask import Flask
from werkzeug.exceptions import ServiceUnavailable
from werkzeug.serving import WSGIRequestHandler, make_server

from ..backends.base.backend import ChainBackend
from ..chain.applications.kvstore import kvstore_of
from ..chain.clock import ManualClock
from ..chain.embedded import EmbeddedChain
from ..extension import NodeRPC, hang_up


@dataclass(frozen=True, slots=True)
class Node:
    """A running node: its URL, and control of its chain."""

    url: str
    chain: EmbeddedChain
    clock: ManualClock

    def produce(self, seconds: float = 1.0) -> int:
        """Advance the clock and produce a block; return its height."""
        self.clock.advance(seconds)
        return self.chain.produce()


# Seconds to wait for requests that are still running when the node is closed.
_PATIENCE_S = 10.0


class _Requests:
    """A WSGI application that can be closed, as a later request would open the closed store
    again."""

    def __init__(self, app: Flask) -> None:
        self._app = app
        self._count = 0
        self._closed = False
        self._changed = threading.Condition()

    def __call__(self, environ: Any, start_response: Any) -> Any:
        app: Any = ServiceUnavailable("The server is closed.") if self._closed else self._app
        return app(environ, start_response)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count a request in this context."""
        with self._changed:
            self._count += 1
        try:
            yield
        finally:
            with self._changed:
                self._count -= 1
                self._changed.notify_all()

    def close(self) -> None:
        """Refuse new requests, and wait until requests in progress have ended."""
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: not self._count, _PATIENCE_S)


class _Handler(WSGIRequestHandler):
    def run_wsgi(self) -> None:
        # Werkzeug does not close the response of a client that resets its connection.
        with self.server.app.running():  # type: ignore[attr-defined]
            super().run_wsgi()


@contextmanager
def serve(app: Flask, port: int = 0) -> Iterator[str]:
    """Serve an app with threads on ``port``, by default a free one; yield its base URL."""
    requests = _Requests(app)
    server = make_server("127.0.0.1", port, requests, threaded=True, request_handler=_Handler)
    # Poll every 20 ms, because the server notices its shutdown at the next poll: by default,
    # tests would wait half a second for it.
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        hang_up(app)
        server.shutdown()
        thread.join()
        server.server_close()
        requests.close()


@contextmanager
def run_node(folder: Path | None = None, **settings: Any) -> Iterator[Node]:
    """Run a node with a manual clock; only calls of :meth:`Node.produce` produce blocks.

    ``settings`` are settings of the mount, such as ``dialect``.
    """
    with tempfile.TemporaryDirectory() as scratch:
        clock = ManualClock()
        chain = EmbeddedChain(
            (folder or Path(scratch)) / "noderpc.db",
            application=kvstore_of(str(settings.get("dialect", ""))),
            clock=clock,
            produce=False,
            development_keys=True,
        )
        try:
            chain.start()
            with serve(app_for(chain, **settings)) as url:
                yield Node(url, chain, clock)
        finally:
            chain.close()


def app_for(backend: ChainBackend, **settings: Any) -> Flask:
    """Return a Flask app that serves this backend at its root."""
    app = Flask("noderpc_test")
    NodeRPC(app, backend=backend, **settings)
    return app
