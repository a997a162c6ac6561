"""Execution of one message with all its call frames, by the rules of a fork."""

from __future__ import annotations

from ...protocol.secp256k1eth import ORDER
from ..domain.execution import CODE_OUT_OF_GAS, CONSOLE, DELEGATION, Outcome
from ..domain.records import BLOB, GAS_PER_BLOB, Authorization
from ..protocol.crypto import authority_of
from ..protocol.execution import created_address
from ..protocol.validity import floor_gas, intrinsic_gas
from .base import OPCODES
from .frames import (
    MAX_STACK,
    OVERFLOW,
    UNDERFLOW,
    Execution,
    Failure,
    Frame,
    OutOfGas,
    Reverted,
    Step,
    Tracer,
    is_delegation,
)
from .instructions import table
from .precompiles import Precompile

_DEEPEST = 1024
_NONCES = 1 << 64
_JUMP, _PUSH0 = OPCODES["JUMP"], OPCODES["PUSH0"]

# First byte that new code must not have (EIP-3541), and gas for each byte of new code.
_RESERVED, _CODE_BYTE = b"\xef", 200
# EIP-7702: refund for an authority that exists, as the intrinsic gas assumes a new account.
_KNOWN_AUTHORITY = 12_500

# Texts of geth's core/vm/errors.go.
_DEPTH = "max call depth exceeded"
_BALANCE = "insufficient balance for transfer"
_NONCE = "nonce uint64 overflow"
_COLLISION = "contract address collision"


class Machine:
    """Interpreter that runs the message of an execution, and changes its state."""

    def __init__(self, execution: Execution) -> None:
        self._execution, self._state = execution, execution.state
        self._environment, self._message = execution.environment, execution.message
        self._tracer = execution.tracer
        self._of_steps = self._tracer if self._tracer and self._tracer.sees_steps else None
        self._fork = execution.environment.fork
        self._instructions = table(self._fork)

    def run(self) -> Outcome:
        """Buy the gas, run the message, pay back the rest and pay the coinbase; return the
        outcome."""
        state, message, fork = self._state, self._message, self._fork
        sender = message.sender
        if message.nonce is not None:
            state.set_nonce(sender, message.nonce)
        nonce = state.account(sender).nonce
        creates = message.to is None
        intrinsic = intrinsic_gas(
            fork, message.data, creates, message.access_list, message.authorizations
        )
        if creates and nonce == _NONCES - 1:
            return Outcome(gas_used=intrinsic, max_used_gas=intrinsic, error=_NONCE)
        environment = self._environment
        fee = message.gas * message.gas_price
        if message.type == BLOB:
            blob_gas = GAS_PER_BLOB * len(message.blob_versioned_hashes)
            fee += blob_gas * environment.blob_base_fee
        if fee:
            state.add_balance(sender, -fee)
        state.increment_nonce(sender)
        if message.value > state.account(sender).balance:
            state.keep_changes()
            return Outcome(gas_used=intrinsic, max_used_gas=intrinsic, error=_BALANCE)
        top = self._top_frame(message.gas - intrinsic, nonce)
        self._run(top)
        used = message.gas - top.gas_left
        floor = floor_gas(fork, message.data)
        paid = max(used - min(self._execution.refund, used // 5), floor)
        state.add_balance(sender, (message.gas - paid) * message.gas_price)
        tip = message.gas_price - environment.base_fee
        state.add_balance(environment.coinbase, paid * tip)
        state.end_transaction()
        return Outcome(
            gas_used=paid,
            max_used_gas=max(used, floor),
            output=top.output,
            error=top.failure.text if top.failure else "",
            logs=tuple(self._execution.logs),
            created=top.to if creates else None,
            console=tuple(self._execution.console),
        )

    def _top_frame(self, gas: int, nonce: int) -> Frame:
        """Apply access list and authorizations, and return the frame of the message."""
        message, state = self._message, self._state
        sender = message.sender
        # Warm the fork's addresses of precompiled contracts, and those to which overrides have
        # moved such contracts.
        state.warm_up(self._fork.addresses)
        state.warm_up(self._execution.precompiles)
        state.warm(sender)
        if self._fork.has_warm_coinbase:
            state.warm(self._environment.coinbase)
        for entry in message.access_list:
            state.warm(entry.address)
            for key in entry.storage_keys:
                state.warm((entry.address, int.from_bytes(key)))
        for authorization in message.authorizations:
            self._delegate(authorization)
        execution = self._execution
        if message.to is None:
            to = created_address(sender, nonce)
            state.warm(to)
            return Frame(
                execution=execution,
                kind="CREATE",
                sender=sender,
                to=to,
                value=message.value,
                gas=gas,
                code=execution.prepared(message.data),
            )
        state.warm(message.to)
        code_address, code, _ = execution.code_to_run(message.to)
        return Frame(
            execution=execution,
            kind="CALL",
            sender=sender,
            to=message.to,
            code_address=message.to,
            value=message.value,
            gas=gas,
            data=message.data,
            code=execution.prepared(code),
            is_delegated=code_address != message.to,
        )

    def _delegate(self, own: Authorization) -> None:
        """Let an account run the code of another one (EIP-7702); skip an authorization that is
        invalid."""
        state = self._state
        is_for_chain = own.chain_id in (0, self._environment.chain_id)
        if not is_for_chain or own.nonce >= _NONCES - 1 or own.y_parity > 1:
            return
        authority = authority_of(own) if own.s <= ORDER // 2 else None
        if authority is None:
            return
        state.warm(authority)
        code = state.code(authority)
        if code and not is_delegation(code):
            return
        if state.account(authority).nonce != own.nonce:
            return
        if state.exists(authority):
            self._execution.refund += _KNOWN_AUTHORITY
        state.set_code(authority, DELEGATION + own.address if any(own.address) else b"")
        state.increment_nonce(authority)

    # Frames.

    def _run(self, top: Frame) -> None:
        """Run a frame and its subcalls; a loop replaces recursion, as 1,024 may be nested."""
        frames = [top] if self._has_begun(top) else []
        while frames:
            frame = frames[-1]
            subframe = self._continued(frame)
            if subframe is None:
                self._end(frames.pop())
                if frames:
                    self._return_to(frames[-1], frame)
            elif self._has_begun(subframe):
                frames.append(subframe)
            else:
                self._return_to(frame, subframe)

    def _continued(self, frame: Frame) -> Frame | None:
        """Run the code of a frame until its next subcall, which is returned, or until its end;
        return ``None`` then."""
        frame.subframe = None
        try:
            if self._of_steps is None:
                self._execute(frame)
            else:
                self._trace(frame, self._of_steps)
        except IndexError:
            frame.fail(Failure(UNDERFLOW))
        except Failure as failure:
            frame.fail(failure)
        return frame.subframe

    def _has_begun(self, frame: Frame) -> bool:
        """Begin a frame; return true if its code has to run."""
        if self._tracer is not None:
            self._tracer.enter(frame)
        try:
            self._check(frame)
            self._begin(frame)
            precompile = self._execution.precompiles.get(frame.code_address)
            if precompile is None or frame.is_delegated:
                if frame.code.size:
                    return True
                if frame.code_address == CONSOLE:
                    self._execution.print(frame.data)
            else:
                self._run_precompile(frame, precompile)
        except Failure as failure:
            frame.fail(failure)
        self._end(frame)
        return False

    def _begin(self, frame: Frame) -> None:
        """Create the contract of a frame, or move its value."""
        state, execution = self._state, self._execution
        frame.logs, frame.refund = len(execution.logs), execution.refund
        if frame.creates:
            # Warm the address before the snapshot: it stays warm if the creation fails.
            state.warm(frame.to)
        frame.snapshot = state.snapshot()
        if frame.creates:
            if not state.can_be_created(frame.to):
                raise Failure(_COLLISION)
            state.create(frame.to)
        elif frame.kind in ("DELEGATECALL", "CALLCODE"):
            return
        elif not (frame.value or state.exists(frame.to)):
            # Do nothing, as a call without value does not create an account.
            return
        if frame.value:
            state.add_balance(frame.sender, -frame.value)
        state.add_balance(frame.to, frame.value)

    def _check(self, frame: Frame) -> None:
        """Refuse a subcall that can't begin; its gas goes back to the caller."""
        if not frame.depth:
            return
        if frame.depth > _DEEPEST:
            raise _Refused(_DEPTH)
        # A DELEGATECALL moves no value: its caller received the value already.
        is_paid = frame.kind != "DELEGATECALL"
        if is_paid and frame.value > self._state.account(frame.sender).balance:
            raise _Refused(_BALANCE)
        if frame.creates:
            if self._state.account(frame.sender).nonce == _NONCES - 1:
                raise _Refused(_NONCE)
            self._state.increment_nonce(frame.sender)

    def _run_precompile(self, frame: Frame, precompile: Precompile) -> None:
        frame.charge(precompile.gas(frame.data))
        try:
            frame.output = precompile.run(frame.data)
        except ValueError as error:
            raise Failure(str(error)) from None

    def _end(self, frame: Frame) -> None:
        """End a frame: store the code of a new contract, or undo the changes of a failure."""
        if frame.creates and frame.failure is None:
            try:
                self._store_code(frame)
            except Failure as failure:
                frame.fail(failure)
        # As in geth, the code of a contract that can't be stored is an output for tracers.
        ending, output = frame.failure, frame.output
        if ending is not None and not isinstance(ending, _Refused):
            self._state.revert(frame.snapshot)
            self._execution.refund = frame.refund
            del self._execution.logs[frame.logs :]
            if not isinstance(ending, Reverted):
                frame.gas_left, frame.output = 0, b""
        if self._tracer is not None:
            used = frame.gas - frame.gas_left
            self._tracer.exit(frame, output, used, ending.text if ending else "")

    def _store_code(self, frame: Frame) -> None:
        code = frame.output
        if len(code) > self._environment.code_size_limit:
            raise Failure("max code size exceeded")
        if code.startswith(_RESERVED):
            raise Failure("invalid code: must not begin with 0xef")
        gas = _CODE_BYTE * len(code)
        if gas > frame.gas_left:
            raise Failure(CODE_OUT_OF_GAS)
        frame.gas_left -= gas
        self._state.set_code(frame.to, code)

    def _return_to(self, caller: Frame, frame: Frame) -> None:
        """Hand the output, the result and the remaining gas of a subcall to its caller."""
        failure, output = frame.failure, frame.output
        if frame.creates:
            # CREATE has not charged the gas that it passed to this frame; see ``_creating``.
            caller.gas_left -= frame.gas
            caller.return_data = output if isinstance(failure, Reverted) else b""
            word = 0 if failure else int.from_bytes(frame.to)
        else:
            caller.return_data = output
            start, size = frame.return_place
            size = min(size, len(output))
            caller.memory[start : start + size] = output[:size]
            word = 0 if failure else 1
        caller.gas_left += frame.gas_left
        caller.stack.append(word)

    # Instructions.

    def _execute(self, frame: Frame) -> None:
        """Run instructions until the frame ends or a subcall is next."""
        instructions, code = self._instructions, frame.code.padded
        stack, pc, gas = frame.stack, frame.pc, frame.gas_left
        while True:
            op = code[pc]
            pc += 1
            cost, of_stack, of_frame = instructions[op]
            gas -= cost
            if gas < 0:
                raise OutOfGas(cost)
            if of_stack is not None:
                of_stack(stack)
            elif of_frame is not None:
                frame.pc, frame.gas_left = pc, gas
                if of_frame(frame):
                    return
                gas = frame.gas_left
            elif op > _PUSH0:
                if len(stack) >= MAX_STACK:
                    raise Failure(OVERFLOW)
                end = pc + op - _PUSH0
                stack.append(int.from_bytes(code[pc:end]))
                pc = end
            else:
                pc = _next_pc(op, pc, frame)

    def _trace(self, frame: Frame, tracer: Tracer) -> None:
        """Run instructions as :meth:`_execute` does, and report each to the tracer."""
        while True:
            pc, gas = frame.pc, frame.gas_left
            op = frame.code.padded[pc]
            step = Step(self, frame, pc, op, gas)
            tracer.step(step)
            try:
                stops = self._step(frame, op)
            except IndexError:
                tracer.stepped(step, gas - frame.gas_left, UNDERFLOW)
                raise
            except Failure as failure:
                tracer.stepped(step, gas - frame.gas_left + failure.cost, failure.text)
                raise
            tracer.stepped(step, gas - frame.gas_left, "")
            if stops:
                return

    def preview(self, frame: Frame, op: int) -> tuple[int, int, str]:
        """Return the cost of the next instruction of a frame, the refund after it, and its
        error. The instruction runs, and its changes are undone."""
        state, execution = self._state, self._execution
        snapshot, refund, logs = state.snapshot(), execution.refund, len(execution.logs)
        stack, memory, pc, gas = frame.stack, frame.memory, frame.pc, frame.gas_left
        frame.stack, frame.memory = stack.copy(), memory.copy()
        execution.tracer = None
        cost, error = 0, ""
        try:
            self._step(frame, op)
        except IndexError:
            error = UNDERFLOW
        except Failure as failure:
            cost, error = failure.cost, failure.text
        finally:
            state.revert(snapshot)
            cost += gas - frame.gas_left
            after, execution.refund, execution.tracer = execution.refund, refund, self._tracer
            del execution.logs[logs:]
            frame.stack, frame.memory, frame.pc, frame.gas_left = stack, memory, pc, gas
            frame.output, frame.subframe = b"", None
        return cost, after, error

    def _step(self, frame: Frame, op: int) -> object:
        """Run one instruction; return true if the frame ends or a subcall is next."""
        stack, code = frame.stack, frame.code.padded
        cost, of_stack, of_frame = self._instructions[op]
        frame.charge(cost)
        frame.pc += 1
        if of_frame is not None:
            return of_frame(frame)
        if of_stack is not None:
            of_stack(stack)
        elif op > _PUSH0:
            end = frame.pc + op - _PUSH0
            frame.push(int.from_bytes(code[frame.pc : end]))
            frame.pc = end
        else:
            frame.pc = _next_pc(op, frame.pc, frame)
        return False


def _next_pc(op: int, pc: int, frame: Frame) -> int:
    """Return the position of the instruction after a JUMP or JUMPI."""
    target = frame.stack.pop()
    if op != _JUMP and not frame.stack.pop():
        return pc
    if not frame.code.is_jump_destination(target):
        raise Failure("invalid jump destination")
    return target


class _Refused(Failure):
    """Failure of a subcall that can't begin; its caller gets all of its gas back."""
