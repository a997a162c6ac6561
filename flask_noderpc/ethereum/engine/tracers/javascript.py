"""Tracers in JavaScript that a caller sends, with the objects and functions of geth's.

geth: eth/tracers/js/goja.go.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from .... import jsoncodec
from ....errors import TracerFailed
from ....protocol.secp256k1eth import keccak
from ...domain.execution import Environment, Message, Outcome
from ...protocol.execution import created_address
from ..base import World, name_of
from ..frames import Frame, Step
from .base import NOT_BEGUN, OutputLimit, Recorder, TracerConfig
from .call_tracer import callee, caller

MAX_MEMORY: Final = 64 << 20
"""Bytes of memory that the code of a tracer may use for one message."""
MAX_TRACERS: Final = 4
"""Maximum tracers in JavaScript that run at once in ``muxTracer``."""
_OUT_OF_MEMORY = "InternalError: out of memory"
_MEMORY_HINT = f"the code of a tracer may use {MAX_MEMORY >> 20} MB"
# As deep as needed for recursion into the deepest calls. The thread that runs jobs has more.
_MAX_STACK = 2 << 20
# Seconds after the deadline until the process is killed. Usually the trace stops before, at an
# instruction.
_GRACE_S = 0.1
# Seconds of code without a timeout. The executor's deadline usually comes first, but reads of a
# forked chain from its node make it later.
_DEFAULT_S = 300.0
# A timer for more seconds than some systems allow would be an error.
_LONGEST_S = 1e6
# geth: eth/tracers/internal/util.go, memoryPadLimit.
_MAX_PADDING = 1 << 20


def is_available() -> bool:
    """Return true if the JavaScript engine is installed."""
    return find_spec("quickjs") is not None


@dataclass(frozen=True, slots=True)
class JavaScript(TracerConfig):
    """Code of a tracer: an object with functions, and the JSON text of its options."""

    code: str
    config: str

    def recorder(self, output_limit: OutputLimit) -> Recorder:
        return _JavaScript(self, output_limit)


@cache
def _interface() -> str:
    return Path(__file__).with_suffix(".js").read_text()


class _Refused(Exception):
    """The code asks for something that does not exist; the text is geth's."""


class _Host:
    """Answers to the questions of the code, which end up in :meth:`__call__`.

    The engine can't handle Python exceptions and truncates integers above 32 bits, so an
    exception is stored, and large numbers are returned as floats or hex strings.
    """

    def __init__(self, world: World, precompiled: frozenset[bytes]) -> None:
        self._world, self._precompiled = world, precompiled
        self.error: BaseException | None = None
        self._step: Step
        self._stack: list[int] = []
        self._memory_size = 0
        self._preview: tuple[int, int, str] | None = None
        self._subcall: tuple[bytes, str] = b"", ""
        self.output = b""
        self._answers: dict[str, Callable[..., str | float]] = {
            "reason": lambda: str(self.error),
            "created": lambda creator, nonce: _created(creator, int(nonce)),
            "created2": _created_by_salt,
            "is_precompiled": lambda address: bytes.fromhex(address) in self._precompiled,
            "word": self._word,
            "stack_size": lambda: len(self._stack),
            "memory": self._memory,
            "memory_word": self._memory_word,
            "memory_size": lambda: self._memory_size,
            "caller": lambda: bytes.hex(self._step.frame.sender),
            "address": lambda: bytes.hex(self._step.frame.to),
            "value": lambda: hex(self._step.frame.value),
            "input": lambda: bytes.hex(self._step.frame.data),
            "cost": lambda: float(self._outcome()[0]),
            "refund": lambda: float(self._outcome()[1]),
            "error": lambda: self._outcome()[2],
            "balance": lambda of: hex(world.account(bytes.fromhex(of)).balance),
            "nonce": lambda of: float(world.account(bytes.fromhex(of)).nonce),
            "code": lambda of: world.code(bytes.fromhex(of)).hex(),
            "storage": self._slot,
            "exists": lambda of: world.exists(bytes.fromhex(of)),
            "frame_input": lambda: bytes.hex(self._subcall[0]),
            "frame_value": lambda: self._subcall[1],
            "frame_output": lambda: bytes.hex(self.output),
        }

    def __call__(self, name: str, *args: Any) -> str | float | None:
        """Return an answer, or ``None`` after an exception."""
        try:
            return self._answers[name](*(each for each in args if each is not None))
        except BaseException as error:
            self.error = error
            return None

    def begin_step(self, step: Step) -> None:
        """Set the current instruction."""
        self._step, self._preview = step, None
        # An instruction that fails has changed the stack; the code sees the stack before that.
        self._stack, self._memory_size = step.stack(), len(step.frame.memory)

    def fail_step(self, cost: int, error: str) -> None:
        """Set the failure of the current instruction."""
        self._preview = cost, self._step.refund, error

    def begin_subcall(self, data: bytes, value: str) -> None:
        """Set input and value of the current subcall."""
        self._subcall = data, value

    def _outcome(self) -> tuple[int, int, str]:
        """Return cost, refund and error of the current instruction: before it, as in geth, only
        an error that stops it from running."""
        if self._preview is None:
            cost, refund, error = self._step.preview()
            self._preview = cost, refund, error if error.startswith(NOT_BEGUN) else ""
        return self._preview

    def _slot(self, address: str, slot: str) -> str:
        return f"{self._world.storage(bytes.fromhex(address), int(slot, 16)):064x}"

    def _word(self, index: float) -> str:
        place = int(index)
        if not 0 <= place < len(self._stack):
            size = len(self._stack)
            raise _Refused(f"tracer accessed out of bound stack: size {size}, index {place}")
        return hex(self._stack[-1 - place])

    def _memory(self, start: float, end: float) -> str:
        begin, size = int(start), int(end) - int(start)
        if not size:
            return ""
        if size < 0 or begin < 0:
            raise _Refused(
                f"tracer accessed out of bound memory: offset {begin}, end {int(end)}"
            )
        padding = begin + size - self._memory_size
        if padding > _MAX_PADDING:
            raise _Refused(f"reached limit for padding memory slice: {padding}")
        found = self._step.frame.memory[: self._memory_size][begin : begin + size]
        return found.ljust(size, b"\0").hex()

    def _memory_word(self, start: float) -> str:
        begin, available = int(start), self._memory_size
        if begin < 0 or available < begin + 32:
            raise _Refused(
                f"tracer accessed out of bound memory: available {available},"
                f" offset {begin}, size 32"
            )
        return hex(int.from_bytes(self._step.frame.memory[begin : begin + 32]))


def _created(creator: str, nonce: int) -> str:
    return created_address(bytes.fromhex(creator), nonce % (1 << 64)).hex()


def _created_by_salt(creator: str, salt: str, code: str) -> str:
    digest = keccak(bytes.fromhex(code))
    return keccak(b"\xff" + bytes.fromhex(creator + salt) + digest)[12:].hex()


class _JavaScript(Recorder):
    """Recorder that passes all events to functions in JavaScript.

    The engine can't stop code that calls Python, nor functions of its own, after a time. So a
    signal ends the executor process if the code has not returned in time.
    """

    def __init__(self, given: JavaScript, output_limit: OutputLimit) -> None:
        self._given, self._output_limit = given, output_limit
        self._host: _Host
        self._code: Callable[..., Any]
        self._exception: type[Exception]
        self._failure: TracerFailed | None = None
        self._bytes: dict[str, str] = {}
        self._integers: dict[str, str] = {}
        self._others: dict[str, Any] = {}

    def begin(self, world: World, environment: Environment, message: Message) -> None:
        from quickjs import Context, JSException

        seconds = _DEFAULT_S if self.seconds is None else self.seconds
        seconds = max(0.0, min(seconds, _LONGEST_S)) + _GRACE_S
        signal.setitimer(signal.ITIMER_REAL, seconds)
        self._exception = JSException
        self._host = _Host(world, environment.fork.addresses)
        context = Context()
        context.set_memory_limit(MAX_MEMORY)
        context.set_max_stack_size(_MAX_STACK)
        context.add_callable("host", self._host)
        self._code = context.eval(_interface())
        names = jsoncodec.encode([name_of(op) for op in range(256)]).decode()
        self._call("load", self._given.code, self._given.config, names)
        if origin := self.origin:
            self._bytes |= {
                "blockHash": origin.block_hash.hex(),
                "txHash": origin.transaction_hash.hex(),
            }
            self._others["txIndex"] = origin.index
        self._bytes["coinbase"] = environment.coinbase.hex()
        # As in geth, this is the price above the base fee.
        tip = max(0, message.gas_price - environment.base_fee)
        self._integers["gasPrice"] = hex(tip)
        self._others |= {"block": environment.number, "gas": message.gas}

    def _call(self, action: str, *args: Any) -> None:
        """Run a function of the code, unless one has failed."""
        if self._failure is not None:
            return
        try:
            error = self._code(action, *args)
        except self._exception:
            # The engine has no memory left to handle its own exception.
            error = _OUT_OF_MEMORY
        raised = self._host.error
        if raised is not None and not isinstance(raised, _Refused):
            raise raised
        if error is not None:
            where = "" if action == "load" else f"    in server-side tracer function '{action}'"
            hint = _MEMORY_HINT if error.startswith(_OUT_OF_MEMORY) else ""
            self._failure = TracerFailed(error + where, hint)

    def _read(self, name: str) -> Any:
        """Return a value of the interface; raise :exc:`~flask_noderpc.errors.TracerFailed` if
        the engine has no memory left to return it."""
        with suppress(self._exception):
            if (found := self._code(name)) is not None:
                return found
        raise TracerFailed(_OUT_OF_MEMORY, _MEMORY_HINT)

    def step(self, step: Step) -> None:
        self._host.begin_step(step)
        self._call("step", step.op, step.pc, float(step.gas), step.frame.depth + 1)

    def stepped(self, step: Step, cost: int, error: str) -> None:
        if error and not error.startswith(NOT_BEGUN):
            self._host.fail_step(cost, error)
            self._call("fault")

    def enter(self, frame: Frame) -> None:
        if frame.depth:
            value = "" if frame.kind == "STATICCALL" else hex(frame.value)
            kind, gas = frame.kind, frame.gas
            self._enter(kind, caller(frame), callee(frame), frame.input, gas, value)
            return
        self._others["type"] = frame.kind
        self._bytes |= {
            "from": frame.sender.hex(),
            "to": frame.to.hex(),
            "input": frame.input.hex(),
        }
        self._integers["value"] = hex(frame.value)

    def _enter(
        self, kind: str, sender: bytes, to: bytes, data: bytes, gas: int, value: str
    ) -> None:
        self._host.begin_subcall(data, value)
        self._call("enter", kind, sender.hex(), to.hex(), float(gas))

    def exit(self, frame: Frame, output: bytes, gas_used: int, error: str) -> None:
        if frame.depth:
            self._exit(output, gas_used, error)
            return
        self._bytes["output"] = output.hex()
        if error:
            self._others["error"] = error

    def _exit(self, output: bytes, gas_used: int, error: str) -> None:
        self._host.output = output
        self._call("exit", float(gas_used), error)

    def selfdestruct(self, address: bytes, beneficiary: bytes, balance: int) -> None:
        self._enter("SELFDESTRUCT", address, beneficiary, b"", 0, hex(balance))
        self._exit(b"", 0, "")

    def result(self, outcome: Outcome) -> Any:
        """Return the value of the function ``result``; raise
        :exc:`~flask_noderpc.errors.TracerFailed` if a function has failed."""
        self._others["gasUsed"] = outcome.gas_used
        if outcome.error:
            self._others.setdefault("error", outcome.error)
        context = {"bytes": self._bytes, "integers": self._integers, "others": self._others}
        self._call("result", jsoncodec.encode(context).decode())
        if self._failure is not None:
            raise self._failure
        size = self._read("size")
        self._output_limit.take(size)
        written = self._read("text").encode()
        self._output_limit.take(len(written) - size)
        return jsoncodec.Raw(written)

    def close(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        # Frames refer to this tracer, so the memory of the code would be freed late.
        self.__dict__.clear()
