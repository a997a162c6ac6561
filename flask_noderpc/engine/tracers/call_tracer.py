"""The messages that a transaction is made of, each with those that it begins.

geth: eth/tracers/native/call.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...domain.evm import REVERTED, Environment, Message, Outcome
from ..base import Frame, World, reason
from .base import OutputLimit, Recorder, TracerConfig, data

# What a message takes beside its bytes, about.
_FRAME_BYTES, _LOG_BYTES = 512, 512


@dataclass(frozen=True, slots=True)
class CallTracer(TracerConfig):
    """Leave out messages within messages, and show logs, if set."""

    only_top_call: bool = False
    with_log: bool = False

    def recorder(self, output_limit: OutputLimit) -> CallRecorder:
        return CallRecorder(self, output_limit)


class CallRecorder(Recorder):
    """The tree of messages."""

    def __init__(self, show: CallTracer, output_limit: OutputLimit) -> None:
        self._show, self._output_limit = show, output_limit
        self._open: list[dict[str, Any]] = []
        self._depth = self._logs = self._limit = 0
        self._top: dict[str, Any] = {}

    def begin(self, world: World, environment: Environment, message: Message) -> None:
        self._limit = message.gas
        # Shown where the message can't even begin.
        self._top = _frame(
            "CREATE" if message.to is None else "CALL", message.sender, message.to, message.gas
        ) | {"input": data(message.data), "value": hex(message.value)}

    def enter(self, frame: Frame) -> None:
        self._depth = frame.depth
        if self._hidden(frame):
            return
        self._output_limit.take(_FRAME_BYTES + 2 * len(frame.data))
        gas = frame.gas if frame.depth else self._limit
        made = _frame(frame.kind, _caller(frame), callee(frame), gas)
        made["input"] = data(frame.data)
        if frame.kind != "STATICCALL":
            made["value"] = hex(frame.value)
        self._open.append(made)

    def _hidden(self, frame: Frame) -> bool:
        return self._show.only_top_call and frame.depth > 0

    def exit(self, frame: Frame, output: bytes, gas_used: int, error: str) -> None:
        self._depth = frame.depth - 1
        if self._hidden(frame):
            return
        made = self._open.pop()
        made["gasUsed"] = hex(gas_used)
        self._output_limit.take(2 * len(output))
        _settle(made, output, error)
        if self._open:
            self._open[-1].setdefault("calls", []).append(made)
        else:
            self._top = made

    def log(self, address: bytes, topics: tuple[bytes, ...], data_: bytes) -> None:
        index = self._logs
        self._logs += 1
        if not self._show.with_log or (self._show.only_top_call and self._depth):
            return
        self._output_limit.take(_LOG_BYTES + 2 * len(data_))
        own = self._open[-1]
        own.setdefault("logs", []).append(
            {
                "address": data(address),
                "topics": [data(topic) for topic in topics],
                "data": data(data_),
                "index": hex(index),
                # Among the messages that this one begins.
                "position": hex(len(own.get("calls", ()))),
            }
        )

    def selfdestruct(self, address: bytes, beneficiary: bytes, balance: int) -> None:
        if not self._show.only_top_call:
            self._output_limit.take(_FRAME_BYTES)
            ended = _frame("SELFDESTRUCT", address, beneficiary, 0)
            ended |= {"input": "0x", "value": hex(balance)}
            self._open[-1].setdefault("calls", []).append(ended)

    def result(self, outcome: Outcome) -> Any:
        """The tree."""
        top = self._top
        top["gasUsed"] = hex(outcome.gas_used)
        if outcome.error and "error" not in top:
            _settle(top, outcome.output, outcome.error)
        _drop_logs(top, failed=False)
        return top


def _caller(frame: Frame) -> bytes:
    """Return the address that executes the code: with DELEGATECALL the caller's."""
    return frame.to if frame.kind in ("DELEGATECALL", "CALLCODE") else frame.sender


def callee(frame: Frame) -> bytes:
    """Return the address whose code runs."""
    return frame.code_address if frame.kind in ("DELEGATECALL", "CALLCODE") else frame.to


def _frame(kind: str, sender: bytes, to: bytes | None, gas: int) -> dict[str, Any]:
    made = {"type": kind, "from": data(sender), "gas": hex(gas), "gasUsed": "0x0"}
    if to is not None:
        made["to"] = data(to)
    return made


def _settle(made: dict[str, Any], output: bytes, error: str) -> None:
    if not error:
        if output:
            made["output"] = data(output)
        return
    made["error"] = error
    if made["type"].startswith("CREATE"):
        made.pop("to", None)
    if error == REVERTED and output:
        made["output"] = data(output)
        if why := reason(output):
            made["revertReason"] = why


def _drop_logs(top: dict[str, Any], *, failed: bool) -> None:
    """Remove the logs of a message if one around it failed."""
    waiting = [(top, failed)]
    while waiting:
        made, failed = waiting.pop()
        failed = failed or "error" in made
        if failed:
            made.pop("logs", None)
        waiting += ((call, failed) for call in made.get("calls", ()))
