"""Picklable EVM jobs for executor processes, and their results: calls and traces."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from ... import jsoncodec
from ...errors import InvalidTransaction, TracerFailed
from ...protocol.secp256k1eth import keccak
from ..domain.execution import (
    OUT_OF_GAS,
    Environment,
    InternalCalls,
    Message,
    Outcome,
    Overrides,
    StateChange,
    history_override,
    message_of,
)
from ..domain.forks import HISTORY_ADDRESS
from ..domain.records import GAS_PER_BLOB, AccessListEntry, Transaction
from ..protocol import validity
from ..protocol.transactions import decode
from ..protocol.validity import floor_gas, intrinsic_gas
from .base import EvmEngine, Job, World
from .frames import Tracer
from .tracers.base import Deadline, MultiTracer, Origin, OutputLimit, TracerConfig
from .tracers.internal_calls import InternalCallsTracer
from .tracers.prestate import AccessListTracer


@dataclass(frozen=True, slots=True)
class Patch(Job[StateChange]):
    """Job that writes accounts into a state, such as the accounts of a genesis."""

    root: bytes
    overrides: Overrides

    def __call__(self, engine: EvmEngine) -> StateChange:
        world = engine.world(self.root)
        world.patch(self.overrides)
        return world.commit()


# Number of console messages of a block after which its further transactions print none.
_MAX_PRINTED = 1_000


@dataclass(frozen=True, slots=True)
class RefusedTransaction:
    """Reason why a transaction of a block did not run."""

    reason: str


@dataclass(frozen=True, slots=True)
class ExecutedBlock:
    """Change of the state by a block, and the outcomes of its transactions."""

    change: StateChange
    outcomes: tuple[tuple[Transaction, Outcome] | RefusedTransaction | None, ...]
    """One outcome for each of :attr:`ExecuteBlock.txs`; ``None`` for a patch."""


@dataclass(frozen=True, slots=True)
class ExecuteBlock(Job[ExecutedBlock]):
    """Job that executes a block's transactions on the state before it."""

    root: bytes
    environment: Environment
    txs: tuple[bytes | Overrides, ...]
    """Encoded transactions; on a development chain also patches, as state overrides."""
    contracts_send: bool = False
    """True if accounts with code may send signed transactions, which EIP-3607 forbids."""
    records_calls: bool = False
    """True to record the internal calls of each transaction."""

    def __call__(self, engine: EvmEngine) -> ExecutedBlock:
        world, environment = _begin_block(engine, self.root, self.environment), self.environment
        outcomes = list[tuple[Transaction, Outcome] | RefusedTransaction | None]()
        printed = 0
        for each in self.txs:
            if not isinstance(each, bytes):
                world.patch(each)
                outcomes.append(None)
                continue
            made = self._run(world, environment, each)
            outcomes.append(made)
            if environment.keeps_console and not isinstance(made, RefusedTransaction):
                printed += len(made[1].console)
                if printed >= _MAX_PRINTED:
                    environment = replace(environment, keeps_console=False)
        return ExecutedBlock(world.commit(), tuple(outcomes))

    def _run(
        self, world: World, environment: Environment, raw: bytes
    ) -> tuple[Transaction, Outcome] | RefusedTransaction:
        try:
            tx = decode(raw, unsigned=True)
            check(world, environment, tx, contracts_send=self.contracts_send)
        except InvalidTransaction as error:
            return RefusedTransaction(str(error))
        message = message_of(tx, environment.base_fee)
        if not self.records_calls:
            outcome = world.run(environment, message)
            if outcome.created is None or outcome.error:
                return tx, outcome
            # No tracer is needed to record the contract that a transaction creates.
            return tx, replace(outcome, calls=InternalCalls(created=(outcome.created,)))
        tracer = InternalCallsTracer(environment.fork.addresses)
        outcome = world.run(environment, message, tracer)
        return tx, replace(outcome, calls=tracer.calls)


def _begin_block(engine: EvmEngine, root: bytes, environment: Environment) -> World:
    """Return the state in which the first transaction of a block runs.

    EIP-2935: a block first stores its parent's hash in the history contract, if there is one.
    """
    world = engine.world(root)
    if world.code(HISTORY_ADDRESS):
        world.patch(history_override(environment))
    return world


def check(
    world: World, environment: Environment, tx: Transaction, *, contracts_send: bool
) -> None:
    """Raise :exc:`~flask_noderpc.errors.InvalidTransaction` for a transaction that is not valid
    in the current state."""
    validity.check_form(tx, environment)
    account = world.account(tx.sender)
    validity.check_turn(tx, account)
    if tx.is_signed and not contracts_send:
        # Only check signed ones: an unsigned transaction may impersonate a contract.
        validity.check_sender(tx, world.code(tx.sender))
    validity.check_funds(tx, account)
    validity.check_fee(tx, environment.base_fee)


@dataclass(frozen=True, slots=True)
class Call(Job[Outcome]):
    """Job that runs a message and drops its changes of the state."""

    root: bytes
    environment: Environment
    message: Message
    overrides: Overrides = field(default_factory=dict)
    pending: tuple[bytes, ...] = ()
    """Encoded transactions that run before the message; those that are not valid are
    skipped."""

    def __call__(self, engine: EvmEngine) -> Outcome:
        world = self.world(engine)
        self.check_funds(world)
        return world.run(self.environment, self.message)

    def world(self, engine: EvmEngine) -> World:
        """Return the state on which the message runs, with the overrides."""
        world = engine.world(self.root)
        for raw in self.pending:
            with suppress(InvalidTransaction):
                world.run(self.environment, _message(world, self.environment, raw))
        if self.overrides:
            world.patch(self.overrides)
        return world

    def check_funds(self, world: World) -> None:
        """Raise :exc:`~flask_noderpc.errors.InvalidTransaction` if the sender's balance or the
        gas limit is too low, or the init code is too long."""
        message = self.message
        balance = world.account(message.sender).balance
        validity.check_message_funds(message, balance, self.environment.blob_base_fee)
        validity.check_message_form(message, self.environment)


@dataclass(frozen=True, slots=True)
class Estimate(Call):
    """Job that finds the lowest gas limit with which a message succeeds; the ``gas_used`` of
    its outcome is that limit."""

    def __call__(self, engine: EvmEngine) -> Outcome:
        message = self._affordable(self.world(engine))
        if message.gas < self._least_gas(message):
            return Outcome(gas_used=message.gas, max_used_gas=message.gas, error=OUT_OF_GAS)
        affordable = replace(self, message=message)
        first = Call.__call__(affordable, engine)
        return (
            first if first.error else replace(first, gas_used=affordable._found(engine, first))
        )

    def _found(self, engine: EvmEngine, first: Outcome) -> int:
        """Return the limit by geth's search (eth/gasestimator), which starts at the gas that
        the first run used."""
        # The gas used may be below the intrinsic gas, as EIP-7702 refunds gas afterwards.
        low, high = max(first.gas_used, self._least_gas(self.message)) - 1, self.message.gas
        for guess in self._guesses(first):
            if low < guess < high:
                if self._with(engine, guess).error:
                    low = guess
                else:
                    high = guess
        while low + 1 < high and (high - low) / high > _GOOD_ENOUGH:
            middle = min((low + high) // 2, 2 * low)
            if self._with(engine, middle).error:
                low = middle
            else:
                high = middle
        return high

    def _affordable(self, world: World) -> Message:
        """Return the message with its gas limit lowered to what the sender can pay."""
        message = self.message
        if not message.gas_price:
            return message
        blob_gas = GAS_PER_BLOB * len(message.blob_versioned_hashes)
        blobs = blob_gas * self.environment.blob_base_fee
        left = world.account(message.sender).balance - message.value - blobs
        # Refuse a value equal to the whole balance, too, like geth's eth/gasestimator.
        if left <= 0:
            raise InvalidTransaction("insufficient funds for transfer")
        return replace(message, gas=min(message.gas, left // message.gas_price))

    @staticmethod
    def _guesses(first: Outcome) -> Iterator[int]:
        # EIP-150: a caller keeps a 64th of its gas, so the limit must exceed the gas used.
        yield first.max_used_gas
        yield (first.max_used_gas + 2300) * 64 // 63

    def _least_gas(self, message: Message) -> int:
        """Return the lowest gas limit with which a message can start."""
        fork, lists = self.environment.fork, (message.access_list, message.authorizations)
        minimum = intrinsic_gas(fork, message.data, message.to is None, *lists)
        return max(minimum, floor_gas(fork, message.data))

    def _with(self, engine: EvmEngine, gas: int) -> Outcome:
        world = self.world(engine)
        return world.run(self.environment, replace(self.message, gas=gas))


# The error ratio that geth's eth_estimateGas passes to eth/gasestimator.
_GOOD_ENOUGH = 0.015


Trace: TypeAlias = bytes | TracerFailed
"""Trace of a message as JSON, or the error of the tracer's code."""


@dataclass(frozen=True, slots=True)
class Tracing:
    """Options of a trace: the tracer, maximum bytes of the result, seconds for each message."""

    tracer: TracerConfig
    max_bytes: int
    seconds: float | None = None

    def run(
        self,
        world: World,
        environment: Environment,
        message: Message,
        output_limit: OutputLimit,
        logs_before: int,
        origin: Origin | None = None,
    ) -> tuple[Trace, int]:
        """Return the trace of a message, and the number of its logs."""
        recorder = self.tracer.recorder(output_limit)
        recorder.origin, recorder.logs_before = origin, logs_before
        recorder.seconds = self.seconds
        tracer: Tracer = recorder
        if self.seconds is not None:
            tracer = MultiTracer((Deadline(self.seconds), recorder))
        try:
            recorder.begin(world, environment, message)
            outcome = world.run(environment, message, tracer)
            try:
                trace: Trace = jsoncodec.encode(recorder.result(outcome))
            except TracerFailed as error:
                trace = error
            return trace, len(outcome.logs)
        finally:
            recorder.close()


@dataclass(frozen=True, slots=True)
class TraceBlock(Job[tuple[Trace, ...]]):
    """Job that traces a block's transactions on the state before it; the transactions before
    index ``first`` run without a trace."""

    root: bytes
    environment: Environment
    block_hash: bytes
    txs: tuple[bytes, ...]
    first: int
    tracing: Tracing

    def __call__(self, engine: EvmEngine) -> tuple[Trace, ...]:
        world = _begin_block(engine, self.root, self.environment)
        logs = replay(world, self.environment, self.txs[: self.first])
        output_limit = OutputLimit(self.tracing.max_bytes)
        traces = []
        for index in range(self.first, len(self.txs)):
            trace, count = self._trace(world, index, output_limit, logs)
            traces.append(trace)
            logs += count
        return tuple(traces)

    def _trace(
        self, world: World, index: int, output_limit: OutputLimit, logs: int
    ) -> tuple[Trace, int]:
        raw = self.txs[index]
        message = _message(world, self.environment, raw)
        origin = Origin(keccak(raw), self.block_hash, self.environment.number, index)
        return self.tracing.run(world, self.environment, message, output_limit, logs, origin)


def replay(world: World, environment: Environment, txs: tuple[bytes, ...]) -> int:
    """Run committed transactions again; return the number of their logs."""
    messages = (_message(world, environment, raw) for raw in txs)
    return sum(len(world.run(environment, message).logs) for message in messages)


def _message(world: World, environment: Environment, raw: bytes) -> Message:
    tx = decode(raw, unsigned=True)
    # The transaction was accepted, so its sender may have code.
    check(world, environment, tx, contracts_send=True)
    return message_of(tx, environment.base_fee)


@dataclass(frozen=True, slots=True)
class TracedCall:
    """Call to trace, its block environment, and its tracer."""

    environment: Environment
    message: Message
    tracing: Tracing


@dataclass(frozen=True, slots=True)
class TraceCalls(Job[tuple[Trace, ...]]):
    """Job that traces calls one after another on the state after a block, or inside a block
    after its first transactions, ``txs``, which run without a trace.

    The result may have as many bytes as the first call's trace.
    """

    root: bytes
    calls: tuple[TracedCall, ...]
    overrides: Overrides = field(default_factory=dict)
    txs: tuple[bytes, ...] = ()
    around: Environment | None = None
    """Environment of the block in which ``txs`` run; ``None`` for calls after a block."""

    def __call__(self, engine: EvmEngine) -> tuple[Trace, ...]:
        if self.around is None:
            world, logs = engine.world(self.root), 0
        else:
            world = _begin_block(engine, self.root, self.around)
            logs = replay(world, self.around, self.txs)
        world.patch(self.overrides)
        output_limit = OutputLimit(self.calls[0].tracing.max_bytes)
        traces = []
        for call in self.calls:
            environment, message = call.environment, call.message
            _check_message(world, environment, message)
            trace, count = call.tracing.run(world, environment, message, output_limit, logs)
            traces.append(trace)
            logs += count
        return tuple(traces)


def _check_message(world: World, environment: Environment, message: Message) -> None:
    balance = world.account(message.sender).balance
    validity.check_message_funds(message, balance, environment.blob_base_fee)
    validity.check_message_form(message, environment)


@dataclass(frozen=True, slots=True)
class ListAccess(Job[tuple[tuple[AccessListEntry, ...], Outcome]]):
    """Job that finds the access list of a call: it runs the call with the list found so far
    until a run adds no entry."""

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
