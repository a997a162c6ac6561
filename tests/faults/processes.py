"""Processes to kill and stop, and checks of the store that they leave."""

from __future__ import annotations

import fcntl
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from flask_noderpc import SQLiteBackend, jsoncodec
from flask_noderpc.backends.base.application import Application, AppState
from flask_noderpc.chain.applications.kvstore import KVStore
from flask_noderpc.chain.applications.merkle_kvstore import MerkleKVStore
from flask_noderpc.ethereum.application.application import EvmApplication
from flask_noderpc.ethereum.application.state import EvmRuntime, ExecutionLimits
from tests.ethereum.protocol.signing import CHAIN_ID as EVM_CHAIN_ID
from tests.ethereum.rpc.contracts import alloc
from tests.helpers.until import PATIENCE

ROOT = Path(__file__).parents[2]
PAIR_APPLICATIONS = {"kvstore": KVStore, "merkle": MerkleKVStore}
EVM_GENESIS = jsoncodec.encode({"alloc": alloc()})


def application_of(name: str, database: Path) -> Callable[[AppState], Application]:
    """Return an application by its name."""
    if name != "evm":
        return PAIR_APPLICATIONS[name]
    limits = ExecutionLimits(executors=1)
    return lambda state: EvmApplication(
        state, EvmRuntime(state, str(database), limits), EVM_CHAIN_ID
    )


class Process:
    """A node process, and its address once it serves."""

    def __init__(
        self,
        database: Path,
        interval: float,
        lease: float,
        empty: bool = False,
        application: str = "kvstore",
        retain: int = 0,
    ) -> None:
        pace = [str(interval), str(lease), "empty" if empty else "busy"]
        words = [str(database), *pace, application, str(retain)]
        self._errors = database.with_suffix(".log").open("ab")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.node", *words],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )
        self.pid = self._process.pid

    def wait_until_it_serves(self) -> str:
        assert self._process.stdout is not None
        words = self._process.stdout.readline().split()
        assert words, Path(self._errors.name).read_text()
        return words[0].decode()

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def is_running(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        self._process.kill()
        self._end()

    def pause(self) -> None:
        """Stop all threads of the process until it gets SIGCONT."""
        self.send(signal.SIGSTOP)
        # The process still runs for a moment until the signal arrives.
        os.waitid(os.P_PID, self.pid, os.WSTOPPED)

    def stop(self) -> int:
        """Ask the process to end; return its exit code."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self._end()

    def _end(self) -> int:
        code = self._process.wait(PATIENCE)
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            if pipe is not None:
                pipe.close()
        return code


@contextmanager
def processes() -> Iterator[Callable[..., Process]]:
    """Return a function that starts processes; those that still run at the end are killed."""
    started: list[Process] = []

    def start(*args: object, **options: object) -> Process:
        started.append(Process(*args, **options))  # type: ignore[arg-type]
        return started[-1]

    try:
        yield start
    finally:
        for process in started:
            if process.is_running():
                process.kill()


@contextmanager
def opened(database: Path, application: str = "kvstore") -> Iterator[SQLiteBackend]:
    backend = SQLiteBackend(database, application=application_of(application, database))
    try:
        yield backend
    finally:
        backend.close()


def producer(database: Path) -> int:
    """Return the PID of the process that holds the lease; 0 if it is free."""
    with closing(sqlite3.connect(database, timeout=PATIENCE)) as connection:
        row = connection.execute("SELECT owner FROM lease").fetchone()
    return int(row[0].split("-")[0]) if row and row[0] else 0


def is_write_locked(database: Path) -> bool:
    with closing(sqlite3.connect(database, timeout=0, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
        connection.execute("ROLLBACK")
        return False


def is_signing(home: Path) -> bool:
    """Return true if a process has the lock of a home's keys."""
    handle = os.open(home / "data", os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def is_long() -> bool:
    return os.environ.get("NODERPC_CAMPAIGN") == "long"


def check_duration(seconds: float, most: float) -> None:
    """Check a duration, but only in the long campaign, which runs on a quiet machine."""
    if is_long():
        assert seconds < most
