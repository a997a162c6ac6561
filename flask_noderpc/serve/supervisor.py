"""Starts the processes of a node, replaces those that end, and ends them all."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..errors import ConfigurationError
from .plan import END, VARIABLE, Plan

_LOOK_S = 0.1
# Longer than what a process takes to end in good order.
_PATIENCE_S = 15.0
# One that ends so soon, so often in a row, will not get better.
_SOON_S, _MOST_FAILURES = 3.0, 5
_MOST_TOLD_BYTES = 1 << 16


@dataclass(slots=True)
class _Child:
    plan: Plan
    process: subprocess.Popen[bytes]
    began: float
    failures: int = 0


class Supervisor:
    """The parent of a node's processes; it serves nothing itself.

    ``metrics`` is the folder in which they share their numbers, if they have any.
    """

    def __init__(
        self, plans: Sequence[Plan], say: Callable[[str], None], metrics: str = ""
    ) -> None:
        self._say = say
        self._metrics = metrics
        # Closed with this process, however it ends: then the others end as well.
        self._own, self._theirs = socket.socketpair()
        self._plans = [replace(plan, watched=self._theirs.fileno()) for plan in plans]
        self._children: list[_Child] = []
        self._ending = False

    def run(self) -> None:
        """Look after the processes until a signal comes; raise
        :exc:`~flask_noderpc.errors.ConfigurationError` when one can't start."""
        before = {
            number: signal.signal(number, self._end)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
            # What nohup ignores stays ignored. A script's background job ignores SIGINT too,
            # and is told by it to end: geth and CometBFT take it (Go: signal.Notify).
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN
        }
        # Go: programs that do not ask for them ignore these signals, and so do nodes. Processes
        # inherit that.
        before |= {
            number: signal.signal(number, signal.SIG_IGN)
            for number in (signal.SIGUSR1, signal.SIGUSR2)
        }
        try:
            self._children = [self._start(plan) for plan in self._plans]
            while not self._ending:
                time.sleep(_LOOK_S)
                for child in self._children:
                    if child.process.poll() is not None:
                        self._replace(child)
        finally:
            self._stop()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _end(self, *_: object) -> None:
        self._ending = True

    def _start(self, plan: Plan) -> _Child:
        descriptors = [plan.watched, *(each.descriptor for each in plan.listeners)]
        environment = {**os.environ, VARIABLE: plan.encode()}
        if self._metrics:
            environment["PROMETHEUS_MULTIPROC_DIR"] = self._metrics
        process = subprocess.Popen(
            # What lies in the current folder is for a host's app alone.
            [sys.executable, *([] if plan.app else ["-P"]), "-m", f"{__package__}.process"],
            env=environment,
            pass_fds=descriptors,
            stdin=subprocess.DEVNULL,
            # A terminal's Ctrl-C is for the parent, which ends them in its own time.
            start_new_session=True,
        )
        return _Child(plan, process, time.monotonic())

    def _replace(self, child: _Child) -> None:
        if self._ending:
            return
        if child.process.returncode == os.EX_CONFIG:
            raise ConfigurationError(self._told())
        if self._metrics:
            from prometheus_client.multiprocess import mark_process_dead

            # What it had open is open no longer.
            mark_process_dead(child.process.pid, self._metrics)
        lived = time.monotonic() - child.began
        failures = child.failures + 1 if lived < _SOON_S else 0
        if failures >= _MOST_FAILURES:
            raise ConfigurationError(
                f"a process of the node ended {failures} times as soon as it began, with"
                f" {child.process.returncode}; what it said is above"
            )
        self._say(f"process {child.process.pid} ended with {child.process.returncode}")
        fresh = self._start(child.plan)
        child.process, child.began, child.failures = fresh.process, fresh.began, failures

    def _told(self) -> str:
        """Why a process can't start: what the first that knew wrote to its end."""
        try:
            told = self._own.recv(_MOST_TOLD_BYTES, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return "the node can't start so; why is said above"
        return told.partition(END)[0].decode(errors="replace")

    def _stop(self) -> None:
        for child in self._children:
            child.process.terminate()
        deadline = time.monotonic() + _PATIENCE_S
        for child in self._children:
            try:
                child.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                self._say(f"process {child.process.pid} does not end, and is killed")
                child.process.kill()
                child.process.wait()
        self._own.close()
        self._theirs.close()
