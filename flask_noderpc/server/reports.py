"""Reports of a node's processes to their parent: ready, or why they can't start."""

from __future__ import annotations

import os
import socket
from contextlib import suppress

from .. import jsoncodec

_END = b"\0"
_MAX_BYTES = 1 << 16


class _Report(jsoncodec.Struct):
    process: int
    refusal: str = ""


def report_ready(descriptor: int) -> None:
    """Tell the parent that this process serves."""
    _write(descriptor, _Report(os.getpid()))


def report_refusal(descriptor: int, reason: str) -> None:
    """Tell the parent why this process can't start."""
    _write(descriptor, _Report(os.getpid(), reason))


def _write(descriptor: int, report: _Report) -> None:
    # Where the parent has gone, its processes end.
    with suppress(BrokenPipeError, ConnectionResetError):
        os.write(descriptor, jsoncodec.encode(report) + _END)


class Reports:
    """The reports that came through a socket that all processes write to."""

    def __init__(self, own: socket.socket) -> None:
        self._own = own
        self._buffer = b""
        self.ready: set[int] = set()
        """The processes that are."""
        self.refusal = ""
        """Why the first that knew can't start: all have the same settings."""

    def read(self) -> None:
        """Take what has come, without waiting for more."""
        try:
            self._buffer += self._own.recv(_MAX_BYTES, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        *whole, self._buffer = self._buffer.split(_END)
        for text in whole:
            report = jsoncodec.decode(text, _Report)
            if report.refusal:
                self.refusal = self.refusal or report.refusal
            else:
                self.ready.add(report.process)

    def forget(self, process: int) -> None:
        """Drop a process that has ended: another may get its number."""
        self.ready.discard(process)
