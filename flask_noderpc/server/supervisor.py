"""Starts the processes of a node, restarts those that end, and finally stops them all."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .output import FAILED, WorkerFailed
from .worker_spec import VARIABLE, Reports, WorkerSpec

log = logging.getLogger("flask_noderpc.start")

_LOOK_S = 0.1
# Seconds between two checks for changed settings.
_ASK_S = 1.0
# Longer than a process needs for a graceful shutdown.
_PATIENCE_S = 15.0
# Maximum number of times in a row that a process may end before it is ready.
_MAX_FAILURES = 5
_MAX_PAUSE_S = 10.0
# mallopt(3). By default glibc raises both thresholds to the size of the largest freed block:
# bodies and results then fragment a heap that never shrinks. Because of Python's lock, threads
# do not need separate heaps. The environment's own values take precedence.
_MALLOC = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": "131072",
    "MALLOC_TRIM_THRESHOLD_": "131072",
}


@dataclass(slots=True)
class _Child:
    spec: WorkerSpec
    process: subprocess.Popen[bytes]
    is_ready: bool = False
    failures: int = 0
    """Number of consecutive processes that ended before they were ready."""
    is_ending: bool = False
    """True while a process with changed settings is about to replace it."""
    restart_at: float | None = None
    """Time at which a new process is started after this one has ended."""

    @property
    def was_ready(self) -> bool:
        """True if this process or an earlier one was ready."""
        return self.is_ready or self.spec.restarted


class Supervisor:
    """The parent of a node's processes; it serves nothing itself.

    ``metrics`` is the folder in which they share their metrics, if any; ``when_ready`` is
    called once, as soon as all of them are ready. ``changes`` returns changed settings, with
    which the serving processes are replaced, one after another.
    """

    def __init__(
        self,
        plans: Sequence[WorkerSpec],
        when_ready: Callable[[], None],
        metrics: str = "",
        changes: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        self._when_ready: Callable[[], None] | None = when_ready
        self._metrics, self._changes = metrics, changes
        self._asked_at = 0.0
        self._changed: Mapping[str, Any] = {}
        # Closed when this process ends in any way, and then the others end, too.
        self._own, self._theirs = socket.socketpair()
        self._reports = Reports(self._own)
        self._plans = [replace(spec, watched=self._theirs.fileno()) for spec in plans]
        self._children: list[_Child] = []
        self._ending = False
        self._signal = 0

    def run(self) -> None:
        """Supervise the processes until a signal arrives; raise
        :exc:`~flask_noderpc.server.output.WorkerFailed` when one can't start."""
        before = {
            number: signal.signal(number, self._end)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
            # A signal that nohup ignores stays ignored. A script's background job ignores
            # SIGINT, too, but ends on it: geth and CometBFT handle it (Go: signal.Notify).
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN
        }
        # Go: programs that do not handle these signals ignore them, and so do nodes. Child
        # processes inherit that.
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
            # The node ends with an error, which is reported.
            return
        self._reports.read()
        name, height = signal.Signals(self._signal).name, self._reports.stored
        last = f", and the last that it has made is {height}" if height else ""
        extra = {"event": "stopped", "signal": name, **({"height": height} if height else {})}
        killed = [
            str(child.process.pid)
            for child in self._children
            if child.process.returncode == -signal.SIGKILL
        ]
        stored = (
            f"process {' and '.join(killed)} was killed, and what it had not stored is lost"
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
        descriptors = [spec.watched, *(each.descriptor for each in spec.listeners)]
        environment = {**_MALLOC, **os.environ, VARIABLE: spec.encode()}
        if self._metrics:
            environment["PROMETHEUS_MULTIPROC_DIR"] = self._metrics
        return subprocess.Popen(
            # Modules in the current folder are only for an app.
            [sys.executable, *([] if spec.app else ["-P"]), "-m", f"{__package__}.worker"],
            env=environment,
            pass_fds=descriptors,
            stdin=subprocess.DEVNULL,
            # Ctrl-C in a terminal is for the parent, which stops them in order.
            start_new_session=True,
        )

    def _check_child(self, child: _Child) -> None:
        has_ended = child.process.poll() is not None
        # Read after the check: a process writes nothing after its end.
        self._reports.read()
        child.is_ready = child.is_ready or child.process.pid in self._reports.ready
        if has_ended and not self._ending:
            if child.restart_at is None:
                self._count(child)
            elif time.monotonic() >= child.restart_at:
                self._replace(child)

    def _count(self, child: _Child) -> None:
        """Decide when to start a new process in its place, if at all."""
        child.failures = 0 if child.is_ready else child.failures + 1
        code = child.process.returncode
        # The process would fail again in the same way, unless it was killed.
        if not child.was_ready and (code > 0 or child.failures >= _MAX_FAILURES):
            raise self._reports.refusal or WorkerFailed(
                f"a process of the node ended with {code} before it was ready; what it said is"
                " above",
                FAILED,
            )
        pid = child.process.pid
        extra = {"event": "process-ended", "pid": pid, "status": code}
        log.error("process %d ended with %d", pid, code, extra=extra)
        pause = min(_MAX_PAUSE_S, float(child.failures))
        child.restart_at = time.monotonic() + pause
        if self._metrics:
            from prometheus_client.multiprocess import mark_process_dead

            # The descriptors of the process are closed.
            mark_process_dead(child.process.pid, self._metrics)

    def _replace(self, child: _Child) -> None:
        self._reports.forget(child.process.pid)
        child.spec = replace(child.spec, restarted=child.was_ready)
        child.process = self._start(child.spec)
        child.is_ready = child.is_ending = False
        child.restart_at = None

    def _renew(self) -> None:
        """Replace a process whose settings have changed, if all others are ready."""
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
                log.error("process %d does not end, and is killed", child.process.pid)
                child.process.kill()
                child.process.wait()
        self._say_stopped()
        self._own.close()
        self._theirs.close()
