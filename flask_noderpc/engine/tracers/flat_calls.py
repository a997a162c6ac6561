"""The messages of a transaction as one list, as Parity lists them.

geth: eth/tracers/native/call_flat.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...domain.evm import PRECOMPILES, REVERTED, Environment, Message, Outcome
from ..base import Frame, World
from .base import MultiTracer, OutputLimit, Recorder, TracerConfig, data
from .call_tracer import CallTracer

_ENTRY_BYTES = 512
_PRECOMPILED = {data(address) for address in PRECOMPILES}
_PARITY = {
    "contract creation code storage out of gas": "Out of gas",
    "out of gas": "Out of gas",
    "max code size exceeded": "Out of gas",
    "invalid jump destination": "Bad jump destination",
    REVERTED: "Reverted",
    "return data out of bounds": "Out of bounds",
    "stack limit reached 1024 (1023)": "Out of stack",
    "stack underflow": "Stack underflow",
    "invalid opcode": "Bad instruction",
}


@dataclass(frozen=True, slots=True)
class FlatCalls(TracerConfig):
    """Show calls of precompiled contracts, and use Parity's errors, if set."""

    precompiles: bool = False
    parity_errors: bool = False

    def recorder(self, output_limit: OutputLimit) -> Recorder:
        return _FlatCalls(self, output_limit)


class _FlatCalls(MultiTracer, Recorder):
    def __init__(self, show: FlatCalls, output_limit: OutputLimit) -> None:
        self._show, self._output_limit = show, output_limit
        self._tree = CallTracer().recorder(output_limit)
        super().__init__((self._tree,))

    def begin(self, world: World, environment: Environment, message: Message) -> None:
        self._tree.begin(world, environment, message)

    def enter(self, frame: Frame) -> None:
        # The path to it has a place for each message that it is in.
        self._output_limit.take(_ENTRY_BYTES + 8 * frame.depth)
        super().enter(frame)

    def result(self, outcome: Outcome) -> Any:
        return list(self._flat(self._tree.result(outcome)))

    def _flat(self, top: dict[str, Any]) -> Iterator[dict[str, Any]]:
        waiting: list[tuple[dict[str, Any], list[int]]] = [(top, [])]
        while waiting:
            call, path = waiting.pop()
            within = [each for each in call.get("calls", ()) if self._counts(each)]
            yield self._entry(call, path, len(within))
            places = range(len(within) - 1, -1, -1)
            waiting += ((within[place], [*path, place]) for place in places)

    def _counts(self, call: dict[str, Any]) -> bool:
        calls = call["type"] in ("CALL", "STATICCALL")
        return self._show.precompiles or not calls or call["to"] not in _PRECOMPILED

    def _entry(self, call: dict[str, Any], path: list[int], count: int) -> dict[str, Any]:
        origin, error = self.origin, call.get("error", "")
        entry = _action_and_result(call) | {
            "blockHash": origin and data(origin.block_hash),
            "blockNumber": origin.block_number if origin else 0,
            "subtraces": count,
            "traceAddress": path,
            "transactionHash": origin and data(origin.transaction_hash),
            "transactionPosition": origin.index if origin else 0,
        }
        if error:
            entry["error"] = self._worded(error)
            if error != REVERTED:
                # What was reverted may say why.
                entry.pop("result", None)
        return entry

    def _worded(self, error: str) -> str:
        if not self._show.parity_errors:
            return error
        return next((own for start, own in _PARITY.items() if error.startswith(start)), error)


def _action_and_result(call: dict[str, Any]) -> dict[str, Any]:
    """Return action and result of a message, with the members of its kind."""
    kind, value = call["type"], call.get("value", "0x0")
    asked = {"from": call["from"], "gas": call["gas"], "value": value}
    given = {"gasUsed": call["gasUsed"]}
    output = call.get("output", "0x")
    if kind == "SELFDESTRUCT":
        ended = {"address": call["from"], "balance": value, "refundAddress": call["to"]}
        return {"action": ended, "type": "suicide"}
    if kind.startswith("CREATE"):
        asked |= {"creationMethod": kind.lower(), "init": call["input"]}
        given |= {"code": output}
        if "to" in call:
            given |= {"address": call["to"]}
        return {"action": asked, "result": given, "type": "create"}
    asked |= {"callType": kind.lower(), "input": call["input"], "to": call["to"]}
    return {"action": asked, "result": given | {"output": output}, "type": "call"}
