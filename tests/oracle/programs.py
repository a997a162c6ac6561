"""Random programs, made of pieces that leave the stack unchanged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from flask_noderpc.ethereum.domain.forks import Fork

from .precompiles import PRECOMPILE_SIZES

_SSTORE, _POP = b"\x55", b"\x50"
_SLOTS = 6

# Opcodes that pop this many words and push one.
_FUNCTIONS = {
    0x01: 2,
    0x02: 2,
    0x03: 2,
    0x04: 2,
    0x05: 2,
    0x06: 2,
    0x07: 2,
    0x08: 3,
    0x09: 3,
    0x0A: 2,
    0x0B: 2,
    **dict.fromkeys(range(0x10, 0x15), 2),
    0x15: 1,
    **dict.fromkeys(range(0x16, 0x19), 2),
    0x19: 1,
    # CLZ.
    0x1E: 1,
    **dict.fromkeys(range(0x1A, 0x1E), 2),
    # Opcodes that read the message, the block and the machine.
    **dict.fromkeys((0x30, 0x32, 0x33, 0x34, 0x36, 0x38, 0x3A, 0x3D), 0),
    **dict.fromkeys((0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x4A), 0),
    **dict.fromkeys((0x58, 0x59, 0x5A), 0),
    0x35: 1,
    0x40: 1,
    0x49: 1,
}
_EDGES = (0, 1, 2, 31, 32, 255, 256, (1 << 255) - 1, 1 << 255, (1 << 256) - 1, (1 << 256) - 2)


def push_address(address: bytes) -> bytes:
    return b"\x73" + address


class Programs:
    """Makes random programs that use some addresses."""

    def __init__(self, random: Random, addresses: Sequence[bytes], fork: Fork) -> None:
        self._random, self.addresses = random, list(addresses)
        # PUSH1 0 where there is no PUSH0 yet.
        self._zero = b"\x5f" if "PUSH0" in fork.instructions else b"\x60\x00"

    def _push(self, value: int) -> bytes:
        """Push a number in as few bytes as it needs."""
        if not value:
            return self._zero
        body = value.to_bytes((value.bit_length() + 7) // 8)
        return bytes((0x5F + len(body),)) + body

    def deploying(self, code: bytes) -> bytes:
        """Return init code that returns a contract's code."""
        # PUSH2 size, PUSH1 length of this, PUSH 0, CODECOPY; PUSH2 size, PUSH 0, RETURN.
        size, zero = len(code).to_bytes(2), self._zero
        length = bytes((10 + 2 * len(zero),))
        return (
            b"\x61"
            + size
            + b"\x60"
            + length
            + zero
            + b"\x39\x61"
            + size
            + zero
            + b"\xf3"
            + code
        )

    def program(self, pieces: int = 8) -> bytes:
        """Return a whole program."""
        code = b"".join(self._piece() for _ in range(self._random.randrange(1, pieces + 1)))
        return code + self._end()

    def _piece(self) -> bytes:
        pieces: tuple[Callable[[], bytes], ...] = (
            self._store,
            self._store,
            self._copy_slot,
            self._transient,
            self._function,
            self._function,
            self._look,
            self._log,
            self._call,
            self._call,
            self._call_precompile,
            self._create,
            self._memory,
            self._branch,
            self._loop,
        )
        return self._random.choice(pieces)()

    def _slot(self) -> bytes:
        return self._push(self._random.randrange(_SLOTS))

    def _number(self) -> int:
        pick = self._random.random()
        if pick < 0.4:
            return self._random.choice(_EDGES)
        return self._random.getrandbits(self._random.choice((3, 8, 64, 160, 256)))

    def _address(self) -> bytes:
        return self._random.choice(self.addresses)

    def _kept(self) -> bytes:
        """Store the top of the stack."""
        return self._slot() + _SSTORE

    def _store(self) -> bytes:
        return self._push(self._random.choice((0, 0, 1, 2, 1 << 200))) + self._kept()

    def _copy_slot(self) -> bytes:
        return self._slot() + b"\x54" + self._kept()

    def _transient(self) -> bytes:
        if self._random.random() < 0.5:
            return self._push(self._number()) + self._slot() + b"\x5d"
        return self._slot() + b"\x5c" + self._kept()

    def _function(self) -> bytes:
        opcode, arity = self._random.choice(list(_FUNCTIONS.items()))
        words = b"".join(self._push(self._number()) for _ in range(arity))
        return words + bytes((opcode,)) + self._kept()

    def _look(self) -> bytes:
        # BALANCE, EXTCODESIZE, EXTCODEHASH.
        opcode = self._random.choice((0x31, 0x3B, 0x3F))
        looked = push_address(self._address()) + bytes((opcode,)) + self._kept()
        if self._random.random() < 0.3:
            # EXTCODECOPY, and the copied word.
            looked += (
                self._push(32)
                + self._zero
                + self._zero
                + push_address(self._address())
                + b"\x3c"
            )
            looked += self._zero + b"\x51" + self._kept()
        return looked

    def _log(self) -> bytes:
        count = self._random.randrange(5)
        topics = b"".join(self._push(self._number()) for _ in range(count))
        size, start = self._random.randrange(70), self._random.randrange(64)
        return topics + self._push(size) + self._push(start) + bytes((0xA0 + count,))

    def _call(self) -> bytes:
        return self._calls(self._address(), self._random.randrange(70))

    def _call_precompile(self) -> bytes:
        number, size = self._random.choice(list(PRECOMPILE_SIZES.items()))
        if self._random.random() < 0.2:
            size += self._random.choice((-1, 1, 32))
        filled = b""
        if self._random.random() < 0.3:
            filled = (
                self._push(self._number()) + self._push(self._random.randrange(size)) + b"\x52"
            )
        return filled + self._calls(number.to_bytes(20), size)

    def _calls(self, address: bytes, size: int) -> bytes:
        # CALL, CALLCODE, DELEGATECALL, STATICCALL.
        opcode = self._random.choice((0xF1, 0xF1, 0xF2, 0xF4, 0xFA))
        value = b""
        if opcode in (0xF1, 0xF2):
            value = self._push(self._random.choice((0, 0, 1, 5, 1 << 100)))
        gas = self._push(self._random.choice((0, 700, 3000, 30_000, 200_000, 1 << 64)))
        out_size, out = self._push(self._random.choice((0, 32, 64))), self._push(32)
        called = (
            out_size + out + self._push(size) + self._zero + value + push_address(address) + gas
        )
        called += bytes((opcode,)) + self._kept()
        pick = self._random.random()
        if pick < 0.3:
            called += b"\x3d" + self._kept()
        elif pick < 0.5:
            # RETURNDATACOPY of all data.
            called += (
                b"\x3d"
                + self._zero
                + self._zero
                + b"\x3e"
                + self._zero
                + b"\x51"
                + self._kept()
            )
        elif pick < 0.51:
            # The length exceeds the returned data.
            called += self._push(33) + self._zero + self._zero + b"\x3e"
        return called

    def _create(self) -> bytes:
        if self._random.random() < 0.05:
            # The length is at or above the maximum, and the value may exceed the balance.
            length = self._push(self._random.choice((49_152, 49_153)))
            worth = self._push(self._random.choice((0, 99)))
            return self._zero + length + self._zero + worth + b"\xf5" + self._kept()
        initcode = self._initcode()
        filled = b"".join(
            self._push(int.from_bytes(initcode[at : at + 32].ljust(32, b"\0")))
            + self._push(at)
            + b"\x52"
            for at in range(0, len(initcode), 32)
        )
        salted = self._random.random() < 0.5
        salt = self._push(self._random.randrange(2)) if salted else b""
        value = self._push(self._random.choice((0, 0, 1, 1 << 100)))
        made = filled + salt + self._push(len(initcode)) + self._zero + value
        made += b"\xf5" if salted else b"\xf0"
        if self._random.random() < 0.5:
            return made + self._kept()
        # Call the created contract, whose address is below DUP1's.
        called = 5 * self._zero + b"\x85\x5a\xf1" + _POP
        return made + called + self._kept()

    def _initcode(self) -> bytes:
        pick = self._random.random()
        if pick < 0.1:
            return self.deploying(b"\xef\x00")
        if pick < 0.2:
            return self._end()
        small = self._store() + self._end()
        before = self._store() if self._random.random() < 0.5 else b""
        if before:
            # The code continues behind, so end with an empty return.
            return before + self._end()
        return self.deploying(small)

    def _memory(self) -> bytes:
        copies = (0x37, 0x39, 0x5E)
        if self._random.random() < 0.5:
            size, start, target = (self._push(self._random.randrange(100)) for _ in range(3))
            return size + start + target + bytes((self._random.choice(copies),))
        hashed = self._push(self._random.randrange(100)) + self._push(
            self._random.randrange(100)
        )
        return hashed + b"\x20" + self._kept()

    def _branch(self) -> bytes:
        """Skip a piece if the calldata is long enough; PC gives the position."""
        piece = self._store()
        # PUSH1 n, CALLDATASIZE, LT, PC, PUSH1 distance, ADD, JUMPI, piece, JUMPDEST.
        size = self._random.randrange(64)
        distance = 5 + len(piece)
        jump = b"\x58\x60" + bytes((distance,)) + b"\x01\x57"
        return self._push(size) + b"\x36\x10" + jump + piece + b"\x5b"

    def _loop(self) -> bytes:
        """Run a piece several times, or until the gas is used up."""
        if self._random.random() < 0.03:
            # JUMPDEST, PC - 1, JUMP
            return b"\x5b\x60\x01\x58\x03\x56"
        rounds, piece = self._random.randrange(1, 9), self._store()
        # n JUMPDEST piece 1 SWAP1 SUB DUP1 distance PC SUB JUMPI POP
        body = piece + b"\x60\x01\x90\x03\x80"
        distance = len(body) + 3
        return (
            self._push(rounds)
            + b"\x5b"
            + body
            + b"\x60"
            + bytes((distance,))
            + b"\x58\x03\x57\x50"
        )

    def _end(self) -> bytes:
        pick = self._random.random()
        size = self._push(self._random.randrange(80))
        if pick < 0.5:
            return b"\x00"
        if pick < 0.7:
            return size + self._zero + b"\xf3"
        if pick < 0.85:
            return size + self._zero + b"\xfd"
        if pick < 0.93:
            return push_address(self._address()) + b"\xff"
        if pick < 0.97:
            # ADDRESS and SELFDESTRUCT: the contract is its own beneficiary.
            return b"\x30\xff"
        return self._random.choice((b"\xfe", b"\x0c", b"\x50", b"\x56", b"\xb0"))
