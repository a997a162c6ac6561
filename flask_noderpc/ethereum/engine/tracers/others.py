"""``4byteTracer``, ``noopTracer`` and ``muxTracer``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...domain.execution import Environment, Message, Outcome
from ..base import World
from ..frames import Frame
from .base import MultiTracer, OutputLimit, Recorder, TracerConfig
from .call_tracer import callee

_ENTRY_BYTES = 128


@dataclass(frozen=True, slots=True)
class FourByte(TracerConfig):
    """``4byteTracer``, which counts calls by function selector and size of the arguments.

    geth: eth/tracers/native/4byte.go.
    """

    def recorder(self, output_limit: OutputLimit) -> Recorder:
        return _FourByte(output_limit)


class _FourByte(Recorder):
    def __init__(self, output_limit: OutputLimit) -> None:
        self._output_limit = output_limit
        self._counts: Counter[str] = Counter()
        self._precompiled = frozenset[bytes]()

    def begin(self, world: World, environment: Environment, message: Message) -> None:
        self._precompiled = environment.fork.addresses

    def enter(self, frame: Frame) -> None:
        creates = frame.kind.startswith("CREATE")
        if creates or len(frame.input) < 4 or callee(frame) in self._precompiled:
            return
        name = f"0x{frame.input[:4].hex()}-{len(frame.input) - 4}"
        if name not in self._counts:
            self._output_limit.take(_ENTRY_BYTES)
        self._counts[name] += 1

    def result(self, outcome: Outcome) -> Any:
        """Return the count of each selector."""
        return dict(self._counts)


@dataclass(frozen=True, slots=True)
class Noop(TracerConfig):
    """``noopTracer``, which records nothing."""

    def recorder(self, output_limit: OutputLimit) -> Recorder:
        return _Noop()


class _Noop(Recorder):
    def result(self, outcome: Outcome) -> Any:
        """Return an empty object."""
        return {}


@dataclass(frozen=True, slots=True)
class Mux(TracerConfig):
    """``muxTracer``, which runs several tracers at once, by name."""

    tracers: Mapping[str, TracerConfig] = field(default_factory=dict)

    def recorder(self, output_limit: OutputLimit) -> Recorder:
        return MuxRecorder(
            {name: each.recorder(output_limit) for name, each in self.tracers.items()}
        )


class MuxRecorder(MultiTracer, Recorder):
    """Recorder that runs several recorders at once, by name."""

    def __init__(self, recorders: Mapping[str, Recorder]) -> None:
        super().__init__(list(recorders.values()))
        self._recorders = recorders

    def begin(self, world: World, environment: Environment, message: Message) -> None:
        for recorder in self._recorders.values():
            recorder.origin, recorder.logs_before = self.origin, self.logs_before
            recorder.seconds = self.seconds
            recorder.begin(world, environment, message)

    def result(self, outcome: Outcome) -> Any:
        """Return the result of each tracer by name."""
        return {name: each.result(outcome) for name, each in self._recorders.items()}

    def close(self) -> None:
        for recorder in self._recorders.values():
            recorder.close()
