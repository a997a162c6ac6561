"""Instructions of the EVM: gas and function of each, in a table for each fork.

A function that only needs the stack gets the stack, others get the call frame. Gas costs are
from geth's core/vm/jump_table.go and gas_table.go.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from ...protocol.secp256k1eth import keccak
from ..domain.execution import OUT_OF_GAS
from ..domain.forks import Fork, first_with
from ..protocol.execution import created_address
from .base import OPCODES, address_of, name_of
from .frames import (
    COLD_ACCOUNT,
    MAX_STACK,
    OVERFLOW,
    WARM,
    WORD,
    Failure,
    Frame,
    OutOfGas,
    Reverted,
)

_SIGN = 1 << 255
_GAS = 1 << 64
_MODULUS = 1 << 256

# EIP-2929: gas of a slot that the transaction uses for the first time.
_COLD_SLOT = 2_100
_NEW_ACCOUNT, _VALUE, _STIPEND = 25_000, 9_000, 2_300
# EIP-2200 and EIP-3529: gas to set an empty slot and to change another, refund to clear one.
_SET, _RESET, _CLEARED = 20_000, 5_000 - _COLD_SLOT, 4_800
_CREATE, _KECCAK_WORD, _COPIED_WORD = 32_000, 6, 3

OfStack = Callable[[list[int]], object]
OfFrame = Callable[[Frame], object]
"""Function that returns true if the frame has ended, or if a subcall is next."""


class Instruction(NamedTuple):
    """Constant gas and function of an instruction; PUSH1 to PUSH32 and jumps, which the
    interpreter's loop runs itself, have no function."""

    gas: int = 0
    of_stack: OfStack | None = None
    of_frame: OfFrame | None = None


def _signed(word: int) -> int:
    return word - _MODULUS if word & _SIGN else word


def _sdiv(left: int, right: int) -> int:
    if not right:
        return 0
    left, right = _signed(left), _signed(right)
    found = abs(left) // abs(right)
    return (found if (left < 0) == (right < 0) else -found) & WORD


def _smod(left: int, right: int) -> int:
    if not right:
        return 0
    left, right = _signed(left), _signed(right)
    found = abs(left) % abs(right)
    return (-found if left < 0 else found) & WORD


def _signextend(size: int, word: int) -> int:
    if size > 30:
        return word
    sign = 1 << 8 * size + 7
    return (word & 2 * sign - 1 ^ sign) - sign & WORD


def _sar(bits: int, word: int) -> int:
    return _signed(word) >> min(bits, 256) & WORD


def _byte(index: int, word: int) -> int:
    return word >> 248 - 8 * index & 0xFF if index < 32 else 0


def _dup(depth: int) -> OfStack:
    def dup(stack: list[int]) -> None:
        if len(stack) >= MAX_STACK:
            raise Failure(OVERFLOW)
        stack.append(stack[-depth])

    return dup


def _swap(depth: int) -> OfStack:
    def swap(stack: list[int]) -> None:
        stack[-1], stack[-depth] = stack[-depth], stack[-1]

    return swap


def _of_two(compute: Callable[[int, int], int]) -> OfStack:
    return lambda stack: stack.append(compute(stack.pop(), stack.pop()))


def _of_three(compute: Callable[[int, int, int], int]) -> OfStack:
    return lambda stack: stack.append(compute(stack.pop(), stack.pop(), stack.pop()))


# The top of the stack is the left operand. SLT and SGT flip the sign bits, so that unsigned
# comparison gives the order of signed numbers.
_OF_STACK: dict[str, tuple[int, OfStack]] = {
    "ADD": (3, lambda stack: stack.append(stack.pop() + stack.pop() & WORD)),
    "MUL": (5, lambda stack: stack.append(stack.pop() * stack.pop() & WORD)),
    "SUB": (3, lambda stack: stack.append(stack.pop() - stack.pop() & WORD)),
    "DIV": (5, _of_two(lambda left, right: left // right if right else 0)),
    "SDIV": (5, _of_two(_sdiv)),
    "MOD": (5, _of_two(lambda left, right: left % right if right else 0)),
    "SMOD": (5, _of_two(_smod)),
    "ADDMOD": (8, _of_three(lambda a, b, modulus: (a + b) % modulus if modulus else 0)),
    "MULMOD": (8, _of_three(lambda a, b, modulus: a * b % modulus if modulus else 0)),
    "SIGNEXTEND": (5, _of_two(_signextend)),
    "LT": (3, lambda stack: stack.append(1 if stack.pop() < stack.pop() else 0)),
    "GT": (3, lambda stack: stack.append(1 if stack.pop() > stack.pop() else 0)),
    "SLT": (
        3,
        lambda stack: stack.append(1 if stack.pop() ^ _SIGN < stack.pop() ^ _SIGN else 0),
    ),
    "SGT": (
        3,
        lambda stack: stack.append(1 if stack.pop() ^ _SIGN > stack.pop() ^ _SIGN else 0),
    ),
    "EQ": (3, lambda stack: stack.append(1 if stack.pop() == stack.pop() else 0)),
    "ISZERO": (3, lambda stack: stack.append(0 if stack.pop() else 1)),
    "AND": (3, lambda stack: stack.append(stack.pop() & stack.pop())),
    "OR": (3, lambda stack: stack.append(stack.pop() | stack.pop())),
    "XOR": (3, lambda stack: stack.append(stack.pop() ^ stack.pop())),
    "NOT": (3, lambda stack: stack.append(stack.pop() ^ WORD)),
    "BYTE": (3, _of_two(_byte)),
    "SHL": (3, _of_two(lambda bits, word: word << bits & WORD if bits < 256 else 0)),
    "SHR": (3, _of_two(lambda bits, word: word >> bits if bits < 256 else 0)),
    "SAR": (3, _of_two(_sar)),
    "CLZ": (5, lambda stack: stack.append(256 - stack.pop().bit_length())),
    "POP": (2, lambda stack: stack.pop()),
    "JUMPDEST": (1, lambda stack: None),
    **{f"DUP{depth}": (3, _dup(depth)) for depth in range(1, 17)},
    **{f"SWAP{depth}": (3, _swap(depth + 1)) for depth in range(1, 17)},
}

# Instructions that push a value of the frame, the block or the transaction.
_READS: dict[str, tuple[int, Callable[[Frame], int]]] = {
    "ADDRESS": (2, lambda frame: int.from_bytes(frame.to)),
    "ORIGIN": (2, lambda frame: int.from_bytes(frame.execution.message.sender)),
    "CALLER": (2, lambda frame: int.from_bytes(frame.sender)),
    "CALLVALUE": (2, lambda frame: frame.value),
    "CALLDATASIZE": (2, lambda frame: len(frame.data)),
    "CODESIZE": (2, lambda frame: frame.code.size),
    "GASPRICE": (2, lambda frame: frame.execution.message.gas_price),
    "RETURNDATASIZE": (2, lambda frame: len(frame.return_data)),
    "COINBASE": (2, lambda frame: int.from_bytes(frame.execution.environment.coinbase)),
    "TIMESTAMP": (2, lambda frame: frame.execution.environment.timestamp),
    "NUMBER": (2, lambda frame: frame.execution.environment.number),
    "DIFFICULTY": (2, lambda frame: frame.execution.environment.randao_or_difficulty),
    "GASLIMIT": (2, lambda frame: frame.execution.environment.gas_limit),
    "CHAINID": (2, lambda frame: frame.execution.environment.chain_id),
    "SELFBALANCE": (5, lambda frame: frame.execution.state.account(frame.to).balance),
    "BASEFEE": (2, lambda frame: frame.execution.environment.base_fee),
    "BLOBBASEFEE": (2, lambda frame: frame.execution.environment.blob_base_fee),
    "PC": (2, lambda frame: frame.pc - 1),
    "MSIZE": (2, lambda frame: len(frame.memory)),
    "GAS": (2, lambda frame: frame.gas_left),
    "PUSH0": (2, lambda frame: 0),
}


def _reading(read: Callable[[Frame], int]) -> OfFrame:
    def run(frame: Frame) -> None:
        if len(frame.stack) >= MAX_STACK:
            raise Failure(OVERFLOW)
        frame.stack.append(read(frame))

    return run


def _words(size: int) -> int:
    return (size + 31) // 32


def _exp(frame: Frame) -> None:
    base, exponent = frame.stack.pop(), frame.stack.pop()
    frame.charge(50 * ((exponent.bit_length() + 7) // 8))
    frame.stack.append(pow(base, exponent, _MODULUS))


def _keccak(frame: Frame) -> None:
    start, size = frame.stack.pop(), frame.stack.pop()
    frame.charge_memory(_KECCAK_WORD * _words(size), start, size)
    frame.stack.append(int.from_bytes(keccak(frame.read(start, size))))


def _account_gas(frame: Frame, address: bytes) -> int:
    """Return the gas for accessing an account above that for a warm one, and mark the account
    as warm (EIP-2929)."""
    return 0 if frame.execution.state.warm(address) else COLD_ACCOUNT - WARM


def _balance(frame: Frame) -> None:
    address = address_of(frame.stack.pop())
    frame.charge(_account_gas(frame, address))
    frame.stack.append(frame.execution.state.account(address).balance)


def _extcodesize(frame: Frame) -> None:
    address = address_of(frame.stack.pop())
    frame.charge(_account_gas(frame, address))
    frame.stack.append(len(frame.execution.state.code(address)))


def _extcodehash(frame: Frame) -> None:
    address = address_of(frame.stack.pop())
    frame.charge(_account_gas(frame, address))
    state = frame.execution.state
    found = b"" if state.is_empty(address) else state.account(address).code_hash
    frame.stack.append(int.from_bytes(found))


def _slice(data: bytes, start: int, size: int) -> bytes:
    """Return bytes of some data, with zeros after its end."""
    return data[start : start + size].ljust(size, b"\0")


def _calldataload(frame: Frame) -> None:
    frame.stack.append(int.from_bytes(_slice(frame.data, frame.stack.pop(), 32)))


def _copying(read: Callable[[Frame], bytes]) -> OfFrame:
    def run(frame: Frame) -> None:
        stack = frame.stack
        target, start, size = stack.pop(), stack.pop(), stack.pop()
        frame.charge_memory(_COPIED_WORD * _words(size), target, size)
        if size:
            frame.memory[target : target + size] = _slice(read(frame), start, size)

    return run


_calldatacopy = _copying(lambda frame: frame.data)
_codecopy = _copying(lambda frame: frame.code.raw)


def _extcodecopy(frame: Frame) -> None:
    stack = frame.stack
    address = address_of(stack.pop())
    target, start, size = stack.pop(), stack.pop(), stack.pop()
    gas = _account_gas(frame, address) + _COPIED_WORD * _words(size)
    frame.charge_memory(gas, target, size)
    if size:
        code = frame.execution.state.code(address)
        frame.memory[target : target + size] = _slice(code, start, size)


def _returndatacopy(frame: Frame) -> None:
    stack = frame.stack
    target, start, size = stack.pop(), stack.pop(), stack.pop()
    frame.charge_memory(_COPIED_WORD * _words(size), target, size)
    if start + size > len(frame.return_data):
        raise Failure("return data out of bounds")
    if size:
        frame.memory[target : target + size] = frame.return_data[start : start + size]


def _mcopy(frame: Frame) -> None:
    stack = frame.stack
    target, start, size = stack.pop(), stack.pop(), stack.pop()
    frame.charge_memory(_COPIED_WORD * _words(size), max(target, start), size)
    if size:
        frame.memory[target : target + size] = frame.memory[start : start + size]


def _mload(frame: Frame) -> None:
    start = frame.stack.pop()
    if start + 32 > len(frame.memory):
        frame.charge_memory(0, start, 32)
    frame.stack.append(int.from_bytes(frame.memory[start : start + 32]))


def _mstore(frame: Frame) -> None:
    start, word = frame.stack.pop(), frame.stack.pop()
    if start + 32 > len(frame.memory):
        frame.charge_memory(0, start, 32)
    frame.memory[start : start + 32] = word.to_bytes(32)


def _mstore8(frame: Frame) -> None:
    start, word = frame.stack.pop(), frame.stack.pop()
    frame.charge_memory(0, start, 1)
    frame.memory[start] = word & 0xFF


def _blockhash(frame: Frame) -> None:
    number = frame.stack.pop()
    frame.stack.append(int.from_bytes(frame.execution.block_hash(number)))


def _blobhash(frame: Frame) -> None:
    index, hashes = frame.stack.pop(), frame.execution.message.blob_versioned_hashes
    frame.stack.append(int.from_bytes(hashes[index]) if index < len(hashes) else 0)


def _sload(frame: Frame) -> None:
    slot, state = frame.stack.pop(), frame.execution.state
    frame.charge(WARM if state.warm((frame.to, slot)) else _COLD_SLOT)
    frame.stack.append(state.storage(frame.to, slot))


def _sstore(frame: Frame) -> None:
    slot, new = frame.stack.pop(), frame.stack.pop()
    frame.fail_if_static()
    if frame.gas_left <= _STIPEND:
        # geth: core/vm/operations_acl.go.
        raise OutOfGas(0, f"{OUT_OF_GAS}: not enough gas for reentrancy sentry")
    execution = frame.execution
    state = execution.state
    gas = 0 if state.warm((frame.to, slot)) else _COLD_SLOT
    current, original = state.storage(frame.to, slot), state.original(frame.to, slot)
    if current == new or current != original:
        gas += WARM
    else:
        gas += _RESET if original else _SET
    if current != new:
        # Tracers see the refund even if the gas does not suffice, as in geth.
        execution.refund += _sstore_refund(original, current, new)
    frame.charge(gas)
    if current != new:
        state.set_storage(frame.to, slot, new)


def _sstore_refund(original: int, current: int, new: int) -> int:
    """Return the change of the refund when a slot gets a new value (EIP-3529)."""
    refund = 0
    if original and not new:
        refund += _CLEARED
    elif original and not current:
        refund -= _CLEARED
    if original == new:
        refund += (_RESET if original else _SET) - WARM
    return refund


def _tload(frame: Frame) -> None:
    slot = frame.stack.pop()
    frame.stack.append(frame.execution.state.transient(frame.to, slot))


def _tstore(frame: Frame) -> None:
    frame.fail_if_static()
    slot, word = frame.stack.pop(), frame.stack.pop()
    frame.execution.state.set_transient(frame.to, slot, word)


def _logging(count: int) -> OfFrame:
    def run(frame: Frame) -> None:
        stack = frame.stack
        start, size = stack.pop(), stack.pop()
        topics = tuple(stack.pop().to_bytes(32) for _ in range(count))
        frame.fail_if_static()
        frame.charge_memory(375 * count + 8 * size, start, size)
        frame.execution.log(frame.to, topics, frame.read(start, size))

    return run


# Instructions that end a frame.


def _stop(frame: Frame) -> bool:
    return True


def _return(frame: Frame) -> bool:
    start, size = frame.stack.pop(), frame.stack.pop()
    frame.charge_memory(0, start, size)
    frame.output = frame.read(start, size)
    return True


def _revert(frame: Frame) -> bool:
    _return(frame)
    raise Reverted


def _selfdestruct(frame: Frame) -> bool:
    beneficiary = address_of(frame.stack.pop())
    frame.fail_if_static()
    state = frame.execution.state
    gas = 0 if state.warm(beneficiary) else COLD_ACCOUNT
    balance = state.account(frame.to).balance
    if balance and state.is_empty(beneficiary):
        gas += _NEW_ACCOUNT
    frame.charge(gas)
    frame.execution.destroy(frame.to, beneficiary)
    return True


def _invalid(op: int, fork: Fork) -> OfFrame:
    """Return the function of an instruction that a fork does not have."""
    text = f"invalid opcode: {name_of(op)}"
    later = first_with(name_of(op))
    if later is not None and op != OPCODES["INVALID"]:
        text += (
            f", which is defined from {later.name} on; this block has the rules of {fork.name}:"
            " see NODERPC_EVM_HARDFORK and NODERPC_EVM_FORKS"
        )

    def run(frame: Frame) -> None:
        raise Failure(text)

    return run


# Instructions that call, or create contracts.


def _calling(kind: str) -> OfFrame:
    has_value = kind in ("CALL", "CALLCODE")

    def run(frame: Frame) -> bool:
        stack, state = frame.stack, frame.execution.state
        wanted, callee = stack.pop(), address_of(stack.pop())
        value = stack.pop() if has_value else 0
        start, size, out, out_size = stack.pop(), stack.pop(), stack.pop(), stack.pop()
        if kind == "CALL" and value:
            frame.fail_if_static()
        end = max(start + size if size else 0, out + out_size if out_size else 0)
        gas = frame.growth(end) + _account_gas(frame, callee)
        code_address, code, delegate_gas = frame.execution.code_to_run(callee)
        gas += delegate_gas
        if value:
            gas += _VALUE
            if kind == "CALL" and state.is_empty(callee):
                gas += _NEW_ACCOUNT
        left = frame.gas_left - gas
        if left < 0:
            # geth reports the cost with the gas to pass on, which it computes from the negative
            # rest as an unsigned number.
            left += _GAS
            raise OutOfGas(gas + min(wanted, left - left // 64))
        # EIP-150: a caller keeps a 64th of its gas.
        given = min(wanted, left - left // 64)
        frame.gas_left = left - given
        frame.grow(end)
        keeps_context = kind == "DELEGATECALL"
        frame.subframe = Frame(
            execution=frame.execution,
            kind=kind,
            depth=frame.depth + 1,
            sender=frame.sender if keeps_context else frame.to,
            to=callee if kind in ("CALL", "STATICCALL") else frame.to,
            code_address=callee,
            value=frame.value if keeps_context else value,
            gas=given + _STIPEND if value else given,
            data=frame.read(start, size),
            code=frame.execution.prepared(code),
            is_static=frame.is_static or kind == "STATICCALL",
            is_delegated=code_address != callee,
            return_place=(out, out_size),
        )
        return True

    return run


def _creating(kind: str) -> OfFrame:
    is_salted = kind == "CREATE2"

    def run(frame: Frame) -> bool:
        stack, execution = frame.stack, frame.execution
        value, start, size = stack.pop(), stack.pop(), stack.pop()
        salt = stack.pop() if is_salted else 0
        frame.fail_if_static()
        # geth checks first whether the end of the memory is a number of 64 bits.
        frame.growth(start + size if size else 0)
        word_gas = execution.environment.fork.initcode_word_gas
        if word_gas and size > 2 * execution.environment.code_size_limit:
            # geth: core/vm/gas_table.go.
            raise OutOfGas(0, f"{OUT_OF_GAS}: max initcode size exceeded: size {size}")
        word_gas += _KECCAK_WORD if is_salted else 0
        frame.charge_memory(word_gas * _words(size), start, size)
        code, creator = frame.read(start, size), frame.to
        if is_salted:
            digest = keccak(b"\xff" + creator + salt.to_bytes(32) + keccak(code))
            address = digest[12:]
        else:
            address = created_address(creator, execution.state.account(creator).nonce)
        frame.subframe = Frame(
            execution=execution,
            kind=kind,
            depth=frame.depth + 1,
            sender=creator,
            to=address,
            value=value,
            # EIP-150: the creator keeps a 64th of its gas. The machine charges this gas when
            # the subcall ends, as geth's traces exclude it from the instruction's cost.
            gas=frame.gas_left - frame.gas_left // 64,
            code=execution.prepared(code),
        )
        return True

    return run


_OF_FRAME: dict[str, tuple[int, OfFrame]] = {
    **{name: (gas, _reading(read)) for name, (gas, read) in _READS.items()},
    "STOP": (0, _stop),
    "EXP": (10, _exp),
    "KECCAK256": (30, _keccak),
    "BALANCE": (WARM, _balance),
    "CALLDATALOAD": (3, _calldataload),
    "CALLDATACOPY": (3, _calldatacopy),
    "CODECOPY": (3, _codecopy),
    "EXTCODESIZE": (WARM, _extcodesize),
    "EXTCODECOPY": (WARM, _extcodecopy),
    "RETURNDATACOPY": (3, _returndatacopy),
    "EXTCODEHASH": (WARM, _extcodehash),
    "BLOCKHASH": (20, _blockhash),
    "BLOBHASH": (3, _blobhash),
    "MLOAD": (3, _mload),
    "MSTORE": (3, _mstore),
    "MSTORE8": (3, _mstore8),
    "SLOAD": (0, _sload),
    "SSTORE": (0, _sstore),
    "TLOAD": (WARM, _tload),
    "TSTORE": (WARM, _tstore),
    "MCOPY": (3, _mcopy),
    **{f"LOG{count}": (375, _logging(count)) for count in range(5)},
    "CREATE": (_CREATE, _creating("CREATE")),
    "CALL": (WARM, _calling("CALL")),
    "CALLCODE": (WARM, _calling("CALLCODE")),
    "RETURN": (0, _return),
    "DELEGATECALL": (WARM, _calling("DELEGATECALL")),
    "CREATE2": (_CREATE, _creating("CREATE2")),
    "STATICCALL": (WARM, _calling("STATICCALL")),
    "REVERT": (0, _revert),
    "SELFDESTRUCT": (5_000, _selfdestruct),
}
# Gas of PUSH1 to PUSH32 and of the jumps, which the interpreter's loop runs itself.
_OF_LOOP = {"JUMP": 8, "JUMPI": 10, **{f"PUSH{size}": 3 for size in range(1, 33)}}


@cache
def table(fork: Fork) -> list[Instruction]:
    """Return the instruction of each opcode by the rules of a fork."""
    return [_instruction(op, fork) for op in range(256)]


def _instruction(op: int, fork: Fork) -> Instruction:
    name = name_of(op)
    if name not in fork.instructions or name == "INVALID":
        return Instruction(of_frame=_invalid(op, fork))
    if name in _OF_LOOP:
        return Instruction(_OF_LOOP[name])
    if name in _OF_STACK:
        gas, of_stack = _OF_STACK[name]
        return Instruction(gas, of_stack)
    gas, of_frame = _OF_FRAME[name]
    return Instruction(gas, None, of_frame)
