"""Computation of py-evm, with or without a tracer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from eth import exceptions
from eth.constants import CREATE_CONTRACT_ADDRESS
from eth.exceptions import Halt, VMError
from eth.vm.forks.london.constants import EIP3541_RESERVED_STARTING_BYTE
from eth.vm.forks.prague.computation import PragueComputation
from eth.vm.logic.invalid import InvalidOpcode
from eth_typing import Address

from ..domain.execution import CODE_SIZE_LIMIT
from .base import CALLS, CREATES, SELFDESTRUCT, SSTORE, Tracer
from .pyevm_frames import Frame, InspectableComputation, RefusedFrame, Step
from .pyevm_instructions import IntStack, execute, table
from .pyevm_precompiles import TEXTS, error_text, missing_gas, precompiles

_DEEPEST = 1024

# EIP-2929: COLD_SLOAD_COST.
_COLD_SLOT = 2_100

_COLLISION = exceptions.ContractCreationCollision
_RIPEMD160 = Address((3).to_bytes(20))


def _function_of(code: int, opcode: Any) -> Any:
    if code == SELFDESTRUCT:
        # py-evm's wrapper warns each time that the instruction runs.
        return getattr(opcode, "__wrapped__", opcode)
    # Calls can be nested a thousand deep, and Python 3.12 only allows some hundred nested calls
    # of callable objects; their methods are plain functions.
    if code in CREATES:
        return _creating(opcode, 4 if CREATES[code] == "CREATE2" else 3)
    return opcode.__call__ if code in CALLS else opcode


def _creating(opcode: Any, arity: int) -> Callable[..., None]:
    """Refuse too long init code at the instruction (EIP-3860); py-evm refuses it only when the
    message begins."""
    create, least = opcode.__call__, opcode.gas_cost

    def run(computation: Any) -> None:
        words = computation._stack.values
        begins = len(words) >= arity and computation._gas_meter.gas_remaining >= least
        if begins and words[-3] > 2 * computation.code_size_limit:
            # Text of geth's core/vm/gas_table.go.
            raise VMError(f"out of gas: max initcode size exceeded: size {words[-3]}")
        create(computation)

    return run


_OPCODES = {
    code: _function_of(code, opcode) for code, opcode in PragueComputation.opcodes.items()
}
_INSTRUCTIONS = table(_OPCODES)


class Computation(InspectableComputation):
    """py-evm's computation with a tracer, and with less work between two instructions."""

    opcodes = _OPCODES
    _precompiles: Any = precompiles()
    code_size_limit = CODE_SIZE_LIMIT
    offered = 0
    """Gas left at the last read; a CREATE passes on all but a 64th of it."""

    def __init__(self, state: Any, message: Any, transaction_context: Any) -> None:
        super().__init__(state, message, transaction_context)
        self._stack = IntStack()

    # py-evm's cached properties are slower than plain properties.
    stack_pop_ints = property(lambda self: self._stack.pop_ints)
    stack_pop1_int = property(lambda self: self._stack.pop1_int)
    stack_pop1_bytes = property(lambda self: self._stack.pop1_bytes)
    stack_push_int = property(lambda self: self._stack.push_int)
    stack_push_bytes = property(lambda self: self._stack.push_bytes)

    def consume_gas(self, amount: int, reason: str) -> None:
        """Subtract gas; raise an error if too little is left."""
        meter = self._gas_meter
        if amount > meter.gas_remaining:
            meter.consume_gas(amount, reason)
        meter.gas_remaining -= amount

    def extend_memory(self, start_position: int, size: int) -> None:
        """Extend the memory to a size, and charge gas for it."""
        if size and start_position + size > len(self._memory):
            super().extend_memory(start_position, size)

    @property
    def is_error(self) -> bool:
        """True if the computation has failed."""
        return self._error is not None

    @property
    def should_burn_gas(self) -> bool:
        """True if the computation has failed and uses up its gas."""
        return self._error is not None and self._error.burns_gas

    @property
    def should_erase_return_data(self) -> bool:
        """True if the computation has failed and returns no data."""
        return self._error is not None and self._error.erases_return_data

    @classmethod
    def validate_create_message(cls, message: Any) -> None:
        """Accept the message; too long init code was refused at the instruction."""

    @classmethod
    def validate_contract_code(cls, contract_code: bytes) -> None:
        """Raise an error if a contract can't have this code."""
        if len(contract_code) > cls.code_size_limit:
            raise exceptions.OutOfGas(f"Contract code size exceeds {cls.code_size_limit}")
        if contract_code.startswith(EIP3541_RESERVED_STARTING_BYTE):
            raise exceptions.ReservedBytesInCode("Contract code begins with 0xef")

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> Any:
        handled = super().__exit__(kind, error, traceback)
        if handled:
            # The computation stores the exception; its traceback would keep every Python frame
            # alive.
            error.__traceback__ = error.__context__ = None
        return handled

    def add_child_computation(self, child_computation: Any) -> None:
        """Keep a subcall's results, without its stack and memory, until the transaction
        ends."""
        super().add_child_computation(child_computation)
        del child_computation._stack, child_computation._memory, child_computation.code

    @property
    def precompiles(self) -> dict[Any, Any]:
        """Precompiled contracts by address; overrides may have moved some."""
        moved: dict[Any, Any] | None = self.state.precompiles  # type: ignore[attr-defined]
        return self.get_precompiles() if moved is None else moved

    @classmethod
    def apply_message(
        cls, state: Any, message: Any, transaction_context: Any, parent_computation: Any = None
    ) -> Any:
        run = super().apply_message
        if state.tracer is None or message.is_create:
            return run(state, message, transaction_context, parent_computation)
        return _traced(run, state, message, transaction_context, parent_computation)

    @classmethod
    def apply_create_message(
        cls, state: Any, message: Any, transaction_context: Any, parent_computation: Any = None
    ) -> Any:
        run = super().apply_create_message
        if state.tracer is None:
            return run(state, message, transaction_context, parent_computation)
        return _traced(run, state, message, transaction_context, parent_computation)

    @classmethod
    def apply_computation(
        cls, state: Any, message: Any, transaction_context: Any, parent_computation: Any = None
    ) -> Any:
        # py-evm: BaseComputation.apply_computation.
        computation: Any
        with cls(state, message, transaction_context) as computation:
            computation._begin(parent_computation)
            precompile = computation.precompiles.get(message.code_address)
            if precompile is not None:
                if not message.is_delegation:
                    precompile(computation)
            elif state.tracer is None:
                execute(computation, _INSTRUCTIONS)
            else:
                computation._run(state.tracer)
        return computation

    def _begin(self, parent: Any) -> None:
        # py-evm takes one that its sender sends itself for the first; EIP-7702 lets contracts
        # call in the sender's name.
        if self.state.tracer is not None:  # type: ignore[attr-defined]
            self.frame = Frame(self.msg, parent)
        self.contracts_created = [] if parent is None else parent.contracts_created
        if self.msg.is_create:
            if parent is None:
                self.consume_initcode_gas_cost(self)
            self.contracts_created.append(self.msg.storage_address)

    def _run(self, tracer: Tracer) -> None:
        """Run the code, and report each instruction to the tracer."""
        opcodes, code = self.opcodes, self.code
        # In geth nothing runs if there is no code.
        while len(code):
            opcode = code.peek()
            self.step = Step(self, opcode)
            code.program_counter += 1
            tracer.step(self.step)
            if opcode == SELFDESTRUCT:
                self._report_end(tracer)
            try:
                (opcodes.get(opcode) or InvalidOpcode(opcode))(computation=self)
            except Halt:
                self.settle()
                return
            except VMError as error:
                self.settle(error_text(error), missing_gas(error) + self._uncharged_gas(error))
                raise
            if self.step is not None and opcode in CREATES:
                self._refuse_creation(self.step)
            self.settle()

    def get_gas_remaining(self) -> int:
        """Return the remaining gas, for this computation or for a subcall."""
        self.offered = 0 if self.should_burn_gas else self._gas_meter.gas_remaining
        return self.offered

    def _uncharged_gas(self, error: VMError) -> int:
        """Return the gas that py-evm would have charged after an amount that exceeded the rest.

        geth adds up the whole cost of an SSTORE before charging it.
        """
        step = self.step
        if step is None or step.op != SSTORE or not missing_gas(error):
            return 0
        is_warm = self.state.is_storage_warm(self.msg.storage_address, step.words[-1])
        return 0 if is_warm else _COLD_SLOT

    def _refuse_creation(self, step: Step) -> None:
        left = self._gas_meter.gas_remaining
        if self._why_not(RefusedFrame(self, step, 0)) is _COLLISION:
            # EIP-684: the call frame got the gas, which is lost.
            self._refuse(step, self.offered - left)
        else:
            # EIP-150: the call frame would have got all but a 64th.
            gas = left - left // 64
            self._refuse(step, gas, missing=gas)

    # py-evm visits nested calls recursively, which is too deep for Python 3.12.

    def _calls(self) -> Iterator[Computation]:
        """Yield this call frame and its subcalls, skipping subcalls that failed."""
        waiting: list[Any] = [self]
        while waiting:
            each = waiting.pop()
            yield each
            if not each.is_error:
                waiting += each.children

    def get_gas_refund(self) -> int:
        """Return the refunded gas."""
        return sum(
            each.msg.refund + (0 if each.is_error else each._gas_meter.gas_refunded)
            for each in self._calls()
        )

    def get_accounts_for_deletion(self) -> list[Address]:
        """Return the accounts that the transaction deletes."""
        return list({name for each in self._lasting() for name in each.accounts_to_delete})

    def get_self_destruct_beneficiaries(self) -> list[Address]:
        """Return the beneficiaries of the accounts that are deleted."""
        return list({name for each in self._lasting() for name in each.beneficiaries})

    def get_raw_log_entries(self) -> tuple[tuple[int, bytes, tuple[int, ...], bytes], ...]:
        """Return the logs in the order in which they were emitted, with their numbers."""
        return tuple(sorted(log for each in self._lasting() for log in each._log_entries))

    def _lasting(self) -> Iterator[Computation]:
        return (each for each in self._calls() if not each.is_error)

    def return_gas(self, amount: int) -> None:
        """Take back the gas that a subcall left, or that a subcall got which did not begin."""
        if self.step is not None and self.opcode in CALLS:
            self._refuse(self.step, amount)
        super().return_gas(amount)

    def _refuse(self, step: Step, gas: int, missing: int = 0) -> None:
        """Trace a call that py-evm did not begin; geth begins it, and ends it at once."""
        tracer: Tracer = self.state.tracer  # type: ignore[attr-defined]
        self.settle(missing=missing)
        frame = RefusedFrame(self, step, gas)
        why = self._why_not(frame)
        tracer.enter(frame)
        tracer.exit(frame, b"", gas if why is _COLLISION else 0, TEXTS[why])

    def _why_not(self, frame: Frame) -> type[VMError]:
        if frame.depth > _DEEPEST:
            return exceptions.StackDepthLimit
        if frame.value > self.state.get_balance(self.msg.storage_address):
            return exceptions.InsufficientFunds
        return _COLLISION

    def settle(self, error: str = "", missing: int = 0) -> None:
        """Report the gas that the current instruction took, or would have taken, unless it was
        reported."""
        step, self.step = self.step, None
        if step is not None:
            cost = step.gas - self._gas_meter.gas_remaining + missing
            self.state.tracer.stepped(step, cost, error)  # type: ignore[attr-defined]

    def _report_end(self, tracer: Tracer) -> None:
        address = self.msg.storage_address
        stack = self.words()
        if stack and not self.msg.is_static:
            beneficiary = stack[-1].to_bytes(32)[12:]
            tracer.selfdestruct(address, beneficiary, self.state.get_balance(address))

    def add_log_entry(self, account: Any, topics: tuple[int, ...], data: bytes) -> None:
        """Record a log that a contract emits."""
        super().add_log_entry(account, topics, data)
        tracer: Tracer | None = self.state.tracer  # type: ignore[attr-defined]
        if tracer is not None:
            words = tuple(topic.to_bytes(32) for topic in topics)
            tracer.log(bytes(account), words, bytes(data))


@lru_cache
def computation_class(code_size_limit: int) -> type[Computation]:
    """Return the class of computations on a chain with this limit of a contract's code."""
    if code_size_limit == CODE_SIZE_LIMIT:
        return Computation
    return type("Computation", (Computation,), {"code_size_limit": code_size_limit})


def touched_accounts(computation: Any) -> set[Address]:
    """Return the accounts that EIP-161 deletes if they are empty.

    py-evm: collect_touched_accounts; address 3 even in failed calls (github.com/ethereum/EIPs,
    716).
    """
    found: set[Address] = {computation.state.coinbase}
    waiting = [(computation, False)]
    while waiting:
        each, is_vain = waiting.pop()
        is_vain = is_vain or each.is_error
        touched_accounts = {each.msg.to, *(() if each.is_error else each.beneficiaries)}
        found |= touched_accounts & {_RIPEMD160} if is_vain else touched_accounts
        waiting += ((child, is_vain) for child in each.children)
    return found - {CREATE_CONTRACT_ADDRESS}


def _traced(
    run: Callable[..., Any], state: Any, message: Any, context: Any, parent: Any
) -> Any:
    """Run a message between the tracer's ``enter`` and ``exit``."""
    if parent is not None:
        parent.settle()
    frame = Frame(message, parent)
    state.tracer.enter(frame)
    try:
        done = run(state, message, context, parent)
    except VMError as error:
        state.tracer.exit(frame, b"", message.gas, error_text(error))
        raise
    used = message.gas - done.get_gas_remaining()
    failure = error_text(done.error) if done.is_error else ""
    state.tracer.exit(frame, bytes(done.output), used, failure)
    return done
