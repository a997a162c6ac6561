"""Processes of servers: pinned to the first core, and stopped while others are measured."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

import click

PATIENCE_S = 60.0
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Server:
    """A running server, with all its processes."""

    url: str
    process: subprocess.Popen[bytes]

    def ask(self, path: str = "", body: str | None = None) -> bytes:
        """Return the body of the response to a request."""
        headers = {} if body is None else {"Content-Type": "application/json"}
        data = None if body is None else body.encode()
        request = urllib.request.Request(self.url + path, data, headers)
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            content: bytes = answer.read()
        return content

    def sleep(self) -> None:
        """Stop all processes with SIGSTOP, so that they take no time from others."""
        self._tell(signal.SIGSTOP)

    @contextmanager
    def awake(self) -> Iterator[None]:
        """Let the server run within the context."""
        self._tell(signal.SIGCONT)
        try:
            yield
        finally:
            self.sleep()

    def pids(self) -> list[int]:
        """Return the PIDs of all processes, beginning with the one that was started."""
        return list(descent(self.process.pid))

    def cpu_s(self) -> float:
        """Return the processor time of all its processes and their threads."""
        return sum(map(_cpu_s, self.pids()))

    def memory_mb(self) -> dict[int, float]:
        """Return the resident memory of each process in megabytes."""
        return {pid: _resident_kb(pid) / 1000 for pid in self.pids()}

    def stop(self) -> None:
        """Kill all processes of the server."""
        self._tell(signal.SIGKILL)
        self.process.wait()

    def _tell(self, number: int) -> None:
        for pid in self.pids():
            with suppress(ProcessLookupError):
                os.kill(pid, number)


def descent(pid: int) -> Iterator[int]:
    """Yield a process before its children, so that a caller can stop it before it forks."""
    yield pid
    for threads in Path(f"/proc/{pid}/task").glob("*/children"):
        # A thread may end before it is read.
        with suppress(OSError):
            for child in threads.read_text().split():
                yield from descent(int(child))


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _resident_kb(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise LookupError("no VmRSS")


@contextmanager
def served(
    words: Sequence[str | Path],
    port: int,
    path: str = "",
    environment: Mapping[str, str] | None = None,
    cores: str = "0",
) -> Iterator[Server]:
    """Run a program on some cores, as taskset names them; yield it stopped, once it listens at
    a port."""
    with TemporaryFile() as said:
        process = subprocess.Popen(
            ["taskset", "-c", cores, *words],
            stdout=said,
            stderr=said,
            env={**os.environ, **(environment or {})},
        )
        server = Server(f"http://127.0.0.1:{port}{path}", process)
        try:
            wait_for(port, lambda: process.poll() is None)
            server.sleep()
            yield server
        except TimeoutError:
            said.seek(0)
            click.echo(said.read()[-2000:], err=True)
            raise
        finally:
            server.stop()


def free_port() -> int:
    """Return a port at which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def wait_for(port: int, is_there: Callable[[], bool] = lambda: True) -> None:
    """Wait until a server listens at a port; fail if its process ends."""

    def listens() -> bool:
        if not is_there():
            raise TimeoutError("it has ended")
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    until(listens, f"a server at port {port}")


def until(holds: Callable[[], bool], what: str, every_s: float = 0.02) -> None:
    """Wait for a condition; raise :exc:`TimeoutError`."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {PATIENCE_S:g} s: {what}")
        time.sleep(every_s)
