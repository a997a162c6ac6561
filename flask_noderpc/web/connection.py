"""One open websocket: the handler's thread reads frames, a writer thread writes them.

wsproto parses incoming frames. Outgoing text frames are encoded here, so that one write can
send several of them. All waits and buffers are bounded: a message is executed before the next
one is read, a write has a deadline, and a silent peer is disconnected.
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
# Seconds between two polls for more messages, while earlier calls have no response yet.
_POLL_S = 0.01
# Maximum bytes of one write.
_WRITE = 65536

_TOO_SLOW = "too slow: the client has not read for too long"

_OPEN_STATES = (ConnectionState.OPEN, ConnectionState.LOCAL_CLOSING)


@dataclass(frozen=True, slots=True)
class Timing:
    """Intervals and timeouts in seconds; all except ``close_s`` are CometBFT's."""

    ping_s: float = 27.0
    read_s: float = 30.0
    write_s: float = 10.0
    close_s: float = 2.0
    """Maximum wait for the peer's Close frame."""


def text_frame(payload: bytes) -> bytes:
    """Return an unmasked text frame with this payload."""
    size = len(payload)
    if size < 126:
        return b"\x81" + bytes((size,)) + payload
    if size < 1 << 16:
        return b"\x81\x7e" + struct.pack("!H", size) + payload
    return b"\x81\x7f" + struct.pack("!Q", size) + payload


class Connection:
    """Connection of one websocket, on a socket whose handshake is done.

    ``early`` are bytes that the server has read from the socket after the handshake.
    """

    def __init__(
        self, sock: socket.socket, timing: Timing, max_message: int, early: bytes = b""
    ) -> None:
        # Reading and writing have separate deadlines, which check_deadlines() enforces, as a
        # socket has only one timeout, which OpenSSL ignores. This timeout only ensures that a
        # reader does not hold OpenSSL's lock forever.
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
        # Counts of messages that send() has queued, that the writer has begun to write, and
        # that it has written.
        self._queued = self._started = self._written = 0
        self._next_ping = time.monotonic() + timing.ping_s
        self._close_by = inf
        self._is_receiving = False
        self._is_broken = self._has_read = self._has_ended = self._is_slow = False
        self._peer_closed = False
        """True if the peer has closed its socket; data that it sent before may still have to
        be read."""

    def run(
        self,
        receive: Callable[[bytes], None],
        pull: Callable[[], Iterator[bytes]],
        cancel: Callable[[], Iterable[bytes]] = tuple,
        settle: Callable[[float], bool] = lambda seconds: False,
    ) -> None:
        """Serve the connection until its end; the socket is shut down when this returns.

        ``receive`` is called with each message. ``pull`` is called at the start and after each
        :meth:`wake`, and returns messages to send. ``cancel`` returns the last messages to a
        peer that does not read. ``settle`` is called while no messages arrive: it sends,
        within the given seconds, responses to calls that ``receive`` has started, and returns
        true if some remain.
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
        """Send messages and return when they are written, so that no more calls of a peer are
        read before."""
        with self._lock:
            # After a Close frame nothing may be sent.
            if self._close_by != inf or self._has_ended:
                return
            self._frames += map(text_frame, payloads)
            self._queued += len(payloads)
            last = self._queued
        self._wakeup.set()
        # Wait without a timeout: the writer has a deadline, and also notifies when it ends.
        with self._written_changed:
            self._written_changed.wait_for(lambda: self._written >= last or self._has_ended)

    def wake(self) -> None:
        """Wake the writer, as ``pull`` has messages."""
        self._wakeup.set()

    def close(self, code: int = CloseReason.NORMAL_CLOSURE, reason: str = "") -> None:
        """Send a Close frame; the peer has ``close_s`` seconds to respond."""
        # The connection may already be closed, by the peer or by the reader's thread.
        with suppress(LocalProtocolError), self._lock:
            self._frames.append(self._protocol.send(CloseConnection(code, reason)))
            self._close_by = time.monotonic() + self._timing.close_s
        self._wakeup.set()

    def drop(self, reason: str) -> None:
        """Close the connection with a code that tells the peer to reconnect later."""
        self.close(CloseReason.TRY_AGAIN_LATER, reason)

    def check_deadlines(self) -> None:
        """Send a due ping, or drop a peer that exceeds a deadline; called four times a
        second."""
        now = time.monotonic()
        if now >= self._read_by and self._is_receiving:
            # Extend the deadline of a silent peer that still receives data: the ping is queued
            # behind that data.
            self._is_receiving = False
            self._read_by = now + self._timing.read_s
        if now >= min(self._read_by, self._close_by):
            self._end()
        elif now >= self._write_by:
            self._close_slow_peer(now)
        elif self._close_by != inf:
            if self._write_by == self._last_write_by != inf:
                # The same write was in progress at the last check: without more send buffer,
                # the Close frame would be sent too late.
                self._stop_events()
            self._last_write_by = self._write_by
        elif now >= self._next_ping:
            self._next_ping = now + self._timing.ping_s
            with suppress(LocalProtocolError), self._lock:
                self._frames.append(self._protocol.send(Ping()))
            self._wakeup.set()

    def _close_slow_peer(self, now: float) -> None:
        """Send a peer that does not read its last messages, as far as the send buffer has
        space: the rest of the current one, notices of canceled subscriptions, and a Close
        frame."""
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
        """Stop sending events, and release the reserved part of the send buffer."""
        self._is_slow = True
        release_send_buffer(self._sock)

    def _end(self) -> None:
        """Shut the socket down, which ends the reader and the writer."""
        self._has_ended = True
        self._wakeup.set()
        with suppress(OSError):
            # Don't call the method of TLS sockets, after which other threads would continue in
            # plain text.
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
                    # Ignore messages that arrive after our Close frame was sent.
                    message.clear()
                else:
                    message += _bytes(event.data)
                    if event.message_finished:
                        yield bytes(message)
                        message.clear()

    def _is_over(self) -> bool:
        # After the peer has closed, read what it sent before: a client may send transactions
        # and disconnect without reading the responses.
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
        # Under gevent, reads of available data never yield, so let other greenlets run.
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
            # Replace an unsent pong: RFC 6455, 5.5.3 only requires a pong for the last ping.
            with suppress(LocalProtocolError), self._lock:
                self._pong = self._protocol.send(event.response())
            self._wakeup.set()
        elif isinstance(event, CloseConnection):
            # Send the responses to earlier messages before the Close frame.
            self._settle(inf)
            # wsproto also makes a Close event for a malformed frame, with code and reason of
            # the error. gorilla/websocket sends no reason for a message that is too big.
            reason = "" if event.code == CloseReason.MESSAGE_TOO_BIG else event.reason or ""
            if self._protocol.state in _OPEN_STATES:
                self._refuse(event.code, reason)
            else:
                self.close(event.code, reason)

    def _refuse(self, code: int, reason: str) -> None:
        """Close the connection without reading more frames, as they can't be parsed after a
        malformed one, or exceed the limit."""
        self._is_broken = True
        self.close(code, reason)

    # Writing.

    def _write(self) -> None:
        try:
            while not self._has_ended:
                self._wakeup.clear()
                # Read the flag before the queue: if it is set, the queue has the last frame.
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
            # The socket was shut down after a deadline.
            pass
        finally:
            self._end()
            with self._written_changed:
                self._written_changed.notify_all()

    def _write_waiting(self) -> bool:
        """Write the queued messages; return true if there were any."""
        anything = False
        for piece in _pieces(self._waiting()):
            anything = True
            self._transmit(piece)
            # Only a full piece shows that the peer reads; a ping fits into the kernel's
            # buffer.
            self._is_receiving |= len(piece) == _WRITE
        return anything

    def _transmit(self, piece: bytes) -> None:
        self._write_by = time.monotonic() + self._timing.write_s
        # Try send() first, which usually sends everything; gevent's sendall() needs an
        # additional system call.
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
    """Yield the frames in pieces of equal size, as each write has its own deadline."""
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
