"""Tests that the precompiled contracts of curves return what py-evm's own, which are pure
Python, return."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from eth.exceptions import VMError
from eth.vm.forks.prague.computation import PragueComputation

from flask_noderpc.ethereum.engine import bn254
from flask_noderpc.ethereum.engine.pyevm_precompiles import precompiles
from flask_noderpc.protocol.secp256k1eth import ORDER, Key
from tests.oracle.precompiles import precompile_input

THEIRS = PragueComputation.get_precompiles()
OURS = precompiles()
CURVES = (0x06, 0x07, 0x08, *range(0x0B, 0x12))
PAIRINGS = (0x08, 0x0F)


@dataclass
class Called:
    """A call of a precompiled contract, without an engine."""

    data: bytes
    gas: int = 0
    output: bytes = b""
    msg: Any = field(init=False)

    def __post_init__(self) -> None:
        self.msg = SimpleNamespace(data=self.data, data_as_bytes=self.data)

    def consume_gas(self, amount: int, reason: str) -> None:
        self.gas += amount


def outcome(run: Callable[[Any], Any], data: bytes) -> tuple[bytes, int] | None:
    """Return output and gas; ``None`` if the input is refused, which takes all gas."""
    called = Called(data)
    try:
        run(called)
    except VMError:
        return None
    return called.output, called.gas


@pytest.mark.parametrize("number", CURVES)
def test_they_give_what_those_of_py_evm_give(number: int) -> None:
    address, random = number.to_bytes(20), Random(number)
    found = set()
    for _ in range(4 if number in PAIRINGS else 12):
        data = precompile_input(random, number)
        expected = outcome(THEIRS[address], data)  # type: ignore[index]
        assert outcome(OURS[address], data) == expected, data.hex()  # type: ignore[index]
        found.add(expected)
    assert len(found) > 1


@pytest.mark.parametrize("number", CURVES)
@pytest.mark.parametrize("size", [0, 1, 64, 128, 192, 256, 384])
def test_zeros_are_points_at_infinity_where_the_length_is_right(number: int, size: int) -> None:
    address, data = number.to_bytes(20), bytes(size)
    expected = outcome(THEIRS[address], data)  # type: ignore[index]
    assert outcome(OURS[address], data) == expected  # type: ignore[index]


@pytest.mark.parametrize("number", [0x07, 0x08])
def test_without_zksnake_py_ecc_gives_the_same(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, random = number.to_bytes(20), Random(number)
    inputs = [precompile_input(random, number) for _ in range(4)]
    expected = [outcome(OURS[address], data) for data in inputs]  # type: ignore[index]
    monkeypatch.setattr(bn254, "_library", bn254.PyEcc())

    assert [outcome(OURS[address], data) for data in inputs] == expected  # type: ignore[index]
    assert len(set(expected)) > 1


# A signature by the key 1, and values that no key has signed.
DIGEST = bytes(range(32))
PARITY, R, S = Key((1).to_bytes(32)).sign(DIGEST)


@pytest.mark.parametrize(
    ("v", "r", "s"),
    [
        (27 + PARITY, R, S),
        (28 - PARITY, R, ORDER - S),
        (28 - PARITY, R, S),
        (26, R, S),
        (29, R, S),
        (27, 0, S),
        (27, ORDER, S),
        (27, R, 0),
        (27, R, ORDER),
        (27, 5, S),
        (27, 2**256 - 1, 2**256 - 1),
    ],
)
@pytest.mark.parametrize("size", [128, 97, 64, 200])
def test_recovery_gives_what_py_evm_gives(v: int, r: int, s: int, size: int) -> None:
    words = DIGEST + b"".join(number.to_bytes(32) for number in (v, r, s))
    data = words.ljust(200, b"\1")[:size]
    address = (1).to_bytes(20)
    expected = outcome(THEIRS[address], data)  # type: ignore[index]
    assert outcome(OURS[address], data) == expected  # type: ignore[index]
