"""Tests that the first block has the genesis time, and later blocks the median time of the
votes."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from flask_noderpc.chain.clock import ManualClock, SystemClock
from flask_noderpc.domain.time import MILLISECOND, SECOND

from .conftest import Open
from .fixtures import GENESIS_TIME, write_home


def test_the_first_block_has_the_time_of_the_genesis(open_chain: Open, tmp_path: Path) -> None:
    write_home(tmp_path, {1: 10}, [1])
    chain = open_chain()

    chain.produce()

    assert chain.reads.block_meta(1).header.time == GENESIS_TIME


def test_a_later_block_has_the_time_of_the_votes_for_its_parent(
    open_chain: Open, clock: ManualClock
) -> None:
    chain = open_chain()
    clock.advance(1)
    chain.produce()
    voted = clock.now()

    clock.advance(7)
    chain.produce()

    assert chain.reads.block_meta(2).header.time == voted
    assert chain.reads.commit(2).signatures[0].timestamp == voted + 7 * SECOND


@pytest.mark.parametrize("step", [0.0, -3600.0])
def test_time_goes_on_by_a_millisecond_when_the_clock_does_not(
    open_chain: Open, clock: ManualClock, step: float
) -> None:
    chain = open_chain()
    chain.produce()
    for _ in range(3):
        clock.advance(step)
        chain.produce()

    times = [chain.reads.block_meta(height).header.time for height in range(1, 5)]

    steps = [later - earlier for earlier, later in pairwise(times)]
    assert steps == [MILLISECOND] * 3
    assert chain.store.verify() == 4


def test_the_system_clock_does_not_stand_still() -> None:
    clock = SystemClock()
    first = clock.now()

    assert first > 1_700_000_000 * SECOND
    assert clock.now() >= first
