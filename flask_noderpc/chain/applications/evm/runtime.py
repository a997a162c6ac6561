"""State access of an embedded chain, and the executor processes that run code on it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ....backends.base.application import AppState
from ....backends.base.evm_state import EvmState
from ....engine.base import Job
from ....engine.executors import Executors
from ....errors import ResultNotFound
from ....lru import CacheMemory
from .head import INITIAL_BASE_FEE, head_at
from .node_store import CachedNodeStore

T = TypeVar("T")

# On a busy machine the server gets three times the CPU share of a call's process. At a
# niceness of 19 a call would wait up to a second beside a busy process.
_NICENESS = 5


@dataclass(frozen=True, slots=True)
class ExecutionLimits:
    """Number of executor processes and queued calls, and time limits in seconds."""

    executors: int = 2
    waiting: int = 32
    call_s: float = 5.0
    block_s: float = 30.0
    """Maximum seconds of a block; the producer's lease is renewed meanwhile."""
    per_client: int | None = None
    """Maximum running and queued calls of one client; ``None`` for no limit."""


class EvmRuntime(EvmState):
    """Reads the application's records, and runs code in executor processes.

    ``store`` is the database that these open. Blocks have a dedicated process, so that calls
    never delay them.
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
        # The child process must import the same modules as this one.
        path = ("-P",) if sys.flags.safe_path else ()
        command = (sys.executable, *path, "-m", f"{__package__}.executor", _absolute(store))
        command += (str(self.memory.limit),)
        self._calls = Executors(
            (*command, str(_NICENESS)), limits.executors, limits.waiting, limits.per_client
        )
        self._blocks = Executors((*command, "0"), 1, 1)
        self._node_store = CachedNodeStore(state.get, self.memory)

    def root(self, height: int) -> bytes:
        head = head_at(self._state, height)
        if head is None:
            raise ResultNotFound(f"the state of block {height} is not stored")
        return head.root

    def record(self, digest: bytes) -> bytes | None:
        return self._node_store.record(digest)

    def run(self, job: Job[T], client: str = "") -> T:
        return self._calls.run(job, self._limits.call_s, client)

    def execute(self, job: Job[T]) -> T:
        """Run a job of block production and return its result."""
        return self._blocks.run(job, self._limits.block_s)

    def start(self, *, calls: bool, blocks: bool) -> None:
        if calls:
            self._calls.start()
        if blocks:
            self._blocks.start()

    def close(self) -> None:
        """Stop the executor processes."""
        self._calls.close()
        self._blocks.close()


def _absolute(store: str) -> str:
    """Return an absolute file name or URI, independent of later changes of directory."""
    scheme = "file:" if store.startswith("file:") else ""
    return f"{scheme}{Path(store.removeprefix(scheme)).absolute()}"
