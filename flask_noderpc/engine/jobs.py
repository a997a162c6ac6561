"""Picklable EVM jobs, sent to an executor process, and their results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ..domain.ethereum import Transaction
from ..domain.evm import (
    OUT_OF_GAS,
    Environment,
    Message,
    Outcome,
    Overrides,
    StateChange,
    message_of,
)
from ..errors import InvalidTransaction
from ..protocol.ethereum import validity
from ..protocol.ethereum.transactions import decode
from ..protocol.ethereum.validity import floor_gas, intrinsic_gas
from .base import EvmEngine, Job, World


@dataclass(frozen=True, slots=True)
class Patch(Job[StateChange]):
    """Change accounts by hand, as a genesis does."""

    root: bytes
    overrides: Overrides

    def __call__(self, engine: EvmEngine) -> StateChange:
        world = engine.world(self.root)
        world.patch(self.overrides)
        return world.commit()


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a transaction of a block did not run."""

    reason: str


@dataclass(frozen=True, slots=True)
class Executed:
    """Outcomes of a block's transactions, in their order."""

    change: StateChange
    outcomes: tuple[tuple[Transaction, Outcome] | Refused | None, ...]
    """``None`` of a change by hand."""


@dataclass(frozen=True, slots=True)
class ExecuteBlock(Job[Executed]):
    """Run a block's transactions on the state before it."""

    root: bytes
    environment: Environment
    txs: tuple[bytes | Overrides, ...]
    """Signed transactions; on a chain of tests also changes by hand."""

    def __call__(self, engine: EvmEngine) -> Executed:
        world = engine.world(self.root)
        outcomes = tuple(self._done(world, each) for each in self.txs)
        return Executed(world.commit(), outcomes)

    def _done(
        self, world: World, each: bytes | Overrides
    ) -> tuple[Transaction, Outcome] | Refused | None:
        if isinstance(each, bytes):
            return self._run(world, each)
        world.patch(each)
        return None

    def _run(self, world: World, raw: bytes) -> tuple[Transaction, Outcome] | Refused:
        try:
            tx = decode(raw, unsigned=True)
            check(world, self.environment, tx)
        except InvalidTransaction as error:
            return Refused(str(error))
        message = message_of(tx, self.environment.base_fee)
        return tx, world.run(self.environment, message)


def check(world: World, environment: Environment, tx: Transaction) -> None:
    """Raise :exc:`~flask_noderpc.errors.InvalidTransaction` for one that must not run now."""
    validity.check_form(tx, environment.chain_id, environment.gas_limit)
    account = world.account(tx.sender)
    validity.check_turn(tx, account)
    if tx.is_signed:
        # In its name a contract may send.
        validity.check_sender(tx, world.code(tx.sender))
    validity.check_funds(tx, account)
    validity.check_fee(tx, environment.base_fee)


@dataclass(frozen=True, slots=True)
class Call(Job[Outcome]):
    """Run a message and forget what it did."""

    root: bytes
    environment: Environment
    message: Message
    overrides: Overrides = field(default_factory=dict)

    def __call__(self, engine: EvmEngine) -> Outcome:
        world = self.world(engine)
        self.check_funds(world)
        return world.run(self.environment, self.message)

    def world(self, engine: EvmEngine) -> World:
        """The state it runs on."""
        world = engine.world(self.root)
        if self.overrides:
            world.patch(self.overrides)
        return world

    def check_funds(self, world: World) -> None:
        """Raise :exc:`~flask_noderpc.errors.InvalidTransaction` where nobody could pay."""
        message = self.message
        balance = world.account(message.sender).balance
        validity.check_message_funds(message, balance, self.environment.blob_base_fee)
        validity.check_message_form(message)


@dataclass(frozen=True, slots=True)
class Estimate(Call):
    """Find the least gas with which a message gets through; its outcome with that as limit."""

    def __call__(self, engine: EvmEngine) -> Outcome:
        message = self._affordable(self.world(engine))
        if message.gas < _least_gas(message):
            return Outcome(gas_used=message.gas, max_used_gas=message.gas, error=OUT_OF_GAS)
        own = replace(self, message=message)
        first = Call.__call__(own, engine)
        return first if first.error else replace(first, gas_used=own._found(engine, first))

    def _found(self, engine: EvmEngine, first: Outcome) -> int:
        """geth: eth/gasestimator: what it used says about where to look."""
        # What it used may be less than it needs to begin: EIP-7702 gives gas back afterwards.
        low, high = max(first.gas_used, _least_gas(self.message)) - 1, self.message.gas
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
        """With no more gas than the sender can pay."""
        message = self.message
        if not message.gas_price:
            return message
        left = world.account(message.sender).balance - message.value
        # geth: eth/gasestimator: nor may the value be all there is.
        if left <= 0:
            raise InvalidTransaction("insufficient funds for transfer")
        return replace(message, gas=min(message.gas, left // message.gas_price))

    @staticmethod
    def _guesses(first: Outcome) -> Iterator[int]:
        # EIP-150: a call keeps a 64th back.
        yield first.max_used_gas
        yield (first.max_used_gas + 2300) * 64 // 63

    def _with(self, engine: EvmEngine, gas: int) -> Outcome:
        world = self.world(engine)
        return world.run(self.environment, replace(self.message, gas=gas))


# geth: eth/gasestimator, the error ratio that eth_estimateGas asks for.
_GOOD_ENOUGH = 0.015


def _least_gas(message: Message) -> int:
    """Return the least gas with which a message can begin."""
    lists = message.access_list, message.authorizations
    least = intrinsic_gas(message.data, message.to is None, *lists)
    return max(least, floor_gas(message.data))
