"""Tests of single rules of the engine; ``tox -e oracle`` compares the rest with Ethereum's
executable specification."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import pytest

from flask_noderpc.ethereum.domain.execution import (
    NO_STORAGE,
    AccountOverride,
    Environment,
    Message,
    StateChange,
)
from flask_noderpc.ethereum.engine import frames
from flask_noderpc.ethereum.engine.evm import Evm
from flask_noderpc.ethereum.engine.jobs import Patch
from flask_noderpc.ethereum.protocol.execution import created_address
from flask_noderpc.protocol.secp256k1eth import keccak

from .jobs import NoRecords, Runs

ENGINE = Evm(NoRecords())


@pytest.mark.parametrize(
    ("exponent", "modulus", "power"),
    [(b"", b"\x05", 1), (b"\0", b"\x05", 1), (b"\3", b"\5", 0), (b"", b"\1", 0), (b"", b"", 0)],
)
def test_an_empty_base_to_a_power(exponent: bytes, modulus: bytes, power: int) -> None:
    lengths = bytes(32) + len(exponent).to_bytes(32) + len(modulus or b"\0").to_bytes(32)
    data = lengths + exponent + modulus
    # CALLDATACOPY all, STATICCALL of 5, RETURN one byte.
    code = bytes.fromhex("365f5f37" + "60015f365f60055afa" + "5060015ff3")
    outcome = Runs(code, 1_000_000, data)(ENGINE)
    assert (outcome.error, outcome.output) == ("", bytes((power,)))


def test_selfdestruct_emits_no_warning() -> None:
    # Warnings are errors in this test run.
    assert Runs(bytes.fromhex("30ff"), 100_000)(ENGINE).error == ""


@pytest.mark.parametrize("create", ["f0", "f5"])
def test_code_too_long_to_create_fails_also_where_nothing_begins(create: str) -> None:
    # The value exceeds the balance: PUSH0, size, PUSH0, value.
    code = bytes.fromhex("5f" + "61c001" + "5f" + "6001" + create)
    outcome = Runs(code, 1_000_000)(ENGINE)
    assert outcome.error == "out of gas: max initcode size exceeded: size 49153"
    assert outcome.gas_used == 1_000_000


@pytest.mark.parametrize(
    ("gas", "error"),
    [
        (2_300, "out of gas: not enough gas for reentrancy sentry"),
        (2_301, "out of gas"),
        (22_100, ""),
    ],
)
def test_a_word_is_not_set_with_the_gas_of_a_transfer(gas: int, error: str) -> None:
    """EIP-2200: a contract that is called with a transfer's gas can't change its storage."""
    # PUSH1 1, PUSH0, SSTORE: the message costs 21,000 gas, and the pushes 5.
    outcome = Runs(bytes.fromhex("60015f55"), gas + 21_005)(ENGINE)
    assert outcome.error == error


class Written(NoRecords):
    """The records that a state change wrote."""

    def __init__(self, change: StateChange) -> None:
        self._written = change.written

    def record(self, digest: bytes) -> bytes | None:
        return self._written.get(digest)


def test_storage_is_in_the_way_of_a_new_contract() -> None:
    message = Message(gas=100_000)
    created = created_address(message.sender, 0)
    change = Patch(NO_STORAGE, {created: AccountOverride(state={bytes(32): b"\1"})})(ENGINE)
    world = Evm(Written(change)).world(change.root)
    block = Environment(chain_id=1, number=1, timestamp=1, gas_limit=10**6)
    outcome = world.run(block, message)
    assert (outcome.error, outcome.gas_used) == ("contract address collision", 100_000)


def test_a_discarded_world_frees_its_memory() -> None:
    def write(first: int) -> None:
        owners = [keccak(number.to_bytes(8))[:20] for number in range(first, first + 100)]
        change = Patch(NO_STORAGE, {owner: AccountOverride(nonce=1) for owner in owners})
        assert change(ENGINE).written

    write(0)
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(1, 11):
            write(number * 100)
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # Without the release, the accounts of ten worlds would stay in memory.
    assert taken < 1_000_000


def push(value: int) -> bytes:
    return b"\x61" + value.to_bytes(2)


@pytest.mark.parametrize("size", [49_000, 1 << 20])
def test_many_jumps_read_the_code_a_bounded_number_of_times(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each block of the code jumps to the one before, over a PUSH9 with its data."""
    block = 15
    count = min(size, 60_000) // block
    scans = 0
    found = frames.Code._found_starts

    def counted(self: frames.Code) -> Any:
        nonlocal scans
        scans += 1
        return found(self)

    monkeypatch.setattr(frames.Code, "_found_starts", counted)
    outcome = Runs(_descending(count, block, size), 30_000_000)(ENGINE)
    assert (outcome.error, scans) == ("", 1)


def _descending(count: int, block: int, size: int) -> bytes:
    """Return code that enters the last of some blocks; the first one ends it."""
    start = 4
    blocks = [b"\x5b".ljust(block, b"\0")]
    blocks += [
        b"\x5b" + push(start + at * block) + b"\x56\x68" + bytes(9) for at in range(count - 1)
    ]
    return (push(start + (count - 1) * block) + b"\x56" + b"".join(blocks)).ljust(size, b"\0")


def test_frames_with_the_same_code_share_it() -> None:
    # The code calls itself with all its gas, and is far above the limit of a contract.
    code = bytes.fromhex("5f5f5f5f5f305af100").ljust(1 << 20, b"\0")
    tracemalloc.start()
    try:
        assert Runs(code, 1 << 40)(ENGINE).error == ""
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 32 << 20


@pytest.mark.parametrize(
    ("offset", "error"),
    [
        (1 << 32, "out of gas"),
        (1 << 40, "out of gas: gas uint64 overflow"),
        (1 << 64, "gas uint64 overflow"),
        ((1 << 256) - 1, "gas uint64 overflow"),
    ],
)
def test_memory_that_no_gas_can_buy(offset: int, error: str) -> None:
    # PUSH0, PUSH32 offset, MSTORE.
    outcome = Runs(b"\x5f\x7f" + offset.to_bytes(32) + b"\x52", 1_000_000)(ENGINE)
    assert outcome.error == error
