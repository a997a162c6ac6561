"""The state of an embedded chain, and the processes that run code on it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ....backends.base.application import AppState
from ....backends.base.evm_state import Evm
from ....engine.base import Job
from ....engine.executors import Executors
from ....errors import ResultNotFound
from ....lru import CacheMemory
from .head import INITIAL_BASE_FEE, head_at
from .node_store import CachedNodeStore

T = TypeVar("T")

# Whoever serves goes first where there are more processes than cores: it has three times the
# weight. With 19 a call beside a busy program waits for up to a second of its turns.
_NICENESS = 5


@dataclass(frozen=True, slots=True)
class ExecutionLimits:
    """How many processes run calls, how many more calls may wait, and how long all takes."""

    executors: int = 2
    waiting: int = 32
    call_s: float = 5.0
    block_s: float = 30.0
    """A block takes some seconds; the producer's lease is kept meanwhile."""
    per_client: int | None = None
    """How many calls of one client may run and wait, if that is bounded."""


class EvmRuntime(Evm):
    """Reads the application's own records, and has code run in other processes.

    ``store`` is the file that those open. Blocks have a process of their own: calls never
    hold them up.
    """

    initial_base_fee = INITIAL_BASE_FEE

    def __init__(
        self,
        state: AppState,
        store: str,
        limits: ExecutionLimits,
        memory: CacheMemory | None = None,
    ) -> None:
        self._state, self._limits = state, limits
        self.memory = memory or CacheMemory()
        # It finds what this process finds.
        path = ("-P",) if sys.flags.safe_path else ()
        command = (sys.executable, *path, "-m", f"{__package__}.executor", _absolute(store))
        command += (str(self.memory.limit),)
        self._calls = Executors(
            (*command, str(_NICENESS)), limits.executors, limits.waiting, limits.per_client
        )
        self._blocks = Executors((*command, "0"), 1, 1)
        self._node_store = CachedNodeStore(state.get, self.memory)

    def root(self, height: int) -> bytes:
        found = head_at(self._state, height)
        if found is None:
            raise ResultNotFound(f"the state of block {height} is not kept")
        return found.root

    def record(self, digest: bytes) -> bytes | None:
        return self._node_store.record(digest)

    def run(self, job: Job[T], client: str = "") -> T:
        return self._calls.run(job, self._limits.call_s, client)

    def execute(self, job: Job[T]) -> T:
        """What comes of a job of the chain itself: a block."""
        return self._blocks.run(job, self._limits.block_s)

    def start(self, *, calls: bool, blocks: bool) -> None:
        if calls:
            self._calls.start()
        if blocks:
            self._blocks.start()

    def close(self) -> None:
        """End the processes."""
        self._calls.close()
        self._blocks.close()


def _absolute(store: str) -> str:
    """A file's name or URI, for processes that begin when this one has changed its folder."""
    scheme = "file:" if store.startswith("file:") else ""
    return f"{scheme}{Path(store.removeprefix(scheme)).absolute()}"
