"""Limits of one websocket: its frames, and its send buffer, part of which is reserved for a
Close frame.

If a peer reads nothing, a server can write until that buffer is full. Linux buffers a few
megabytes for one connection, and then accepts not even a Close frame.
"""

from __future__ import annotations

import socket
import time
from contextlib import suppress

from wsproto.events import BytesMessage, Event, Ping, Pong, TextMessage
from wsproto.extensions import Extension
from wsproto.frame_protocol import CloseReason, FrameDecoder, FrameProtocol, Opcode, RsvBits

# Frames that cost more to read than to send. A message of any size is limited by its response,
# and so is its last fragment.
_SMALL_BYTES = 64
SMALL_PER_S = 100
TOO_MANY_SMALL = (
    f"more than {SMALL_PER_S} pings, pongs and fragments under {_SMALL_BYTES} bytes a second"
)

_NO_BITS = RsvBits(False, False, False)


class SizeLimit(Extension):
    """Limit for the size of a message, checked when the header of a frame is read.

    It is not negotiated: wsproto passes headers to extensions.
    """

    name = "size-limit"

    def __init__(self, max_message: int) -> None:
        self._max_message = max_message
        self._size = 0

    def enabled(self) -> bool:
        """Return true."""
        return True

    def offer(self) -> bool:
        """Offer no extension to the peer."""
        return False

    def frame_inbound_header(
        self,
        proto: FrameDecoder | FrameProtocol,
        opcode: Opcode,
        rsv: RsvBits,
        payload_length: int,
    ) -> CloseReason | RsvBits:
        """Return no bits of the header, or the code with which to close."""
        if not opcode.iscontrol():
            earlier = self._size if opcode is Opcode.CONTINUATION else 0
            self._size = earlier + payload_length
            if self._size > self._max_message:
                return CloseReason.MESSAGE_TOO_BIG
        return _NO_BITS


class SmallFrames:
    """Counter of small frames in the current second."""

    def __init__(self) -> None:
        self._second = 0.0
        self._count = 0
        self._size = 0
        """Bytes of the current fragment."""

    def are_too_many(self, event: Event) -> bool:
        """Return true if the frame exceeds the limit of small frames."""
        return self._is_small(event) and self._count_one() > SMALL_PER_S

    def _is_small(self, event: Event) -> bool:
        if not isinstance(event, TextMessage | BytesMessage):
            return isinstance(event, Ping | Pong)
        self._size += len(event.data)
        if not event.frame_finished:
            return False
        size, self._size = self._size, 0
        return size < _SMALL_BYTES and not event.message_finished

    def _count_one(self) -> int:
        now = time.monotonic()
        if now >= self._second + 1:
            self._second, self._count = now, 0
        self._count += 1
        return self._count


# Maximum unsent bytes in the kernel's buffer, without bytes in flight.
_MAX_UNSENT = 1 << 17
# As setsockopt(2) expects them; the kernel has another limit, net.core.wmem_max.
_SMALL, _LARGE = 1 << 15, 1 << 20
_UNLIMITED = 0


def reserve_send_buffer(sock: socket.socket) -> None:
    """Limit the bytes that the kernel buffers."""
    _set(sock, _MAX_UNSENT, _SMALL)


def release_send_buffer(sock: socket.socket) -> None:
    """Restore the full send buffer, which wakes a blocked writer."""
    _set(sock, _UNLIMITED, _LARGE)


def _set(sock: socket.socket, unsent: int, whole: int) -> None:
    # The socket may be shut down, and not all systems have the option.
    with suppress(OSError, AttributeError):
        if sock.family == socket.AF_UNIX:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, whole)
        else:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, unsent)
