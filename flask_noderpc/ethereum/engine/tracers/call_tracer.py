"""``callTracer``, ``flatCallTracer``, and the logs of transfers in ``eth_simulateV1``.

geth: eth/tracers/native/call.go and call_flat.go, internal/ethapi/logtracer.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .... import jsoncodec
from ....protocol.secp256k1eth import keccak
from ...domain.execution import (
    CODE_OUT_OF_GAS,
    OUT_OF_GAS,
    REVERTED,
    EmittedLog,
    Environment,
    Message,
    Outcome,
)
from ..base import World, reason
from ..frames import Frame, Tracer
from .base import MultiTracer, OutputLimit, Recorder, TracerConfig, data

# Approximate size of a call frame and of a log, without their data.
_FRAME_BYTES, _LOG_BYTES = 512, 512


@dataclass(frozen=True, slots=True)
class CallTracer(TracerConfig):
    """``callTracer`` with its options: leave out subcalls, and include logs.

    With ``is_parity``, the gas of the first frame excludes intrinsic gas and refunds, as in
    subcalls, and a failed creation keeps the address.
    """

    only_top_call: bool = False
    with_log: bool = False
    is_parity: bool = False

    def recorder(self, output_limit: OutputLimit) -> CallRecorder:
        return CallRecorder(self, output_limit)


class CallRecorder(Recorder):
    """Recorder that builds the tree of call frames."""

    def __init__(self, show: CallTracer, output_limit: OutputLimit) -> None:
        self._show, self._output_limit = show, output_limit
        self._open: list[dict[str, Any]] = []
        self._depth = self._limit = 0
        self._logs = [0]
        """Number of the block's logs so far, for each open call frame; the logs of a failed
        frame are not counted in its caller's number."""
        self._top: dict[str, Any] = {}

    def begin(self, world: World, environment: Environment, message: Message) -> None:
        self._limit = message.gas
        self._logs = [self.logs_before]
        # Result if the message fails before its first frame begins.
        self._top = _frame(
            "CREATE" if message.to is None else "CALL", message.sender, message.to, message.gas
        ) | {"input": data(message.data), "value": hex(message.value)}

    def enter(self, frame: Frame) -> None:
        self._depth = frame.depth
        self._logs.append(self._logs[-1])
        if self._hidden(frame):
            return
        self._output_limit.take(_FRAME_BYTES + 2 * len(frame.input))
        gas = frame.gas if frame.depth or self._show.is_parity else self._limit
        made = _frame(frame.kind, caller(frame), callee(frame), gas)
        made["input"] = data(frame.input)
        if frame.kind != "STATICCALL":
            made["value"] = hex(frame.value)
        self._open.append(made)

    def _hidden(self, frame: Frame) -> bool:
        return self._show.only_top_call and frame.depth > 0

    def exit(self, frame: Frame, output: bytes, gas_used: int, error: str) -> None:
        self._depth = frame.depth - 1
        logs = self._logs.pop()
        if not error:
            self._logs[-1] = logs
        if self._hidden(frame):
            return
        made = self._open.pop()
        made["gasUsed"] = hex(gas_used)
        self._output_limit.take(2 * len(output))
        self._settle(made, output, error)
        if self._open:
            self._open[-1].setdefault("calls", []).append(made)
        else:
            self._top = made

    def log(self, address: bytes, topics: tuple[bytes, ...], data_: bytes) -> None:
        index = self._logs[-1]
        self._logs[-1] += 1
        if not self._show.with_log or (self._show.only_top_call and self._depth):
            return
        self._output_limit.take(_LOG_BYTES + 2 * len(data_))
        frame = self._open[-1]
        frame.setdefault("logs", []).append(
            {
                "address": data(address),
                "topics": [data(topic) for topic in topics],
                "data": data(data_),
                "index": hex(index),
                # Position among the subcalls of this frame.
                "position": hex(len(frame.get("calls", ()))),
            }
        )

    def selfdestruct(self, address: bytes, beneficiary: bytes, balance: int) -> None:
        if not self._show.only_top_call:
            self._output_limit.take(_FRAME_BYTES)
            ended = _frame("SELFDESTRUCT", address, beneficiary, 0)
            ended |= {"input": "0x", "value": hex(balance)}
            self._open[-1].setdefault("calls", []).append(ended)

    def result(self, outcome: Outcome) -> Any:
        """Return the tree of call frames, in which subcalls are already encoded as JSON."""
        top = self.tree(outcome)
        frames, waiting = list[dict[str, Any]](), [top]
        while waiting:
            made = waiting.pop()
            frames.append(made)
            waiting += made.get("calls", ())
        # Encode the innermost subcalls first, as the encoder recurses and can't encode a tree
        # of a thousand levels at once.
        for made in reversed(frames):
            if "calls" in made:
                made["calls"] = [jsoncodec.Raw(jsoncodec.encode(c)) for c in made["calls"]]
        return top

    def tree(self, outcome: Outcome) -> dict[str, Any]:
        """Return the frames of all calls as nested objects."""
        top = self._top
        if not self._show.is_parity:
            top["gasUsed"] = hex(outcome.gas_used)
        if outcome.error and "error" not in top:
            self._settle(top, outcome.output, outcome.error)
        _drop_logs(top, failed=False)
        return top

    def _settle(self, made: dict[str, Any], output: bytes, error: str) -> None:
        if not error:
            if output:
                made["output"] = data(output)
            return
        made["error"] = error
        if made["type"].startswith("CREATE") and not self._show.is_parity:
            made.pop("to", None)
        if error == REVERTED and output:
            made["output"] = data(output)
            if why := reason(output):
                made["revertReason"] = why


@dataclass(frozen=True, slots=True)
class CallList(TracerConfig):
    """All calls of a transaction in their order, each with its depth; a failed creation has
    its address."""

    def recorder(self, output_limit: OutputLimit) -> CallRecorder:
        return _CallList(CallTracer(is_parity=True), output_limit)


class _CallList(CallRecorder):
    def result(self, outcome: Outcome) -> Any:
        calls, waiting = list[dict[str, Any]](), [(self.tree(outcome), 0)]
        while waiting:
            call, depth = waiting.pop()
            within = call.pop("calls", [])
            calls.append(call | {"depth": depth})
            waiting += ((each, depth + 1) for each in reversed(within))
        return calls


def caller(frame: Frame) -> bytes:
    """Return the ``from`` address of a call: the sender, or for DELEGATECALL and CALLCODE the
    account whose storage the code uses."""
    return frame.to if frame.kind in ("DELEGATECALL", "CALLCODE") else frame.sender


def callee(frame: Frame) -> bytes:
    """Return the ``to`` address of a call: the account whose code runs, or the new contract."""
    return frame.code_address if frame.kind in ("DELEGATECALL", "CALLCODE") else frame.to


def _frame(kind: str, sender: bytes, to: bytes | None, gas: int) -> dict[str, Any]:
    made = {"type": kind, "from": data(sender), "gas": hex(gas), "gasUsed": "0x0"}
    if to is not None:
        made["to"] = data(to)
    return made


def _drop_logs(top: dict[str, Any], *, failed: bool) -> None:
    """Remove the logs of a frame if it, or a frame around it, failed."""
    waiting = [(top, failed)]
    while waiting:
        made, failed = waiting.pop()
        failed = failed or "error" in made
        if failed:
            made.pop("logs", None)
        waiting += ((call, failed) for call in made.get("calls", ()))


_ENTRY_BYTES = 512
# Parity's error texts by the beginning of geth's.
_PARITY = {
    CODE_OUT_OF_GAS: "Out of gas",
    OUT_OF_GAS: "Out of gas",
    "gas uint64 overflow": "Out of gas",
    "max code size exceeded": "Out of gas",
    "invalid jump destination": "Bad jump destination",
    REVERTED: "Reverted",
    "return data out of bounds": "Out of bounds",
    "stack limit reached 1024 (1023)": "Out of stack",
    "stack underflow": "Stack underflow",
    "invalid opcode": "Bad instruction",
    # The only error of precompiled contracts that geth converts.
    "invalid input length": "Built-in failed",
}


@dataclass(frozen=True, slots=True)
class FlatCalls(TracerConfig):
    """``flatCallTracer`` with its options: include precompiled contracts, and use Parity's
    error texts.

    With ``is_parity``, the calls are OpenEthereum's: the first one's gas excludes intrinsic gas
    and refunds, calls of precompiled contracts are included if they move ether, a failed call
    has the result null, and only the calls of a transaction have its hash and its place.
    """

    precompiles: bool = False
    parity_errors: bool = False
    is_parity: bool = False

    def recorder(self, output_limit: OutputLimit) -> Recorder:
        return _FlatCalls(self, output_limit)


class _FlatCalls(MultiTracer, Recorder):
    def __init__(self, show: FlatCalls, output_limit: OutputLimit) -> None:
        self._show, self._output_limit = show, output_limit
        self._tree = CallTracer(is_parity=show.is_parity).recorder(output_limit)
        self._precompiled = frozenset[str]()
        super().__init__((self._tree,))

    def begin(self, world: World, environment: Environment, message: Message) -> None:
        self._precompiled = frozenset(map(data, environment.fork.addresses))
        self._tree.begin(world, environment, message)

    def enter(self, frame: Frame) -> None:
        # A frame's ``traceAddress`` has an entry for each enclosing frame.
        self._output_limit.take(_ENTRY_BYTES + 8 * frame.depth)
        super().enter(frame)

    def result(self, outcome: Outcome) -> Any:
        return list(self._flat(self._tree.tree(outcome)))

    def _flat(self, top: dict[str, Any]) -> Iterator[dict[str, Any]]:
        waiting: list[tuple[dict[str, Any], list[int]]] = [(top, [])]
        while waiting:
            call, path = waiting.pop()
            within = [each for each in call.get("calls", ()) if self._counts(each)]
            yield self._entry(call, path, len(within))
            indexes = range(len(within) - 1, -1, -1)
            waiting += ((within[index], [*path, index]) for index in indexes)

    def _counts(self, call: dict[str, Any]) -> bool:
        show, kind = self._show, call["type"]
        if show.precompiles or call.get("to") not in self._precompiled:
            return True
        if show.is_parity and kind != "SELFDESTRUCT":
            return bool(call.get("value", "0x0") != "0x0")
        return kind not in ("CALL", "STATICCALL")

    def _entry(self, call: dict[str, Any], path: list[int], count: int) -> dict[str, Any]:
        origin, error = self.origin, call.get("error", "")
        entry = _action_and_result(call) | {"subtraces": count, "traceAddress": path}
        if origin or not self._show.is_parity:
            entry |= {
                "blockHash": origin and data(origin.block_hash),
                "blockNumber": origin.block_number if origin else 0,
                "transactionHash": origin and data(origin.transaction_hash),
                "transactionPosition": origin.index if origin else 0,
            }
        if error:
            entry["error"] = self._error_text(error)
            if error != REVERTED:
                # Only a reverted frame keeps its result, which may contain the revert reason.
                entry.pop("result", None)
        if self._show.is_parity:
            entry.setdefault("result", None)
        return entry

    def _error_text(self, error: str) -> str:
        if not self._show.parity_errors:
            return error
        return next((text for start, text in _PARITY.items() if error.startswith(start)), error)


def _action_and_result(call: dict[str, Any]) -> dict[str, Any]:
    """Return the members action, result and type of a call frame, which depend on its kind."""
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


# A transfer of ether is logged as ERC-20's event, from the address of ether in ERC-7528.
_ETHER = b"\xee" * 20
_TRANSFER = keccak(b"Transfer(address,address,uint256)")


class TransferTracer(Tracer):
    """Tracer that collects logs, and transfers of ether as logs, of frames that succeed."""

    def __init__(self) -> None:
        self._open: list[list[EmittedLog]] = [[]]

    @property
    def logs(self) -> tuple[EmittedLog, ...]:
        """Collected logs and transfers, in order."""
        return tuple(self._open[0])

    def enter(self, frame: Frame) -> None:
        self._open.append([])
        if frame.kind != "DELEGATECALL":
            self._transfer(frame.sender, callee(frame), frame.value)

    def _transfer(self, sender: bytes, to: bytes, value: int) -> None:
        if value:
            parties = (party.rjust(32, b"\0") for party in (sender, to))
            self.log(_ETHER, (_TRANSFER, *parties), value.to_bytes(32))

    def log(self, address: bytes, topics: tuple[bytes, ...], data: bytes) -> None:
        self._open[-1].append(EmittedLog(address, topics, data))

    def selfdestruct(self, address: bytes, beneficiary: bytes, balance: int) -> None:
        self._transfer(address, beneficiary, balance)

    def exit(self, frame: Frame, output: bytes, gas_used: int, error: str) -> None:
        logs = self._open.pop()
        if not error:
            self._open[-1] += logs
