"""Supervisor of a node's processes: starts them, restarts each process that ends, and stops
all."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..shared import Counters, counter_file
from . import launch
from .output import FAILED, WorkerFailed
from .worker_spec import Reports, WorkerSpec

log = logging.getLogger("flask_noderpc.start")

_LOOK_S = 0.1
# Seconds between two checks whether settings have changed.
_ASK_S = 1.0
# Seconds before a process that does not stop is killed; a graceful shutdown takes less.
_PATIENCE_S = 15.0
# Maximum number of consecutive processes that may end before one is ready.
_MAX_FAILURES = 5
_MAX_PAUSE_S = 10.0


@dataclass(slots=True)
class _Child:
    spec: WorkerSpec
    process: subprocess.Popen[bytes]
    is_ready: bool = False
    failures: int = 0
    """Number of consecutive predecessors that ended before they were ready."""
    is_ending: bool = False
    """True while the process shuts down to be replaced by one with changed settings."""
    restart_at: float | None = None
    """Monotonic time at which to start a new process; ``None`` while this one runs."""

    @property
    def was_ready(self) -> bool:
        """True if this process or an earlier one was ready."""
        return self.is_ready or self.spec.restarted


class Supervisor:
    """Parent of a node's processes, which serves nothing itself.

    ``plans`` are the specs of the processes. ``when_ready`` is called once, when all processes
    are ready. ``changes`` returns changed settings, for which the serving processes are
    replaced one by one.
    """

    def __init__(
        self,
        plans: Sequence[WorkerSpec],
        when_ready: Callable[[], None],
        changes: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        self._when_ready: Callable[[], None] | None = when_ready
        self._changes = changes
        self._asked_at = 0.0
        self._changed: Mapping[str, Any] = {}
        # The system closes this socket when this process ends in any way, and its children end
        # when they notice.
        self._own, self._theirs = socket.socketpair()
        self._reports = Reports(self._own)
        self._file = counter_file(len(plans))
        self._counters = Counters(self._file)
        self._plans = plans
        self._children: list[_Child] = []
        self._ending = False
        self._signal = 0

    def run(self) -> None:
        """Supervise the processes until a signal arrives; raise
        :exc:`~flask_noderpc.server.output.WorkerFailed` if one can't start."""
        before = {
            number: signal.signal(number, self._end)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
            # Keep ignoring SIGHUP under nohup. Handle SIGINT even if a shell ignores it for a
            # background job, as geth and CometBFT do (Go: signal.Notify).
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN
        }
        # Ignore these signals, as nodes do (CometBFT and geth don't handle them).
        before |= {
            number: signal.signal(number, signal.SIG_IGN)
            for number in (signal.SIGUSR1, signal.SIGUSR2)
        }
        try:
            self._children = [_Child(spec, self._start(spec)) for spec in self._plans]
            while not self._ending:
                time.sleep(_LOOK_S)
                for child in self._children:
                    self._check_child(child)
                self._announce()
                self._renew()
        finally:
            self._stop()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _end(self, number: int, _frame: object) -> None:
        self._ending, self._signal = True, number

    def _say_stopped(self) -> None:
        if not self._signal:
            # Without a signal, the node stops because of an error, which is reported
            # elsewhere.
            return
        self._reports.read()
        name, height = signal.Signals(self._signal).name, self._reports.stored
        last = f"; the last block that it has produced is {height}" if height else ""
        extra = {"event": "stopped", "signal": name, **({"height": height} if height else {})}
        killed = [
            str(child.process.pid)
            for child in self._children
            if child.process.returncode == -signal.SIGKILL
        ]
        stored = (
            f"process {' and '.join(killed)} was killed, and its unstored data is lost"
            if killed
            else "all blocks are stored"
        )
        log.log(
            logging.WARNING if killed else logging.INFO,
            "the node has stopped after %s: %s%s",
            name,
            stored,
            last,
            extra=extra,
        )

    def _start(self, spec: WorkerSpec) -> subprocess.Popen[bytes]:
        descriptors = [each.descriptor for each in spec.listeners]
        descriptors = [self._theirs.fileno(), self._file, *descriptors]
        return launch.start(spec.encode(), descriptors, has_app=bool(spec.app))

    def _check_child(self, child: _Child) -> None:
        has_ended = child.process.poll() is not None
        # Read reports after the check for the process's end, so that none is missed.
        self._reports.read()
        child.is_ready = child.is_ready or child.process.pid in self._reports.ready
        if has_ended and not self._ending:
            if child.restart_at is None:
                self._count(child)
            elif time.monotonic() >= child.restart_at:
                self._replace(child)

    def _count(self, child: _Child) -> None:
        """Log the end of a process and set the time of its restart; raise an error if the node
        can't start."""
        child.failures = 0 if child.is_ready else child.failures + 1
        code = child.process.returncode
        # Don't restart a process that was never ready: it would fail again, unless it was
        # killed.
        if not child.was_ready and (code > 0 or child.failures >= _MAX_FAILURES):
            raise self._reports.refusal or WorkerFailed(
                f"a process of the node ended with status {code} before it was ready; see its"
                " output above",
                FAILED,
            )
        pid = child.process.pid
        extra = {"event": "process-ended", "pid": pid, "status": code}
        log.error("process %d ended with status %d", pid, code, extra=extra)
        pause = min(_MAX_PAUSE_S, float(child.failures))
        child.restart_at = time.monotonic() + pause
        # The others then accept connections without regard to this process.
        self._counters.close(child.spec.row)
        if child.spec.metrics:
            from prometheus_client.multiprocess import mark_process_dead

            # Remove the process's gauges from the metrics.
            mark_process_dead(child.process.pid, child.spec.metrics)

    def _replace(self, child: _Child) -> None:
        self._reports.forget(child.process.pid)
        child.spec = replace(child.spec, restarted=child.was_ready)
        child.process = self._start(child.spec)
        child.is_ready = child.is_ending = False
        child.restart_at = None

    def _renew(self) -> None:
        """Stop one process whose settings have changed, to replace it, if all processes are
        ready."""
        if time.monotonic() >= self._asked_at + _ASK_S:
            self._asked_at = time.monotonic()
            self._changed = self._changes()
        for child in self._children:
            if not child.is_ready or child.is_ending:
                return
        for child in self._children:
            settings = {**child.spec.settings, **self._changed}
            if child.spec.listeners and settings != child.spec.settings:
                child.spec = replace(child.spec, settings=settings)
                child.is_ending = True
                child.process.terminate()
                return

    def _announce(self) -> None:
        if self._when_ready and all(child.is_ready for child in self._children):
            self._when_ready()
            self._when_ready = None

    def _stop(self) -> None:
        for child in self._children:
            child.process.terminate()
        deadline = time.monotonic() + _PATIENCE_S
        for child in self._children:
            try:
                child.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                log.error(
                    "process %d did not stop within %g s and is killed",
                    child.process.pid,
                    _PATIENCE_S,
                )
                child.process.kill()
                child.process.wait()
        self._say_stopped()
        self._own.close()
        self._theirs.close()
        os.close(self._file)
