"""Struct logger: each instruction with its stack, memory and storage.

geth: eth/tracers/logger/logger.go, the default tracer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .... import jsoncodec
from ...domain.execution import Outcome
from .. import base
from ..frames import Frame, Step
from .base import NOT_BEGUN, OutputLimit, Recorder, TracerConfig, data, word

_WORD = 32


@dataclass(frozen=True, slots=True)
class StructLogger(TracerConfig):
    """Struct logger with its options: parts of a step to include. No steps are added after
    ``limit`` bytes, unless it is 0."""

    stack: bool = True
    storage: bool = True
    memory: bool = False
    return_data: bool = False
    limit: int = 0

    def recorder(self, output_limit: OutputLimit) -> Recorder:
        return _StructLogger(self, output_limit)


class _StructLogger(Recorder):
    def __init__(self, show: StructLogger, output_limit: OutputLimit) -> None:
        self._show, self._output_limit = show, output_limit
        self._size = 0
        self._logs: list[jsoncodec.Raw] = []
        # Each step is encoded as soon as its cost is known, as JSON needs less memory.
        self._open: dict[str, Any] | None = None
        self._touched: dict[bytes, dict[int, int]] = {}

    def step(self, step: Step) -> None:
        self._flush()
        show = self._show
        if show.limit and self._size > show.limit:
            return
        log: dict[str, Any] = {
            "pc": step.pc,
            "op": base.name_of(step.op),
            "gas": step.gas,
            "gasCost": 0,
            "depth": step.frame.depth + 1,
        }
        stack = step.stack()
        if show.stack:
            log["stack"] = [hex(value) for value in stack]
        if show.memory and (memory := step.memory()):
            log["memory"] = [
                data(memory[start : start + _WORD]) for start in range(0, len(memory), _WORD)
            ]
        if show.return_data and (returned := step.return_data()):
            log["returnData"] = data(returned)
        if show.storage and step.op in base.OF_STORAGE:
            self._add_storage(log, step, stack)
        self._open = log

    def _add_storage(self, log: dict[str, Any], step: Step, stack: list[int]) -> None:
        """Add the slots that the contract has accessed so far."""
        address = step.frame.to
        touched = self._touched.setdefault(address, {})
        if step.op == base.SLOAD and stack:
            touched[stack[-1]] = step.storage(address, stack[-1])
        elif step.op == base.SSTORE and len(stack) > 1:
            touched[stack[-1]] = stack[-2]
        else:
            return
        log["storage"] = {word(slot): word(value) for slot, value in sorted(touched.items())}

    def stepped(self, step: Step, cost: int, error: str) -> None:
        if self._open is not None:
            self._open["gasCost"] = cost
            # The refund of SSTORE counts before the instruction, as in geth.
            if refund := step.refund:
                self._open["refund"] = refund
            if error.startswith(NOT_BEGUN):
                self._open["error"] = error

    def exit(self, frame: Frame, output: bytes, gas_used: int, error: str) -> None:
        self._flush()

    def _flush(self) -> None:
        log, self._open = self._open, None
        if log is not None:
            written = jsoncodec.encode(log)
            self._size += len(written)
            self._output_limit.take(len(written))
            self._logs.append(jsoncodec.Raw(written))

    def result(self, outcome: Outcome) -> Any:
        """Return the outcome and all steps."""
        self._flush()
        returned = b"" if outcome.error and not outcome.reverted else outcome.output
        self._output_limit.take(2 * len(returned))
        return {
            "gas": outcome.gas_used,
            "failed": bool(outcome.error),
            "returnValue": data(returned),
            "structLogs": self._logs,
        }
