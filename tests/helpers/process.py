"""A server in separate processes, and its log."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from .until import PATIENCE, until


class Process:
    """A started command; ``environment`` has additional variables."""

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        environment: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self.log = log
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                command,
                cwd=cwd,
                env={**os.environ, **(environment or {})},
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.pid = self._process.pid

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait for a state of the process; fail if it ends before."""

        def is_there() -> bool:
            assert not self.has_ended(), self.log.read_text()
            return holds()

        until(is_there, what)

    def until_answered(self, answers: Callable[[], object]) -> None:
        """Wait until a call raises no :exc:`OSError`."""

        def holds() -> bool:
            try:
                answers()
            except OSError:
                return False
            return True

        self.until(holds, "an answer")

    def children(self) -> list[int]:
        """Return the PIDs of its children."""
        return _found("-P", self.pid)

    def tell(self, number: int) -> None:
        """Send a signal to the process if it runs."""
        if not self.has_ended():
            self._process.send_signal(number)

    def has_ended(self) -> bool:
        """Return true if the process has ended."""
        return self._process.poll() is not None

    def wait(self) -> int:
        """Wait until the process ends; return its exit status."""
        return self._process.wait(PATIENCE)

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send the process a signal to end; return its exit status."""
        self.tell(number)
        return self.wait()

    def kill(self) -> None:
        """Kill the process and all its descendants, and wait until they have ended.

        Until then, they hold their locks on files.
        """
        killed: set[int] = set()
        # Workers of gunicorn and nginx are in its session.
        while left := {*self.children(), *_found("-s", self.pid)} - killed:
            killed |= left
            for pid in left:
                _kill(pid)
        self.wait()


def _found(option: str, pid: int) -> list[int]:
    listed = subprocess.run(["pgrep", option, str(pid)], capture_output=True, text=True)
    return [int(line) for line in listed.stdout.split()]


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        try:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            ended = select.poll()
            # A process that has ended is readable.
            ended.register(handle, select.POLLIN)
            assert ended.poll(PATIENCE * 1000), f"process {pid} does not end"
        finally:
            os.close(handle)


P = TypeVar("P", bound=Process)


@contextmanager
def killed(process: P) -> Iterator[P]:
    """Kill a process at the end, and print its log after a failure."""
    try:
        yield process
    except BaseException:
        print(f"== {process.log.name}", process.log.read_text(), sep="\n")
        raise
    finally:
        process.kill()
