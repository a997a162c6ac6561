"""Errors of py-evm in geth's words."""

from __future__ import annotations

import re

from eth import exceptions
from eth.exceptions import VMError

from ..domain.evm import OUT_OF_GAS, REVERTED
from .base import name_of

# geth: core/vm/errors.go.
TEXTS: dict[type[VMError], str] = {
    exceptions.Revert: REVERTED,
    exceptions.InsufficientStack: "stack underflow",
    exceptions.FullStack: "stack limit reached 1024 (1023)",
    exceptions.InvalidJumpDestination: "invalid jump destination",
    exceptions.InsufficientFunds: "insufficient balance for transfer",
    exceptions.StackDepthLimit: "max call depth exceeded",
    exceptions.ContractCreationCollision: "contract address collision",
    exceptions.WriteProtection: "write protection",
    exceptions.OutOfBoundsRead: "return data out of bounds",
    exceptions.ReservedBytesInCode: "invalid code: must not begin with 0xef",
}
_OUT_OF_GAS = {
    "Contract code size exceeds": "max code size exceeded",
    "Write contract code": "contract creation code storage out of gas",
    "Contract init code size": "max initcode size exceeded",
}
_OPCODE = re.compile(r"0x[0-9a-f]+")
_NEEDED = re.compile(r"Out of gas: Needed (\d+)")


def error_text(error: VMError) -> str:
    """Return geth's text for an error."""
    if isinstance(error, exceptions.OutOfGas):
        found = (text for start, text in _OUT_OF_GAS.items() if start in str(error))
        return next(found, OUT_OF_GAS)
    if isinstance(error, exceptions.InvalidInstruction):
        opcode = _OPCODE.search(str(error))
        code = int(opcode.group(), 16) if opcode else 0xFE
        return "invalid opcode: INVALID" if code == 0xFE else f"invalid opcode: {name_of(code)}"
    return TEXTS.get(type(error), str(error))


def missing_gas(error: VMError) -> int:
    """Return the gas that there was too little of."""
    found = _NEEDED.search(str(error)) if isinstance(error, exceptions.OutOfGas) else None
    return int(found[1]) if found else 0
