"""Errors of py-evm as geth words them, and its precompiled contracts, EIP-198 included."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from eth import exceptions
from eth.exceptions import OutOfGas, VMError
from eth.precompiles.modexp import extract_lengths
from eth.vm.forks.prague.computation import PragueComputation
from eth_typing import Address
from py_ecc.fields import optimized_bls12_381_FQ
from py_ecc.fields import optimized_bn128_FQ2 as FQ2
from py_ecc.optimized_bn128 import optimized_curve as bn128

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


Precompile = Callable[[Any], None]

_MODEXP, _PAIRING, _BLAKE2F, _G1_MSM = 0x05, 0x08, 0x09, 0x0C
_BLAKE2F_BYTES = 213
_PYEVM = PragueComputation.get_precompiles()

# geth: core/vm/contracts.go, by the beginning of what py-evm says.
_LENGTH = "invalid input length"
_TEXTS = {
    "Length of data": _LENGTH,
    "Point is not on curve": "invalid point: not on curve",
    "Sub-group check failed for G1": "g1 point is not on correct subgroup",
    "Sub-group check failed for G2": "g2 point is not on correct subgroup",
    "Point evaluation invalid input": _LENGTH,
    "Point evaluation commitment": "mismatched versioned hash",
    "Point evaluation KZG proof": "error verifying kzg proof: can't verify opening proof",
}
# gnark, which geth counts with.
_NOT_CANONICAL = "invalid fp.Element encoding"
_NOT_ON_CURVE = "point is not on curve"
_NOT_IN_SUBGROUP = "point is not in correct subgroup"

# EIP-2537: what repeats in the input, and how much of it are numbers of the field.
_BLS_PARTS = {
    0x0B: (128, 128),
    0x0C: (160, 128),
    0x0D: (256, 256),
    0x0E: (288, 256),
    0x0F: (384, 384),
    0x10: (64, 64),
    0x11: (128, 128),
}
_FIELD_BYTES = 64


def precompiles() -> dict[Address, Precompile]:
    """Return the precompiled contracts by address."""
    runs = {**_PYEVM, Address(_MODEXP.to_bytes(20)): _modexp}
    return {address: _explained(address, run) for address, run in runs.items()}


def _explained(address: Address, run: Precompile) -> Precompile:
    number = int.from_bytes(address)

    def explained(computation: Any) -> None:
        try:
            run(computation)
        except OutOfGas:
            raise
        except VMError as error:
            data = bytes(computation.msg.data_as_bytes)
            raise VMError(_reason(number, data, str(error))) from None

    return explained


def _modexp(computation: Any) -> None:
    """EIP-198; to py-evm whatever has an empty base is 0, also to the power of 0."""
    _PYEVM[Address(_MODEXP.to_bytes(20))](computation)
    data: bytes = computation.msg.data_as_bytes
    base, exponent, size = extract_lengths(data)
    start = 96 + exponent
    if size and not base and not any(data[96:start]):
        modulus = int.from_bytes(data[start : start + size].ljust(size, b"\0"))
        computation.output = (modulus > 1).to_bytes(size)


def _reason(number: int, data: bytes, error_text: str) -> str:
    """Return geth's text for an input that py-evm refused."""
    if number in (0x06, 0x07, _PAIRING):
        return _bn254_reason(number, data)
    if number == _BLAKE2F:
        return _LENGTH if len(data) != _BLAKE2F_BYTES else "invalid final flag"
    if ">= field modulus" in error_text:
        return _field_reason(number, data)
    if error_text.startswith("Point failed sub-group"):
        return f"g{1 if number == _G1_MSM else 2} point is not on correct subgroup"
    return next(
        (text for start, text in _TEXTS.items() if error_text.startswith(start)), error_text
    )


def _field_reason(number: int, data: bytes) -> str:
    stride, numbers = _BLS_PARTS[number]
    for start in range(0, len(data), stride):
        for element in _words(data[start : start + numbers], _FIELD_BYTES):
            if element >> 384:
                return "invalid field element top bytes"
            if element >= optimized_bls12_381_FQ.field_modulus:
                return _NOT_CANONICAL
    return _NOT_CANONICAL


def _bn254_reason(number: int, data: bytes) -> str:
    if number != _PAIRING:
        points = 2 if number == 0x06 else 1
        return _g1_reason(data[: 64 * points].ljust(64 * points, b"\0"))
    if len(data) % 192:
        return "bad elliptic curve pairing size"
    for start in range(0, len(data), 192):
        pair = data[start : start + 192]
        reason = _g1_reason(pair[:64]) or _g2_reason(pair[64:])
        if reason:
            return reason
    return _NOT_IN_SUBGROUP


def _g1_reason(data: bytes) -> str:
    for start in range(0, len(data), 64):
        x, y = _words(data[start : start + 64])
        if max(x, y) >= bn128.field_modulus:
            return _NOT_CANONICAL
        if (x or y) and (y * y - x**3 - 3) % bn128.field_modulus:
            return _NOT_ON_CURVE
    return ""


def _g2_reason(data: bytes) -> str:
    numbers = tuple(_words(data))
    if max(numbers) >= bn128.field_modulus:
        return _NOT_CANONICAL
    if not any(numbers):
        return ""
    x_i, x_r, y_i, y_r = numbers
    point = FQ2([x_r, x_i]), FQ2([y_r, y_i]), FQ2.one()
    if not bn128.is_on_curve(point, bn128.b2):
        return _NOT_ON_CURVE
    is_inside = bn128.is_inf(bn128.multiply(point, bn128.curve_order))
    return "" if is_inside else _NOT_IN_SUBGROUP


def _words(data: bytes, size: int = 32) -> Iterator[int]:
    return (int.from_bytes(data[start : start + size]) for start in range(0, len(data), size))
