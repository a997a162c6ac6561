"""Runs with a tracer beside them, and what it shows: documents of JSON, each bounded."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from .. import jsoncodec
from ..domain.ethereum import AccessListEntry
from ..domain.evm import Environment, Message, Outcome, Overrides, message_of
from ..protocol.ethereum import validity
from ..protocol.ethereum.crypto import keccak
from ..protocol.ethereum.transactions import decode
from .base import EvmEngine, Job, Tracer, World
from .jobs import check
from .tracers.base import Deadline, MultiTracer, Origin, OutputLimit, TracerConfig
from .tracers.prestate import AccessListTracer


@dataclass(frozen=True, slots=True)
class Tracing:
    """How to trace: with what, for how long each message, and how much may come of it."""

    recipe: TracerConfig
    max_bytes: int
    seconds: float | None = None

    def run(
        self,
        world: World,
        environment: Environment,
        message: Message,
        output_limit: OutputLimit,
        origin: Origin | None = None,
    ) -> bytes:
        """The document of a message."""
        recorder = self.recipe.recorder(output_limit)
        recorder.origin = origin
        recorder.begin(world, environment, message)
        tracer: Tracer = recorder
        if self.seconds is not None:
            tracer = MultiTracer((Deadline(self.seconds), recorder))
        return jsoncodec.encode(recorder.result(world.run(environment, message, tracer)))


@dataclass(frozen=True, slots=True)
class TraceBlock(Job[tuple[bytes, ...]]):
    """Trace a block's transactions on the state before it; those before ``first`` just run."""

    root: bytes
    environment: Environment
    block_hash: bytes
    txs: tuple[bytes, ...]
    first: int
    tracing: Tracing

    def __call__(self, engine: EvmEngine) -> tuple[bytes, ...]:
        world = engine.world(self.root)
        replay(world, self.environment, self.txs[: self.first])
        output_limit = OutputLimit(self.tracing.max_bytes)
        places = range(self.first, len(self.txs))
        return tuple(self._trace(world, index, output_limit) for index in places)

    def _trace(self, world: World, index: int, output_limit: OutputLimit) -> bytes:
        raw = self.txs[index]
        message = _message(world, self.environment, raw)
        origin = Origin(keccak(raw), self.block_hash, self.environment.number, index)
        return self.tracing.run(world, self.environment, message, output_limit, origin)


def replay(world: World, environment: Environment, txs: tuple[bytes, ...]) -> None:
    """Run transactions that have run before."""
    for raw in txs:
        world.run(environment, _message(world, environment, raw))


def _message(world: World, environment: Environment, raw: bytes) -> Message:
    tx = decode(raw, unsigned=True)
    check(world, environment, tx)
    return message_of(tx, environment.base_fee)


@dataclass(frozen=True, slots=True)
class TraceCall(Job[bytes]):
    """Trace a call on a state: after a block, or in it, behind ``txs``, which just run."""

    root: bytes
    environment: Environment
    message: Message
    tracing: Tracing
    overrides: Overrides = field(default_factory=dict)
    txs: tuple[bytes, ...] = ()
    around: Environment | None = None
    """The block that they run in."""

    def __call__(self, engine: EvmEngine) -> bytes:
        world = engine.world(self.root)
        replay(world, self.around or self.environment, self.txs)
        world.patch(self.overrides)
        _check_message(world, self.environment, self.message)
        output_limit = OutputLimit(self.tracing.max_bytes)
        return self.tracing.run(world, self.environment, self.message, output_limit)


def _check_message(world: World, environment: Environment, message: Message) -> None:
    balance = world.account(message.sender).balance
    validity.check_message_funds(message, balance, environment.blob_base_fee)
    validity.check_message_form(message)


@dataclass(frozen=True, slots=True)
class ListAccess(Job[tuple[tuple[AccessListEntry, ...], Outcome]]):
    """Access list of a call: run it with the list so far until the list is complete."""

    root: bytes
    environment: Environment
    message: Message
    excluded: frozenset[bytes]
    overrides: Overrides = field(default_factory=dict)

    def __call__(self, engine: EvmEngine) -> tuple[tuple[AccessListEntry, ...], Outcome]:
        known = AccessListTracer(self.excluded, self.message.access_list).entries
        while True:
            world = engine.world(self.root)
            world.patch(self.overrides)
            message = replace(self.message, access_list=known)
            _check_message(world, self.environment, message)
            tracer = AccessListTracer(self.excluded, known)
            outcome = world.run(self.environment, message, tracer)
            if tracer.entries == known:
                return known, outcome
            known = tracer.entries
