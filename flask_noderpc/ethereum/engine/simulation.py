"""Simulation of blocks of calls with overrides, for ``eth_simulateV1``.

geth: internal/ethapi/simulate.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...errors import InvalidTransaction
from ...protocol.secp256k1eth import keccak
from ..domain.execution import (
    BlockChanges,
    CallArgs,
    EmittedLog,
    Environment,
    Message,
    Outcome,
    Overrides,
    environment_for_call,
    history_override,
    message_of,
)
from ..domain.forks import HISTORY_ADDRESS, Schedule, fork_at
from ..domain.records import (
    BLOB,
    DYNAMIC_FEE,
    LEGACY,
    ZERO_ADDRESS,
    ZERO_HASH,
    Header,
    Transaction,
)
from ..protocol import validity
from ..protocol.blocks import Block, fee_after, simulated_block
from ..protocol.execution import ExecutedTransaction
from ..protocol.transactions import encode
from .base import EvmEngine, Job, World
from .tracers.base import OutputLimit
from .tracers.call_tracer import TransferTracer

# Approximate size of a call's result without its data, of a log, and of a block.
_CALL_BYTES, _LOG_BYTES, _BLOCK_BYTES = 1024, 768, 2048


@dataclass(frozen=True, slots=True)
class CallBlock:
    """A block to simulate: its header fields, with at least number and time, the state
    overrides before it, and its calls."""

    changes: BlockChanges
    overrides: Overrides
    calls: tuple[CallArgs, ...]


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules of a simulation. ``validation`` checks nonces and fees, ``trace_transfers`` adds
    transfers of ether to the logs, ``max_bytes`` limits the result."""

    chain_id: int
    code_size_limit: int
    forks: Schedule
    gas_cap: int
    """Gas limit of all calls together."""
    validation: bool
    trace_transfers: bool
    max_bytes: int


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """Outcome of a call; its logs include transfers if these were requested."""

    outcome: Outcome
    logs: tuple[EmittedLog, ...]


@dataclass(frozen=True, slots=True)
class SimulatedBlock:
    """A block with the outcomes of its calls."""

    block: Block
    calls: tuple[CallOutcome, ...]


@dataclass(frozen=True, slots=True)
class Simulate(Job[tuple[SimulatedBlock, ...]]):
    """Job that simulates blocks, each on the state after the one before."""

    root: bytes
    base: Header
    blocks: tuple[CallBlock, ...]
    rules: Rules

    def __call__(self, engine: EvmEngine) -> tuple[SimulatedBlock, ...]:
        return _Simulation(engine.world(self.root), self.rules).run(self.base, self.blocks)


class _Simulation:
    def __init__(self, world: World, rules: Rules) -> None:
        self._world, self._rules = world, rules
        self._output_limit = OutputLimit(rules.max_bytes)
        self._gas_left = rules.gas_cap

    def run(self, base: Header, blocks: tuple[CallBlock, ...]) -> tuple[SimulatedBlock, ...]:
        made: list[SimulatedBlock] = []
        hashes: dict[int, bytes] = {}
        parent = base
        for block in blocks:
            made.append(self._block(parent, block, hashes))
            parent = made[-1].block.header
            hashes[parent.number] = parent.hash or b""
        return tuple(made)

    def _block(
        self, parent: Header, block: CallBlock, hashes: Mapping[int, bytes]
    ) -> SimulatedBlock:
        environment = self._environment(parent, block.changes, hashes)
        self._output_limit.take(_BLOCK_BYTES)
        if self._world.code(HISTORY_ADDRESS):
            self._world.patch(history_override(environment))
        self._world.patch(block.overrides)
        executed: list[ExecutedTransaction] = []
        called: list[CallOutcome] = []
        for args in block.calls:
            used = sum(each.gas_used for each in executed)
            tx, one = self._call(environment, args, used)
            called.append(one)
            outcome = one.outcome
            executed.append(
                ExecutedTransaction(tx, not outcome.error, outcome.gas_used, outcome.logs)
            )
        header = _header(parent, environment, self._world.root())
        return SimulatedBlock(simulated_block(header, executed), tuple(called))

    def _environment(
        self, parent: Header, changes: BlockChanges, hashes: Mapping[int, bytes]
    ) -> Environment:
        # Without validation calls need no fees, so the base fee is 0 unless it is overridden.
        base_fee = (fee_after(parent) or 0) if self._rules.validation else 0
        return changes.apply_to(
            Environment(
                chain_id=self._rules.chain_id,
                code_size_limit=self._rules.code_size_limit,
                number=parent.number + 1,
                parent_hash=parent.hash or ZERO_HASH,
                fork=fork_at(self._rules.forks, changes.number or parent.number + 1),
                timestamp=parent.timestamp,
                coinbase=parent.miner or ZERO_ADDRESS,
                gas_limit=parent.gas_limit,
                base_fee=base_fee,
                hashes=hashes,
            )
        )

    def _call(
        self, environment: Environment, args: CallArgs, used: int
    ) -> tuple[Transaction, CallOutcome]:
        limit = environment.gas_limit
        gas = limit - used if args.gas is None else args.gas
        if used + gas > limit:
            raise InvalidTransaction(f"block gas limit reached: {used} >= {limit}")
        nonce = args.nonce
        if nonce is None:
            nonce = self._world.account(args.sender or ZERO_ADDRESS).nonce
        if args.type == BLOB and args.to is None:
            # geth: core/state_transition.go.
            raise InvalidTransaction("blob transaction of type create")
        tx = _transaction(args, nonce, min(gas, self._gas_left), self._rules.chain_id)
        message = replace(message_of(tx, environment.base_fee), nonce=None)
        seen = environment
        if not self._rules.validation:
            seen = environment_for_call(message, tx.max_fee_per_blob_gas, environment)
        self._check(tx, message, environment, seen.blob_base_fee)
        return tx, self._run(seen, message)

    def _check(
        self, tx: Transaction, message: Message, environment: Environment, blob_fee: int
    ) -> None:
        base_fee = environment.base_fee
        account = self._world.account(tx.sender)
        if self._rules.validation:
            validity.check_turn(tx, account)
            validity.check_last_nonce(tx)
            validity.check_fee(tx, base_fee)
            validity.check_blobs(tx, environment.fork, blob_fee)
            dearest = replace(message, gas_price=tx.fee_cap)
            validity.check_message_funds(dearest, account.balance, blob_fee)
        elif 0 < message.gas_price < base_fee:
            validity.check_fee(tx, base_fee)
        validity.check_message_funds(message, account.balance, blob_fee)
        validity.check_message_form(message, environment)

    def _run(self, environment: Environment, message: Message) -> CallOutcome:
        tracer = TransferTracer() if self._rules.trace_transfers else None
        outcome = self._world.run(environment, message, tracer)
        logs = outcome.logs
        if tracer is not None:
            logs = () if outcome.error else tracer.logs
        self._gas_left -= outcome.gas_used
        self._output_limit.take(_CALL_BYTES + 2 * len(outcome.output) + 2 * len(message.data))
        self._output_limit.take(sum(_LOG_BYTES + 2 * len(log.data) for log in logs))
        return CallOutcome(outcome, logs)


def _transaction(args: CallArgs, nonce: int, gas: int, chain_id: int) -> Transaction:
    """Return a call as an unsigned transaction, with its hash."""
    priced = args.type < DYNAMIC_FEE
    tx = Transaction(
        type=args.type,
        chain_id=None if args.type == LEGACY else chain_id,
        nonce=nonce,
        gas_price=args.gas_price or 0 if priced else None,
        max_priority_fee_per_gas=None if priced else args.max_priority_fee_per_gas or 0,
        max_fee_per_gas=None if priced else args.max_fee_per_gas or 0,
        gas=gas,
        to=args.to,
        value=args.value or 0,
        data=args.data or b"",
        access_list=args.access_list or (),
        max_fee_per_blob_gas=args.max_fee_per_blob_gas or 0 if args.type == BLOB else None,
        blob_versioned_hashes=args.blob_versioned_hashes or (),
        authorizations=args.authorizations or (),
        v=0,
        r=0,
        s=0,
        raw=b"",
        hash=b"",
        sender=args.sender or ZERO_ADDRESS,
    )
    raw = encode(tx)
    return replace(tx, raw=raw, hash=keccak(raw))


def _header(parent: Header, environment: Environment, root: bytes) -> Header:
    return Header(
        number=environment.number,
        hash=None,
        parent_hash=parent.hash or b"",
        state_root=root,
        miner=environment.coinbase,
        gas_limit=environment.gas_limit,
        timestamp=environment.timestamp,
        mix_hash=environment.prev_randao,
        base_fee=environment.base_fee,
    )
