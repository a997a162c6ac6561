"""What py-evm does otherwise than Ethereum, and we mend; ``tox -e oracle`` has the rest."""

from __future__ import annotations

import pytest

from flask_noderpc.engine.pyevm import PyEvm

from .jobs import NoRecords, Runs

ENGINE = PyEvm(NoRecords())


@pytest.mark.parametrize(
    ("exponent", "modulus", "power"),
    [(b"", b"\x05", 1), (b"\0", b"\x05", 1), (b"\3", b"\5", 0), (b"", b"\1", 0), (b"", b"", 0)],
)
def test_an_empty_base_to_a_power(exponent: bytes, modulus: bytes, power: int) -> None:
    lengths = bytes(32) + len(exponent).to_bytes(32) + len(modulus or b"\0").to_bytes(32)
    data = lengths + exponent + modulus
    # CALLDATACOPY all, STATICCALL of 5, RETURN the one byte.
    code = bytes.fromhex("365f5f37" + "60015f365f60055afa" + "5060015ff3")
    outcome = Runs(code, 1_000_000, data)(ENGINE)
    assert (outcome.error, outcome.output) == ("", bytes((power,)))


def test_selfdestruct_warns_nobody() -> None:
    # Warnings are errors here.
    assert Runs(bytes.fromhex("30ff"), 100_000)(ENGINE).error == ""
