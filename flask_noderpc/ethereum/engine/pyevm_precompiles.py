"""Errors of py-evm in geth's words, and its precompiled contracts, including EIP-198's."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from typing import Any

from eth import exceptions
from eth.exceptions import OutOfGas, VMError

# This is blake2b-py's function, if it is installed.
from eth.precompiles.blake2 import blake2b_compress  # type: ignore[attr-defined]
from eth.precompiles.bls12_381 import constants as costs
from eth.precompiles.modexp import extract_lengths
from eth.vm.forks.prague.computation import PragueComputation
from eth_typing import Address

from ...protocol import secp256k1eth
from ..domain.execution import OUT_OF_GAS, REVERTED
from . import bls12_381, bn254
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
    # geth: core/vm/operations_acl.go.
    "Net-metered SSTORE": f"{OUT_OF_GAS}: not enough gas for reentrancy sentry",
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
    """Return the gas that was missing."""
    found = _NEEDED.search(str(error)) if isinstance(error, exceptions.OutOfGas) else None
    return int(found[1]) if found else 0


Precompile = Callable[[Any], None]
Gas = Callable[[bytes], int]

_MODEXP, _BLAKE2F = 0x05, 0x09
_PYEVM = PragueComputation.get_precompiles()

# geth's core/vm/contracts.go, by the beginning of py-evm's text.
_TEXTS = {
    "Point evaluation invalid input": bls12_381.LENGTH,
    "Point evaluation commitment": "mismatched versioned hash",
    "Point evaluation KZG proof": "error verifying kzg proof: can't verify opening proof",
}


def _msm_gas(one: int, discounts: Sequence[int], least: int, size: int) -> Gas:
    """Return the gas function of EIP-2537's sums, with a discount that grows with the number of
    points."""

    def gas(data: bytes) -> int:
        count = len(data) // size
        if not count:
            return 0
        discount = discounts[count - 1] if count <= len(discounts) else least
        return count * one * discount // costs.MSM_MULTIPLIER

    return gas


def _gas(base: int, each: int = 0, size: int = 1) -> Gas:
    return lambda data: base + len(data) // size * each


def _ecrecover(data: bytes) -> bytes:
    """Return the padded address of the key that made a signature; empty for an invalid
    signature."""
    digest, *words = (data[at : at + 32].ljust(32, b"\0") for at in range(0, 128, 32))
    v, r, s = map(int.from_bytes, words)
    if v not in (27, 28) or not (0 < r < secp256k1eth.ORDER and 0 < s < secp256k1eth.ORDER):
        return b""
    address = secp256k1eth.recover_address(digest, v - 27, r, s)
    return b"" if address is None else address.rjust(32, b"\0")


# Gas and functions of EIP-1108 and EIP-2537. py-evm also recovers keys in pure Python.
_CURVES: dict[int, tuple[Gas, Callable[[bytes], bytes]]] = {
    0x01: (_gas(3_000), _ecrecover),
    0x06: (_gas(150), bn254.add),
    0x07: (_gas(6_000), bn254.multiply),
    0x08: (_gas(45_000, 34_000, 192), bn254.pairing),
    0x0B: (_gas(costs.BLS12_G1_ADD_GAS), bls12_381.g1_add),
    0x0C: (
        _msm_gas(
            costs.BLS12_G1_MSM_GAS, costs.G1_MSM_DISCOUNTS, costs.G1_MSM_MAX_DISCOUNT, 160
        ),
        bls12_381.g1_msm,
    ),
    0x0D: (_gas(costs.BLS12_G2_ADD_GAS), bls12_381.g2_add),
    0x0E: (
        _msm_gas(
            costs.BLS12_G2_MSM_GAS, costs.G2_MSM_DISCOUNTS, costs.G2_MSM_MAX_DISCOUNT, 288
        ),
        bls12_381.g2_msm,
    ),
    0x0F: (_gas(37_700, 32_600, 384), bls12_381.pairing),
    0x10: (_gas(costs.BLS12_MAP_FP_G1_GAS), bls12_381.map_to_g1),
    0x11: (_gas(costs.BLS12_MAP_FP2_G2_GAS), bls12_381.map_to_g2),
}


def precompiles() -> dict[Address, Precompile]:
    """Return the precompiled contracts by address."""
    curves = {Address(number.to_bytes(20)): _curve(*row) for number, row in _CURVES.items()}
    own = {Address(_MODEXP.to_bytes(20)): _modexp, Address(_BLAKE2F.to_bytes(20)): _blake2f}
    runs = {**_PYEVM, **curves, **own}
    return {address: _explained(run) for address, run in runs.items()}


def _explained(run: Precompile) -> Precompile:
    def explained(computation: Any) -> None:
        try:
            run(computation)
        except OutOfGas:
            raise
        except VMError as error:
            raise VMError(_reason(str(error))) from None

    return explained


def _curve(gas: Gas, compute: Callable[[bytes], bytes]) -> Precompile:
    def run(computation: Any) -> None:
        data = bytes(computation.msg.data_as_bytes)
        computation.consume_gas(gas(data), reason="precompiled contract")
        try:
            computation.output = compute(data)
        except ValueError as error:
            raise VMError(str(error)) from None

    return run


def _modexp(computation: Any) -> None:
    """Run EIP-198's MODEXP; py-evm returns 0 for an empty base, even to the power of 0."""
    _PYEVM[Address(_MODEXP.to_bytes(20))](computation)
    data: bytes = computation.msg.data_as_bytes
    base, exponent, size = extract_lengths(data)
    start = 96 + exponent
    if size and not base and not any(data[96:start]):
        modulus = int.from_bytes(data[start : start + size].ljust(size, b"\0"))
        computation.output = (modulus > 1).to_bytes(size)


# EIP-152's input: rounds, state, message and offset of little-endian words, and a flag.
_BLAKE2F_DATA = struct.Struct("<4s8Q16Q2QB")


def _blake2f(computation: Any) -> None:
    """Run EIP-152's BLAKE2 F; py-evm takes a hundred steps to read the words."""
    data = bytes(computation.msg.data_as_bytes)
    if len(data) != _BLAKE2F_DATA.size:
        raise VMError(bls12_381.LENGTH)
    first, *words, final = _BLAKE2F_DATA.unpack(data)
    if final > 1:
        raise VMError("invalid final flag")
    rounds = int.from_bytes(first)
    computation.consume_gas(rounds, reason="precompiled contract")
    parts = tuple(words[:8]), tuple(words[8:24]), tuple(words[24:])
    computation.output = blake2b_compress(rounds, *parts, bool(final))


def _reason(error_text: str) -> str:
    """Return geth's text for an input that py-evm refused."""
    return next(
        (text for start, text in _TEXTS.items() if error_text.startswith(start)), error_text
    )
