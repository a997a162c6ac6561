"""One open websocket: the handler's thread reads it, and one writer writes.

Frames that come in are wsproto's business. A text frame that goes out is a header of at
most ten bytes, made here, so that many can be joined into one write. Nothing waits for
ever and nothing grows without bound: a message is answered before the next one is read,
a write has a deadline, a silent peer is dropped, and closing closes the socket.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from wsproto.connection import Connection as Protocol
from wsproto.connection import ConnectionState, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Event, Ping, TextMessage
from wsproto.frame_protocol import CloseReason
from wsproto.utilities import LocalProtocolError

_CHUNK = 65536


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds; all but the last are CometBFT's."""

    ping_s: float = 27.0
    read_s: float = 30.0
    write_s: float = 10.0
    close_s: float = 2.0
    """How long our Close may stay without an answer."""


def text_frame(payload: bytes) -> bytes:
    """The header of an unmasked text frame, and the payload."""
    size = len(payload)
    if size < 126:
        return b"\x81" + bytes((size,)) + payload
    if size < 1 << 16:
        return b"\x81\x7e" + struct.pack("!H", size) + payload
    return b"\x81\x7f" + struct.pack("!Q", size) + payload


class Connection:
    """The frames of one websocket, from a socket whose handshake is done."""

    def __init__(self, sock: socket.socket, timing: Timing, max_message: int) -> None:
        # A timeout belongs to a socket object, so reading and writing have one each.
        self._in, self._out = sock, sock.dup()
        self._in.settimeout(timing.read_s)
        self._out.settimeout(timing.write_s)
        self._pull: Callable[[], list[bytes]] = list
        self._timing = timing
        self._max_message = max_message
        self._protocol = Protocol(ConnectionType.SERVER)
        self._frames: list[bytes] = []
        self._lock = threading.Lock()
        self._wakeup = threading.Event()
        self._written = threading.Event()
        self._ending = False

    def run(self, receive: Callable[[bytes], None], pull: Callable[[], list[bytes]]) -> None:
        """Serve the connection to its end; the socket is shut when this returns.

        ``receive`` is called with each message, ``pull`` by the writer for the messages
        that wait, first and after each :meth:`wake`.
        """
        self._pull = pull
        writer = threading.Thread(target=self._write, name="noderpc-websocket", daemon=True)
        writer.start()
        try:
            for message in self._messages():
                receive(message)
        finally:
            self._ending = True
            self._wakeup.set()
            writer.join()
            self._shut()

    def send(self, payload: bytes) -> None:
        """Send a message; it is written when this returns, so a flood waits at its peer."""
        self._written.clear()
        with self._lock:
            self._frames.append(text_frame(payload))
        self._wakeup.set()
        self._written.wait(self._timing.write_s)

    def wake(self) -> None:
        """There is something to pull."""
        self._wakeup.set()

    def close(self, code: int = CloseReason.NORMAL_CLOSURE, reason: str = "") -> None:
        """Say goodbye; the peer has a short while to answer."""
        # It may be closed already, by the peer or by its own thread.
        with suppress(LocalProtocolError, OSError):
            self._control(CloseConnection(code, reason))
            self._in.settimeout(self._timing.close_s)

    # Reading.

    def _messages(self) -> Iterator[bytes]:
        parts: list[bytes] = []
        size = 0
        while self._protocol.state in (ConnectionState.OPEN, ConnectionState.LOCAL_CLOSING):
            for event in self._events():
                if not isinstance(event, TextMessage | BytesMessage):
                    self._answer(event)
                    continue
                parts.append(_bytes(event.data))
                size += len(parts[-1])
                if size > self._max_message:
                    self.close(CloseReason.MESSAGE_TOO_BIG, "the message is too large")
                elif event.message_finished and self._protocol.state is ConnectionState.OPEN:
                    message, parts, size = b"".join(parts), [], 0
                    yield message

    def _events(self) -> Iterator[Event]:
        try:
            received = self._in.recv(_CHUNK)
        except OSError:
            # Silent for too long, or cut off.
            received = b""
        self._protocol.receive_data(received or None)
        yield from self._protocol.events()

    def _answer(self, event: Event) -> None:
        if isinstance(event, Ping):
            self._control(event.response())
        elif isinstance(event, CloseConnection):
            # wsproto makes one of a broken frame, with the code that says what is broken.
            self.close(event.code, event.reason or "")
            self._ending = True

    # Writing.

    def _control(self, event: Event) -> None:
        with self._lock:
            self._frames.append(self._protocol.send(event))
        self._wakeup.set()

    def _write(self) -> None:
        next_ping = time.monotonic() + self._timing.ping_s
        try:
            while True:
                self._wakeup.clear()
                waiting = self._take()
                if waiting:
                    self._out.sendall(b"".join(waiting))
                    self._written.set()
                elif self._ending:
                    return
                elif not self._wakeup.wait(max(0.0, next_ping - time.monotonic())):
                    next_ping += self._timing.ping_s
                    with suppress(LocalProtocolError):
                        self._control(Ping())
        except OSError:
            # Past its deadline, or gone: whoever reads must notice too.
            self._shut()
        finally:
            self._written.set()

    def _take(self) -> list[bytes]:
        with self._lock:
            frames, self._frames = self._frames, []
        return frames + [text_frame(payload) for payload in self._pull()]

    def _shut(self) -> None:
        with suppress(OSError):
            self._out.shutdown(socket.SHUT_RDWR)
        self._out.close()


def _bytes(data: str | bytes | bytearray) -> bytes:
    return data.encode() if isinstance(data, str) else bytes(data)
