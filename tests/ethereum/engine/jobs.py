"""Jobs for executors of tests, without a chain; ``-m`` runs the module as an executor."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import weakref
from dataclasses import dataclass
from pathlib import Path

from flask_noderpc.ethereum.domain.execution import (
    NO_STORAGE,
    AccountOverride,
    Environment,
    Message,
    Outcome,
)
from flask_noderpc.ethereum.engine.base import EvmEngine, Job
from flask_noderpc.ethereum.engine.evm import Evm
from flask_noderpc.executors.pool import Executors
from flask_noderpc.executors.process import Answer, ask, refuse_questions, serve

ADDRESS = b"\xaa" * 20


class NoRecords:
    """The records of an empty chain."""

    def record(self, digest: bytes) -> bytes | None:
        return None

    def block_hash(self, height: int) -> bytes | None:
        return None


def executors(
    count: int = 1,
    queue_size: int = 1,
    gate: Path | None = None,
    answer: Answer = refuse_questions,
) -> Executors:
    """Return executors; with a gate, each start waits there until it is let through."""
    at_gate = [str(gate)] if gate else []
    command = (sys.executable, "-m", __name__, *at_gate)
    return Executors(command, count, queue_size, answer)


def wait_at(gate: Path) -> None:
    (gate / f"starts-{os.getpid()}").touch()
    while not (gate / f"go-{os.getpid()}").exists():
        threading.Event().wait(0.005)


def starting(gate: Path) -> list[int]:
    """Return the PIDs of the processes that wait at a gate, the newest last."""
    found = sorted(gate.glob("starts-*"), key=lambda file: file.stat().st_mtime_ns)
    return [int(file.name.removeprefix("starts-")) for file in found]


def let_start(gate: Path, pid: int) -> None:
    (gate / f"go-{pid}").touch()


class WhoAmI(Job[int]):
    """Returns the PID of the executor."""

    def __call__(self, engine: EvmEngine) -> int:
        return os.getpid()


class Endless(Job[None]):
    """A job that never ends, and never waits."""

    def __call__(self, engine: EvmEngine) -> None:
        while True:
            pass


@dataclass(frozen=True)
class Held(Job[str]):
    """A job that reports its beginning, and waits until it may end."""

    folder: Path

    def __call__(self, engine: EvmEngine) -> str:
        (self.folder / "begun").write_text(str(os.getpid()))
        while not (self.folder / "end").exists():
            threading.Event().wait(0.005)
        return "done"


@dataclass(frozen=True)
class Notes(Job[None]):
    """A job that adds a line to a file, which shows the order of jobs."""

    file: Path
    line: str

    def __call__(self, engine: EvmEngine) -> None:
        with self.file.open("a") as notes:
            notes.write(f"{self.line}\n")


@dataclass(frozen=True)
class Asks(Job[tuple[object, ...]]):
    """A job that asks the parent, and returns its answers."""

    questions: tuple[object, ...]

    def __call__(self, engine: EvmEngine) -> tuple[object, ...]:
        return tuple(map(ask, self.questions))


class Killed(Job[None]):
    """A job that kills its process."""

    def __call__(self, engine: EvmEngine) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Raises(Job[None]):
    """A job that raises an exception."""

    error: BaseException

    def __call__(self, engine: EvmEngine) -> None:
        raise self.error


class _OfTwoParts(Exception):
    """An exception that is pickled with one argument, but needs two to be unpickled."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} {second}")


class RaisesUnreadable(Job[None]):
    """A job that raises an exception which can be pickled, but not unpickled."""

    def __call__(self, engine: EvmEngine) -> None:
        raise _OfTwoParts("why", "not")


class Unreadable(Job[None]):
    """A job that can be pickled, but not unpickled."""

    def __call__(self, engine: EvmEngine) -> None:
        raise AssertionError

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return int, ("why not",)


class Unsendable(Job[object]):
    """A job whose result can't be pickled."""

    def __call__(self, engine: EvmEngine) -> object:
        return threading.Lock()


@dataclass(frozen=True)
class Large(Job[bytes]):
    """A job that returns the data that it was sent."""

    data: bytes

    def __call__(self, engine: EvmEngine) -> bytes:
        return self.data


class _Cycle:
    """An object that refers to itself."""

    def __init__(self) -> None:
        self.own = self


class DropsOldCycle(Job[bool]):
    """A job that drops a cycle which has survived collections; it returns true if the next
    collections free it."""

    def __call__(self, engine: EvmEngine) -> bool:
        gc.collect()
        cycle = _Cycle()
        for _ in range(gc.get_threshold()[2] + 1):
            gc.collect(1)
        dropped = weakref.ref(cycle)
        del cycle
        # Enough objects for young collections, and too few for a full one in addition to all
        # modules.
        young, middle, _ = gc.get_threshold()
        # CPython 3.12 collects when a call returns; reading the weak reference in this loop
        # would hold the cycle at that moment.
        _ = [[] for _ in range(young * (middle + 5))]
        return dropped() is None


@dataclass(frozen=True)
class Runs(Job[Outcome]):
    """A job that calls a contract with this code."""

    code: bytes
    gas: int
    data: bytes = b""

    def __call__(self, engine: EvmEngine) -> Outcome:
        world = engine.world(NO_STORAGE)
        world.patch({ADDRESS: AccountOverride(code=self.code)})
        block = Environment(chain_id=1, number=1, timestamp=1, gas_limit=self.gas)
        return world.run(block, Message(to=ADDRESS, gas=self.gas, data=self.data))


if __name__ == "__main__":
    if len(sys.argv) > 2:
        wait_at(Path(sys.argv[1]))
    serve(Evm(NoRecords()), int(sys.argv[-1]))
