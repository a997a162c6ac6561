"""A connection over a pair of sockets, with deadlines that a test can wait for."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from flask_noderpc.web.connection import Connection, Timing
from flask_noderpc.web.connections import Connections
from tests.helpers.until import PATIENCE


@dataclass(slots=True)
class Pair:
    """The served connection, its peer's socket, and how serving ended."""

    connection: Connection
    peer: socket.socket
    raised: list[BaseException] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)
    connections: Connections = field(default_factory=lambda: Connections(tick_s=0.01))

    def serve(
        self, receive: Callable[[bytes], None], pull: Callable[[], Iterator[bytes]]
    ) -> None:
        try:
            with self.connections.watch(self.connection):
                self.connection.run(receive, pull)
        except BaseException as error:
            self.raised.append(error)
        finally:
            self.ended.set()

    def send_until_it_ends(self, data: bytes, pause: float) -> None:
        """Send like a peer that does not read."""
        deadline = time.monotonic() + PATIENCE
        with suppress(ConnectionError):
            while time.monotonic() < deadline and not self.ended.wait(pause):
                with suppress(BlockingIOError):
                    self.peer.send(data, socket.MSG_DONTWAIT)

    def read(self, size: int) -> bytes:
        """Return the bytes that have arrived, at most ``size``."""
        found = bytearray()
        with suppress(ConnectionError):
            while len(found) < size and (more := self.peer.recv(size - len(found))):
                found += more
        return bytes(found)


def nothing() -> Iterator[bytes]:
    return iter(())


@contextmanager
def served(
    timing: Timing,
    receive: Callable[[bytes], None] = lambda message: None,
    pull: Callable[[], Iterator[bytes]] = nothing,
    max_message: int = 1000,
    connections: Connections | None = None,
) -> Iterator[Pair]:
    ours, theirs = socket.socketpair()
    theirs.settimeout(PATIENCE)
    pair = Pair(Connection(ours, timing, max_message), theirs)
    pair.connections = connections or pair.connections
    thread = threading.Thread(target=pair.serve, args=(receive, pull))
    thread.start()
    try:
        yield pair
    finally:
        theirs.close()
        thread.join(PATIENCE)
        ours.close()
    assert not thread.is_alive()
    assert pair.raised == []
