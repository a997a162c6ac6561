"""Limits to the frames of one websocket."""

from __future__ import annotations

import time

from wsproto.events import BytesMessage, Event, Ping, Pong, TextMessage
from wsproto.extensions import Extension
from wsproto.frame_protocol import CloseReason, FrameDecoder, FrameProtocol, Opcode, RsvBits

# Frames that cost more to read than to send. A message, whatever its size, is limited by its
# answer, and so is its last fragment.
_SMALL_BYTES = 64
SMALL_PER_S = 100
TOO_MANY_SMALL = (
    f"more than {SMALL_PER_S} pings, pongs and fragments under {_SMALL_BYTES} bytes a second"
)

_NO_BITS = RsvBits(False, False, False)


class SizeLimit(Extension):
    """A limit to the size of a message, checked when the header of a frame is read.

    It is not negotiated: wsproto asks extensions about headers.
    """

    name = "size-limit"

    def __init__(self, max_message: int) -> None:
        self._max_message = max_message
        self._size = 0

    def enabled(self) -> bool:
        """Always."""
        return True

    def offer(self) -> bool:
        """Nothing is offered to the peer."""
        return False

    def frame_inbound_header(
        self,
        proto: FrameDecoder | FrameProtocol,
        opcode: Opcode,
        rsv: RsvBits,
        payload_length: int,
    ) -> CloseReason | RsvBits:
        """No bits of the header, or the code to close with."""
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
        """Bytes of the fragment that is being read."""

    def are_too_many(self, event: Event) -> bool:
        """Return true if a frame that was read is one too many."""
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
