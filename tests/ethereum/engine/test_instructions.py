"""Tests that programs do the same with a tracer, which has a loop of its own, as without."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from flask_noderpc.ethereum.domain.execution import (
    NO_STORAGE,
    AccountOverride,
    Environment,
    Message,
    Outcome,
)
from flask_noderpc.ethereum.engine.evm import Evm
from flask_noderpc.ethereum.engine.frames import Tracer, _cached_code
from flask_noderpc.ethereum.protocol.validity import MAX_INITCODE

from .jobs import ADDRESS, NoRecords

ENGINE = Evm(NoRecords())
BLOCK = Environment(chain_id=1, number=1, timestamp=1, gas_limit=30_000_000)
EDGES = (0, 1, 2, 31, 32, 248, 255, 256, 1 << 128, (1 << 255) - 1, 1 << 255, (1 << 256) - 1)

words = st.sampled_from(EDGES) | st.integers(0, (1 << 256) - 1)
pushes = words.map(lambda word: b"\x7f" + word.to_bytes(32))
small = st.integers(0, 96).map(lambda number: bytes((0x60, number)))
# Leave out instructions that call, end, or depend on the gas that is left.
plain = st.sampled_from([*range(0x1E), 0x20, *range(0x30, 0x4B), *range(0x50, 0x60)])
any_depth = st.integers(0x80, 0x9F)
instructions = pushes | small | (plain | any_depth).map(lambda code: bytes((code,)))


def run(code: bytes, gas: int, tracer: Tracer | None) -> Outcome:
    world = ENGINE.world(NO_STORAGE)
    world.patch({ADDRESS: AccountOverride(code=code)})
    message = Message(
        sender=bytes(20), to=ADDRESS, nonce=None, gas=gas, gas_price=0, value=0, data=b"data"
    )
    return world.run(BLOCK, message, tracer)


def check(code: bytes, gas: int = 200_000) -> None:
    assert run(code, gas, None) == run(code, gas, Tracer())


@given(st.integers(0, 0x1D), st.lists(pushes, min_size=3, max_size=3))
def test_arithmetic_gives_the_same(code: int, operands: list[bytes]) -> None:
    check(b"".join(operands) + bytes((code,)) + bytes.fromhex("5f5260205ff3"))


@given(st.lists(instructions, max_size=60), st.integers(22_000, 60_000))
def test_programs_do_the_same_for_the_same_gas(parts: list[bytes], gas: int) -> None:
    # The code returns what the instructions leave on the stack and in memory.
    check(b"".join(parts) + bytes.fromhex("5f5260605ff3"), gas)


@given(st.binary(max_size=100))
def test_any_bytes_do_the_same(code: bytes) -> None:
    check(code, 60_000)


def test_the_stack_has_its_limits() -> None:
    for full in ("5f" * 1024, "5f" * 1025, "5f" + "80" * 1023, "5f" + "80" * 1024):
        check(bytes.fromhex(full))
    for few in ("50", "5f01", "5f5f08", "5f81", "5f90", "51", "5f52", "56"):
        check(bytes.fromhex(few))


def test_code_that_no_contract_may_have_is_not_kept() -> None:
    before = _cached_code.cache_info().misses
    check(bytes(MAX_INITCODE + 1))
    assert _cached_code.cache_info().misses == before


def test_code_ends_within_a_push() -> None:
    check(bytes.fromhex("7f01"))


def test_jumps_lead_to_instructions_alone() -> None:
    # Jumps to 4: a JUMPDEST, the data of a PUSH1, beyond the end.
    for code in ("6004565f5b", "600456605b", "6099565f5b", "60045f575f5b", "600460015700"):
        check(bytes.fromhex(code))


def plain_jumpdests(code: bytes) -> set[int]:
    """Return the positions of JUMPDESTs, by reading one instruction after the other."""
    found, at = set(), 0
    while at < len(code):
        if code[at] == 0x5B:
            found.add(at)
        at += code[at] - 0x5E if 0x60 <= code[at] <= 0x7F else 1
    return found


@given(
    st.binary(min_size=1, max_size=200)
    | st.lists(st.sampled_from([0, 0x5B, 0x60, 0x67, 0x68, 0x7F]), min_size=1).map(bytes),
    st.randoms(use_true_random=False),
)
def test_jump_destinations_are_found_in_any_order(code: bytes, random: Random) -> None:
    world = ENGINE.world(NO_STORAGE)
    targets = list(range(len(code) + 3))
    random.shuffle(targets)
    # Code that jumps to the calldata's word, and ends there unless the destination is wrong.
    start = bytes.fromhex("5f3556")
    whole = start + code
    world.patch({ADDRESS: AccountOverride(code=whole)})
    expected = plain_jumpdests(whole)
    for target in targets:
        message = Message(to=ADDRESS, gas=100_000, data=target.to_bytes(32))
        outcome = world.run(BLOCK, message)
        assert (outcome.error != "invalid jump destination") == (target in expected)
