"""Costs of a call that is not cached, by layer: ``python -m benchmarks.layers``.

Prints, for each call, the microseconds of processor time of its handler (with its reads of the
store), of encoding its result, of the rest of the dispatcher, and of the server's HTTP without
sockets. Each is the best of several rounds, in this process.
"""

from __future__ import annotations

# ruff: noqa: E402  # gevent patches the standard library before anything else is imported.
from gevent import monkey

monkey.patch_all()

import gc
import random
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from flask_noderpc.extension import mounts
from flask_noderpc.jsonrpc.context import ANONYMOUS
from flask_noderpc.jsonrpc.dispatch import Dispatcher
from flask_noderpc.server.app import node_app
from flask_noderpc.server.connection import Connection, Limits, Service
from flask_noderpc.server.direct import DirectAdapter
from flask_noderpc.server.places import Places

from .chains import THOUSAND, build
from .cold import STAGES
from .peers.ours import reading
from .wrk import Ask

_CALLS, _ROUNDS = 400, 15


class Costs(NamedTuple):
    """Microseconds of a call, by layer."""

    handler: float
    encoding: float
    dispatcher: float
    http: float


class _Bytes:
    """The reading side of a socket, with requests that have arrived."""

    def __init__(self, sock: _Socket) -> None:
        self._sock = sock

    def readinto(self, buffer: Any) -> int:
        """Read the next request."""
        part = next(self._sock.requests, b"")
        buffer[: len(part)] = part
        return len(part)

    def close(self) -> None:
        """Do nothing."""


class _Socket:
    """A socket without a kernel."""

    family = socket.AF_INET

    def __init__(self, requests: Sequence[bytes]) -> None:
        self.requests = iter(requests)
        self._sock = self

    def makefile(self, *_: object) -> _Bytes:
        """Return the reading side."""
        return _Bytes(self)

    def send(self, data: bytes) -> int:
        """Discard a response."""
        return len(data)

    def recv(self, _size: int) -> bytes:
        """Return nothing, as no request follows."""
        return b""

    def ignore(self, *_: object) -> None:
        """Do nothing."""

    setsockopt = shutdown = close = ignore


def _best(work: Callable[[], object]) -> float:
    def once() -> float:
        began = time.process_time()
        work()
        return time.process_time() - began

    return min(once() for _ in range(_ROUNDS)) / _CALLS * 1e6


def _costs(dispatcher: Dispatcher, service: Service, paths: Sequence[str]) -> Costs:
    name = paths[0][1:].partition("?")[0]
    queries = [path.partition("?")[2].encode() for path in paths]
    requests = [f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() for path in paths]
    route, context = dispatcher.admit(name, ANONYMOUS)
    params = [dispatcher.loader(route.params).from_query(query) for query in queries]
    results = [route.call(context, each) for each in params]
    handler = _best(lambda: [route.call(context, each) for each in params])
    encoding = _best(lambda: [context.encode(each) for each in results])
    whole = _best(lambda: [dispatcher.get(name, query) for query in queries])

    def serve() -> None:
        Connection(_Socket(requests), ("127.0.0.1", 1), service).serve()

    return Costs(handler, encoding, whole - handler - encoding, _best(serve) - whole)


def layers(folder: Path) -> Iterator[tuple[str, Costs]]:
    """Yield each call with the costs of its layers."""
    settings = reading(build(THOUSAND, folder), cache_bytes=0)
    app = node_app(folder, settings)
    mount = mounts(app)["noderpc"]
    mount.start()
    environ = {"wsgi.url_scheme": "http", "SERVER_NAME": "localhost", "SERVER_PORT": "80"}
    places = Places(_CALLS, None)
    direct = DirectAdapter(app, mount)
    service = Service(app, environ, Limits(), places, None, direct, None)
    dice = random.Random(1)
    gc.collect()
    gc.freeze()
    asks = {"health": Ask(("/health",))}
    asks |= {each.name: each.ask() for each in STAGES[0].workloads}
    for name, ask in asks.items():
        if not ask.bodies:
            paths = dice.choices(ask.paths, k=_CALLS)
            yield name, _costs(mount.node, service, paths)


def main() -> None:
    """Print the table."""
    with TemporaryDirectory() as folder:
        print(f"{'µs':28}" + "".join(f"{each:>12}" for each in Costs._fields))
        for name, costs in layers(Path(folder)):
            print(f"{name:28}" + "".join(f"{each:12.0f}" for each in costs), flush=True)


if __name__ == "__main__":
    main()
