"""Limits of one websocket: on its frames, and on its send buffer.

If a peer does not read, the kernel's send buffer of a few megabytes becomes full, and then not
even a Close frame can be written. Part of the buffer is therefore reserved.
"""

from __future__ import annotations

import socket
import time
from contextlib import suppress

from wsproto.events import BytesMessage, Event, Ping, Pong, TextMessage
from wsproto.extensions import Extension
from wsproto.frame_protocol import CloseReason, FrameDecoder, FrameProtocol, Opcode, RsvBits

# Pings, pongs and small fragments cost more to read than to send, so their rate is limited. A
# message needs no limit, as its sender must read the response.
_SMALL_BYTES = 64
SMALL_PER_S = 100
TOO_MANY_SMALL = (
    f"more than {SMALL_PER_S} pings, pongs and fragments under {_SMALL_BYTES} bytes a second"
)

_NO_BITS = RsvBits(False, False, False)


class SizeLimit(Extension):
    """Limit on the size of a message, which is checked when the header of a frame is read.

    It is an extension because wsproto passes headers only to extensions; it is not negotiated
    with the peer.
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
        """Return no reserved bits, or the code with which to close if the message is too
        big."""
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
# Sizes of a Unix socket's send buffer for setsockopt(2); net.core.wmem_max also limits them.
_SMALL, _LARGE = 1 << 15, 1 << 20
_UNLIMITED = 0


def reserve_send_buffer(sock: socket.socket) -> None:
    """Limit the unsent bytes that the kernel buffers, so that a Close frame has space
    later."""
    _set(sock, _MAX_UNSENT, _SMALL)


def release_send_buffer(sock: socket.socket) -> None:
    """Restore the full send buffer, which wakes a blocked writer."""
    _set(sock, _UNLIMITED, _LARGE)


def _set(sock: socket.socket, unsent: int, whole: int) -> None:
    # Ignore errors: the socket may be shut down, and not all systems have the option.
    with suppress(OSError, AttributeError):
        if sock.family == socket.AF_UNIX:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, whole)
        else:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, unsent)
