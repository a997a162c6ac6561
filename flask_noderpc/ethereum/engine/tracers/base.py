"""Base classes of all tracers."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ....errors import TraceStopped
from ...domain.execution import Environment, Message, Outcome
from ..base import World
from ..frames import Frame, Step, Tracer

NOT_BEGUN = ("out of gas", "gas uint64 overflow", "stack underflow", "stack limit reached")
"""Beginnings of the errors that stop an instruction before it runs; geth reports only these
errors to its tracers."""


class OutputLimit:
    """Limit on the bytes of a result, which is held in memory until it is complete."""

    def __init__(self, size: int) -> None:
        self._size = self._left = size

    def take(self, size: int) -> None:
        """Count bytes; raise :exc:`~flask_noderpc.errors.TraceStopped` above the limit."""
        self._left -= size
        if self._left < 0:
            raise TraceStopped(
                f"the response is larger than {self._size} bytes",
                "raise NODERPC_MAX_RESPONSE_BYTES, or ask for less: methods of debug have the"
                " options limit, disableStack and onlyTopCall",
            )


@dataclass(frozen=True, slots=True)
class Origin:
    """Transaction of a traced message: its hash, its block, and its index in the block."""

    transaction_hash: bytes
    block_hash: bytes
    block_number: int
    index: int


class Recorder(Tracer, ABC):
    """A tracer whose result can be encoded as JSON."""

    origin: Origin | None = None
    """Transaction of the message; ``None`` for a call."""
    logs_before = 0
    """Number of logs of earlier transactions in the block."""
    seconds: float | None = None
    """Seconds that the message may take, if the caller limits them."""

    def begin(self, world: World, environment: Environment, message: Message) -> None:
        """Handle the start of a message, with the state before it."""

    @abstractmethod
    def result(self, outcome: Outcome) -> Any:
        """Return the trace of a finished message."""

    def close(self) -> None:
        """Free resources at the end of a message, also after an error."""


class TracerConfig(ABC):
    """A tracer's options, which are sent to an executor process."""

    @abstractmethod
    def recorder(self, output_limit: OutputLimit) -> Recorder:
        """Return a recorder for one message."""


class Deadline(Tracer):
    """Tracer that stops an execution after a number of seconds."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def step(self, step: Step) -> None:
        if time.monotonic() >= self._end:
            # geth: eth/tracers/api.go.
            raise TraceStopped("execution timeout", "pass a longer timeout with the call")


class MultiTracer(Tracer):
    """Tracer that passes every event to several tracers."""

    def __init__(self, tracers: Sequence[Tracer]) -> None:
        self._tracers = tracers

    @property
    def sees_steps(self) -> bool:
        return any(tracer.sees_steps for tracer in self._tracers)

    def enter(self, frame: Frame) -> None:
        for tracer in self._tracers:
            tracer.enter(frame)

    def step(self, step: Step) -> None:
        for tracer in self._tracers:
            tracer.step(step)

    def stepped(self, step: Step, cost: int, error: str) -> None:
        for tracer in self._tracers:
            tracer.stepped(step, cost, error)

    def log(self, address: bytes, topics: tuple[bytes, ...], data: bytes) -> None:
        for tracer in self._tracers:
            tracer.log(address, topics, data)

    def selfdestruct(self, address: bytes, beneficiary: bytes, balance: int) -> None:
        for tracer in self._tracers:
            tracer.selfdestruct(address, beneficiary, balance)

    def exit(self, frame: Frame, output: bytes, gas_used: int, error: str) -> None:
        for tracer in self._tracers:
            tracer.exit(frame, output, gas_used, error)


def data(value: bytes) -> str:
    """Return bytes as hex, as in Ethereum's JSON."""
    return f"0x{value.hex()}"


def word(value: int) -> str:
    """Return a word as 32 bytes of hex."""
    return f"0x{value:064x}"
