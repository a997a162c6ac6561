"""Bodies of requests: read in turns, and in chunks whose framing is bounded.

gevent.pywsgi reads trailers and the framing of chunks without bound and byte by byte, and a
socket that always has more to read lets no other greenlet run.
"""

from __future__ import annotations

import re
import socket
from io import RawIOBase
from typing import Any

from gevent.pywsgi import Input, _InvalidClientInput

from ..concurrency import next_turn
from .http_hardening import read_trailers

# Go: net/http/internal/chunked.go. Nothing but a line's end may hold a CR or an LF: others
# would see another end.
_CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,16})(?:;[^\r\n]*)?\r\n")
_MAX_LINE = 4096
# Go: what the framing of a chunk may take, and by how much all may exceed that together.
_FRAMING_BYTES, _MAX_EXCESS = 16, 16_384


class InTurns(RawIOBase):
    """The bytes of a socket; others have their turn before a second piece is read."""

    def __init__(self, raw: socket.SocketIO) -> None:
        self._raw = raw
        self._sock = raw._sock  # type: ignore[attr-defined]  # where websockets look for it
        self.has_read = False
        """True if a piece was read in this turn."""

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Read into the buffer; how many bytes came."""
        if self.has_read:
            next_turn()
        self.has_read = True
        return self._raw.readinto(buffer)

    def close(self) -> None:
        """Close the socket's file."""
        self._raw.close()
        super().close()


class Body(Input):  # type: ignore[misc]  # gevent has no types
    """A body with a length, or in chunks."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._excess = 0

    def _chunked_read(self, length: int | None = None, use_readline: bool = False) -> bytes:
        self._send_100_continue()
        read = self.rfile.readline if use_readline else self.rfile.read
        parts: list[bytes] = []
        while self.chunk_length != 0 and length != 0:
            left = self.chunk_length - self.position
            if left <= 0:
                self._begin_chunk()
                continue
            part = read(left if length is None else min(left, length))
            self.position += len(part)
            if not part or (len(part) == left and self.rfile.read(2) != b"\r\n"):
                raise self._broken("a chunk of another length than it says")
            parts.append(part)
            if length is not None:
                length -= len(part)
            if use_readline and part.endswith(b"\n"):
                break
        return b"".join(parts)

    def _begin_chunk(self) -> None:
        line = self.rfile.readline(_MAX_LINE)
        found = _CHUNK_LINE.fullmatch(line)
        if found is None:
            raise self._broken("a line that begins no chunk")
        size = int(found[1], 16)
        self._excess = max(0, self._excess + len(line) + 2 - _FRAMING_BYTES - 2 * size)
        if self._excess > _MAX_EXCESS:
            raise self._broken("chunked encoding contains too much non-data")
        if size == 0:
            self._end_chunks()
        self.chunk_length, self.position = size, 0

    def _end_chunks(self) -> None:
        try:
            read_trailers(self.rfile)
        except ValueError as error:
            raise self._broken(str(error)) from None

    def _broken(self, reason: str) -> OSError:
        # Nothing behind it is read.
        self._chunked_input_error = True
        error: OSError = _InvalidClientInput(reason)
        return error
