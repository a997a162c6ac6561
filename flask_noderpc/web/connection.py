"""One open websocket: the handler's thread reads frames, a writer thread writes them.

wsproto parses incoming frames. Outgoing text frames are encoded here, with a header of at most
ten bytes before the text, so that one write can send several. All waits and buffers are
bounded: a message is executed before the next one is read, a write has a deadline, a silent
peer is dropped, and closing closes the socket.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from math import inf

from wsproto.connection import Connection as Protocol
from wsproto.connection import ConnectionState, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Event, Ping, TextMessage
from wsproto.frame_protocol import CloseReason
from wsproto.utilities import LocalProtocolError

from ..concurrency import has_input, next_turn
from .frames import (
    TOO_MANY_SMALL,
    SizeLimit,
    SmallFrames,
    release_send_buffer,
    reserve_send_buffer,
)

# Maximum bytes of one read.
_READ_BYTES = 4096
# Seconds of executing messages before a yield to other greenlets.
_SLICE_S = 0.0005
# Seconds between two polls for more messages, while earlier calls wait.
_POLL_S = 0.01
# Maximum bytes of one write.
_WRITE = 65536

_TOO_SLOW = "too slow: nothing was read for long"

_OPEN_STATES = (ConnectionState.OPEN, ConnectionState.LOCAL_CLOSING)


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds; all except the last are CometBFT's."""

    ping_s: float = 27.0
    read_s: float = 30.0
    write_s: float = 10.0
    close_s: float = 2.0
    """Maximum wait for the peer's Close frame."""


def text_frame(payload: bytes) -> bytes:
    """Return the header of an unmasked text frame, and the payload."""
    size = len(payload)
    if size < 126:
        return b"\x81" + bytes((size,)) + payload
    if size < 1 << 16:
        return b"\x81\x7e" + struct.pack("!H", size) + payload
    return b"\x81\x7f" + struct.pack("!Q", size) + payload


class Connection:
    """The frames of one websocket, from a socket whose handshake is done; ``early`` are its
    first bytes, if the server has already read them."""

    def __init__(
        self, sock: socket.socket, timing: Timing, max_message: int, early: bytes = b""
    ) -> None:
        # The deadlines are checked by the clock: reading and writing have one each, but a
        # socket has only one timeout, and with TLS OpenSSL applies none. But without any
        # timeout a reader may keep the writer out of OpenSSL.
        self._sock = sock
        self._early = early
        sock.settimeout(timing.read_s + timing.write_s)
        reserve_send_buffer(sock)
        self._read_by = self._write_by = inf
        self._last_write_by = inf
        self._pull: Callable[[], Iterator[bytes]]
        self._cancel: Callable[[], Iterable[bytes]]
        self._settle: Callable[[float], bool]
        self._timing = timing
        self._protocol = Protocol(ConnectionType.SERVER, [SizeLimit(max_message)])
        self._small = SmallFrames()
        self._frames: list[bytes] = []
        self._pong = b""
        self._lock = threading.Lock()
        self._wakeup = threading.Event()
        self._written_changed = threading.Condition(self._lock)
        # Numbers of messages that send() has queued, and that the writer has started to write
        # and has written.
        self._queued = self._started = self._written = 0
        self._next_ping = time.monotonic() + timing.ping_s
        self._close_by = inf
        self._is_receiving = False
        self._is_broken = self._has_read = self._has_ended = self._is_slow = False
        self._peer_closed = False
        """True if the peer has closed its socket; data that it sent before may still be
        readable."""

    def run(
        self,
        receive: Callable[[bytes], None],
        pull: Callable[[], Iterator[bytes]],
        cancel: Callable[[], Iterable[bytes]] = tuple,
        settle: Callable[[float], bool] = lambda seconds: False,
    ) -> None:
        """Serve the connection until its end; the socket is shut down when this returns.

        ``receive`` is called with each message, ``pull`` by the writer for pending messages,
        first and after each :meth:`wake`, and ``cancel`` for the last messages to a peer that
        reads nothing. ``settle`` is called while no more messages arrive, to send, within the
        given seconds, responses of calls that ``receive`` has started; it returns whether any
        are left.
        """
        self._pull, self._cancel, self._settle = pull, cancel, settle
        writer = threading.Thread(target=self._write, name="noderpc-websocket", daemon=True)
        writer.start()
        try:
            for message in self._messages():
                receive(message)
        finally:
            self._has_read = True
            self._wakeup.set()
            writer.join()

    def send(self, *payloads: bytes) -> None:
        """Send messages; return when they are written, so that a peer that sends too fast has
        to wait."""
        with self._lock:
            # After a Close frame nothing may be sent.
            if self._close_by != inf or self._has_ended:
                return
            self._frames += map(text_frame, payloads)
            self._queued += len(payloads)
            last = self._queued
        self._wakeup.set()
        # The writer has the deadline, and notifies when it ends, too.
        with self._written_changed:
            self._written_changed.wait_for(lambda: self._written >= last or self._has_ended)

    def wake(self) -> None:
        """Wake the writer: messages are ready."""
        self._wakeup.set()

    def close(self, code: int = CloseReason.NORMAL_CLOSURE, reason: str = "") -> None:
        """Send a Close frame, and give the peer a short time to respond."""
        # The peer or its own thread may already have closed it.
        with suppress(LocalProtocolError), self._lock:
            self._frames.append(self._protocol.send(CloseConnection(code, reason)))
            self._close_by = time.monotonic() + self._timing.close_s
        self._wakeup.set()

    def drop(self, reason: str) -> None:
        """Close the connection of a slow peer, which may reconnect."""
        self.close(CloseReason.TRY_AGAIN_LATER, reason)

    def check_deadlines(self) -> None:
        """Ping, or drop a peer that exceeds a deadline; called a few times a second."""
        now = time.monotonic()
        if now >= self._read_by and self._is_receiving:
            # The peer is silent, but still receives earlier data: our ping is queued behind it.
            self._is_receiving = False
            self._read_by = now + self._timing.read_s
        if now >= min(self._read_by, self._close_by):
            self._end()
        elif now >= self._write_by:
            self._close_slow_peer(now)
        elif self._close_by != inf:
            if self._write_by == self._last_write_by != inf:
                # The same write as at the last check: a Close frame would arrive too late.
                self._stop_events()
            self._last_write_by = self._write_by
        elif now >= self._next_ping:
            self._next_ping = now + self._timing.ping_s
            with suppress(LocalProtocolError), self._lock:
                self._frames.append(self._protocol.send(Ping()))
            self._wakeup.set()

    def _close_slow_peer(self, now: float) -> None:
        """Send a peer that reads nothing what its buffer still accepts: after the current
        message, the notices that its subscriptions are canceled, and a Close frame."""
        if self._is_slow:
            self._end()
            return
        self._stop_events()
        self._write_by = now + self._timing.close_s
        notices = [text_frame(notice) for notice in self._cancel()]
        with self._lock:
            self._frames += notices
        self.drop(_TOO_SLOW)

    def _stop_events(self) -> None:
        """Release reserved send buffer for the messages after the current one."""
        self._is_slow = True
        release_send_buffer(self._sock)

    def _end(self) -> None:
        """Shut the socket down, so that the reader and the writer notice."""
        self._has_ended = True
        self._wakeup.set()
        with suppress(OSError):
            # The method of TLS sockets would let the other threads continue in plain text.
            socket.socket.shutdown(self._sock, socket.SHUT_RDWR)

    # Reading.

    def _messages(self) -> Iterator[bytes]:
        message = bytearray()
        while self._protocol.state in _OPEN_STATES and not self._is_over():
            for event in self._events():
                if self._small.are_too_many(event):
                    self._refuse(CloseReason.POLICY_VIOLATION, TOO_MANY_SMALL)
                    break
                if not isinstance(event, TextMessage | BytesMessage):
                    self._answer(event)
                elif self._protocol.state is not ConnectionState.OPEN:
                    # After our Close frame, later messages are dropped.
                    message.clear()
                else:
                    message += _bytes(event.data)
                    if event.message_finished:
                        yield bytes(message)
                        message.clear()

    def _is_over(self) -> bool:
        # A client may send transactions and leave without reading the responses; they still
        # count.
        return self._has_ended and not (self._peer_closed and has_input(self._sock))

    def _events(self) -> Iterator[Event]:
        while not (has_input(self._sock) or self._has_ended) and self._settle(_POLL_S):
            pass
        if self._read_by == inf:
            self._read_by = time.monotonic() + self._timing.read_s
        try:
            received = self._early or self._sock.recv(_READ_BYTES)
        except TimeoutError:
            return
        except OSError:
            # Connection reset.
            received = b""
        self._read_by, self._early = inf, b""
        if not (received and self._is_broken):
            self._protocol.receive_data(received or None)
            yield from self._yielding(self._protocol.events())
        # Under gevent a socket with more data to read lets no other greenlet run.
        next_turn()

    def _yielding(self, events: Iterable[Event]) -> Iterator[Event]:
        ends = time.monotonic() + _SLICE_S
        for event in events:
            yield event
            if time.monotonic() >= ends:
                next_turn()
                ends = time.monotonic() + _SLICE_S

    def _answer(self, event: Event) -> None:
        if isinstance(event, Ping):
            # RFC 6455, 5.5.3: after several pings, a pong for the last one is enough.
            with suppress(LocalProtocolError), self._lock:
                self._pong = self._protocol.send(event.response())
            self._wakeup.set()
        elif isinstance(event, CloseConnection):
            # Earlier messages get their responses first.
            self._settle(inf)
            # wsproto creates a Close event for a malformed frame, with a code that says what is
            # wrong. gorilla/websocket gives no reason for a message that is too big.
            reason = "" if event.code == CloseReason.MESSAGE_TOO_BIG else event.reason or ""
            if self._protocol.state in _OPEN_STATES:
                self._refuse(event.code, reason)
            else:
                self.close(event.code, reason)

    def _refuse(self, code: int, reason: str) -> None:
        """Close the connection, and read no more frames: after a malformed one the next can't
        be parsed, and after too many they are unwanted."""
        self._is_broken = True
        self.close(code, reason)

    # Writing.

    def _write(self) -> None:
        try:
            while not self._has_ended:
                self._wakeup.clear()
                # Read before the queue: the reader's last frame is in it by then.
                has_read = self._has_read
                if self._write_waiting():
                    with self._written_changed:
                        self._written = self._started
                        self._written_changed.notify_all()
                elif has_read:
                    return
                if not has_read:
                    self._wakeup.wait()
        except (ConnectionResetError, BrokenPipeError):
            self._peer_closed = not self._has_ended
        except OSError:
            # Deadline exceeded.
            pass
        finally:
            self._end()
            with self._written_changed:
                self._written_changed.notify_all()

    def _write_waiting(self) -> bool:
        """Write the queued messages, if any; return true if there were some."""
        anything = False
        for piece in _pieces(self._waiting()):
            anything = True
            self._transmit(piece)
            # A ping that the kernel accepts does not show that the peer reads.
            self._is_receiving |= len(piece) == _WRITE
        return anything

    def _transmit(self, piece: bytes) -> None:
        self._write_by = time.monotonic() + self._timing.write_s
        # Usually all of it is sent at once, and gevent's sendall() first asks the kernel how
        # much it accepts.
        sent = self._sock.send(piece)
        if sent < len(piece):
            self._sock.sendall(piece[sent:])
        self._write_by = inf

    def _waiting(self) -> Iterator[bytes]:
        if self._frames or self._pong:
            with self._lock:
                frames, self._frames = self._frames, []
                pong, self._pong = self._pong, b""
                self._started = self._queued
            yield pong
            yield from frames
        if not self._has_read and self._close_by == inf:
            for payload in self._pull():
                yield text_frame(payload)
                if self._is_slow:
                    return


def _pieces(frames: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the frames as writes of one size: a deadline is for one write."""
    waiting = bytearray()
    for frame in frames:
        waiting += frame
        while len(waiting) >= _WRITE:
            yield bytes(waiting[:_WRITE])
            del waiting[:_WRITE]
    if waiting:
        yield bytes(waiting)


def _bytes(data: str | bytes | bytearray) -> bytes | bytearray:
    return data.encode() if isinstance(data, str) else data
