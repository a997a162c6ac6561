"""The instructions of the EVM by their numbers, under the names that geth's traces have."""

from __future__ import annotations

from typing import Final

SLOAD, SSTORE = 0x54, 0x55
BALANCE, EXTCODESIZE, EXTCODECOPY, EXTCODEHASH = 0x31, 0x3B, 0x3C, 0x3F
CREATE, CALL, CALLCODE, DELEGATECALL, CREATE2, STATICCALL = 0xF0, 0xF1, 0xF2, 0xF4, 0xF5, 0xFA
SELFDESTRUCT = 0xFF

OF_STORAGE: Final = frozenset((SLOAD, SSTORE))
"""A slot is on top of the stack."""
OF_ACCOUNT: Final = frozenset((BALANCE, EXTCODESIZE, EXTCODECOPY, EXTCODEHASH, SELFDESTRUCT))
"""An address is on top of the stack."""
OF_CALL: Final = frozenset((CALL, CALLCODE, DELEGATECALL, STATICCALL))
"""An address is below the gas."""

_ROWS = {
    0x00: "STOP ADD MUL SUB DIV SDIV MOD SMOD ADDMOD MULMOD EXP SIGNEXTEND",
    0x10: "LT GT SLT SGT EQ ISZERO AND OR XOR NOT BYTE SHL SHR SAR",
    0x20: "KECCAK256",
    0x30: "ADDRESS BALANCE ORIGIN CALLER CALLVALUE CALLDATALOAD CALLDATASIZE CALLDATACOPY"
    " CODESIZE CODECOPY GASPRICE EXTCODESIZE EXTCODECOPY RETURNDATASIZE RETURNDATACOPY"
    " EXTCODEHASH",
    0x40: "BLOCKHASH COINBASE TIMESTAMP NUMBER DIFFICULTY GASLIMIT CHAINID SELFBALANCE BASEFEE"
    " BLOBHASH BLOBBASEFEE",
    0x50: "POP MLOAD MSTORE MSTORE8 SLOAD SSTORE JUMP JUMPI PC MSIZE GAS JUMPDEST TLOAD TSTORE"
    " MCOPY PUSH0",
    0x60: " ".join(f"PUSH{size}" for size in range(1, 33)),
    0x80: " ".join(f"DUP{place}" for place in range(1, 17)),
    0x90: " ".join(f"SWAP{place}" for place in range(1, 17)),
    0xA0: "LOG0 LOG1 LOG2 LOG3 LOG4",
    0xF0: "CREATE CALL CALLCODE RETURN DELEGATECALL CREATE2",
    0xFA: "STATICCALL",
    0xFD: "REVERT INVALID SELFDESTRUCT",
}
_NAMES = {
    first + place: name
    for first, names in _ROWS.items()
    for place, name in enumerate(names.split())
}


def name_of(opcode: int) -> str:
    """geth: core/vm/opcodes.go."""
    return _NAMES.get(opcode) or f"opcode {opcode:#x} not defined"


def address_of(word: int) -> bytes:
    """The address in a word."""
    return word.to_bytes(32)[12:]
