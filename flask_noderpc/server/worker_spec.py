"""Specs of worker processes, which each gets at its start, and the reports that they send."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from .. import jsoncodec
from ..errors import NodeRPCError
from .output import LogOptions, WorkerFailed, exit_status


@dataclass(frozen=True, slots=True)
class Listener:
    """A listening socket, by its file descriptor, and the API surface that is served there."""

    descriptor: int
    surface: str
    """Name of the surface in :func:`.addresses.surfaces`."""
    certificate: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """Spec of one process: its app, its sockets and its settings."""

    row: int = 0
    """This process's row in the counters."""
    processes: int = 1
    """Number of processes of the node, which share the memory for caches."""
    listeners: tuple[Listener, ...] = ()
    app: str = ""
    """Import path of the app, as in ``flask --app``; empty for the node's own app."""
    mount: str = "noderpc"
    settings: dict[str, Any] = field(default_factory=dict)
    """Settings of the node's own app, by name."""
    folder: str = ""
    """Folder of the chain of the node's own app."""
    pages: tuple[str, ...] = ()
    """Names of the page sets of the node's own app."""
    logs: LogOptions = field(default_factory=LogOptions)
    restarted: bool = False
    """True if a predecessor was ready: then this process serves even if the node can't start,
    so that clients get the error."""
    metrics: str = ""
    """Folder of the metrics that the processes share; empty without metrics."""
    watched: int = -1
    """Descriptor of a socket to the parent: it carries reports, and the other end is closed
    when the parent ends."""
    counters: int = -1
    """Descriptor of the :func:`~flask_noderpc.shared.counter_file` of the node."""

    def encode(self) -> bytes:
        """Return the spec as JSON."""
        return jsoncodec.encode(self)

    @classmethod
    def decode(cls, text: bytes, descriptors: Sequence[int]) -> WorkerSpec:
        """Return the spec from the JSON of :meth:`encode`, with this process's copies of the
        descriptors of ``watched``, ``counters`` and the listeners."""
        spec = jsoncodec.decode(text, cls)
        watched, counters, *sockets = descriptors
        listeners = (
            replace(each, descriptor=descriptor)
            for each, descriptor in zip(spec.listeners, sockets, strict=True)
        )
        return replace(spec, watched=watched, counters=counters, listeners=tuple(listeners))


_END = b"\0"
_MAX_BYTES = 1 << 16


class _Report(jsoncodec.Struct):
    process: int
    refusal: str = ""
    status: int = 0
    stored: int = 0


def report_ready(descriptor: int) -> None:
    """Tell the parent process that this process is ready to serve."""
    _write(descriptor, _Report(os.getpid()))


def report_stored(descriptor: int, height: int) -> None:
    """Tell the parent process the height of the last block that this process has stored."""
    _write(descriptor, _Report(os.getpid(), stored=height))


def report_refusal(descriptor: int, error: NodeRPCError) -> None:
    """Tell the parent process why this process can't start."""
    _write(descriptor, _Report(os.getpid(), str(error), exit_status(error)))


def _write(descriptor: int, report: _Report) -> None:
    # Ignore that the parent has ended: this process notices that elsewhere, and ends.
    with suppress(BrokenPipeError, ConnectionResetError):
        os.write(descriptor, jsoncodec.encode(report) + _END)


class Reports:
    """Reader of the reports that all processes write to one socket."""

    def __init__(self, own: socket.socket) -> None:
        self._own = own
        self._buffer = b""
        self.ready: set[int] = set()
        """PIDs of the processes that are ready."""
        self.refusal: WorkerFailed | None = None
        """Error of the first process that could not start; the others fail in the same way."""
        self.stored = 0
        """Height of the last block that processes have reported at their end; 0 if none
        has."""

    def read(self) -> None:
        """Read the reports that have arrived, without waiting for more."""
        try:
            self._buffer += self._own.recv(_MAX_BYTES, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        *whole, self._buffer = self._buffer.split(_END)
        for text in whole:
            report = jsoncodec.decode(text, _Report)
            if report.refusal:
                self.refusal = self.refusal or WorkerFailed(report.refusal, report.status)
            elif report.stored:
                self.stored = max(self.stored, report.stored)
            else:
                self.ready.add(report.process)

    def forget(self, process: int) -> None:
        """Remove a process that has ended, as another may get its PID."""
        self.ready.discard(process)
