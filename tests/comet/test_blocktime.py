"""Tests that a block's time is the weighted median of the votes for its parent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flask_noderpc.domain.block import ABSENT, BlockIDFlag, Commit, CommitSig
from flask_noderpc.domain.validator import PublicKey, ValidatorSet, ValidatorUpdate
from flask_noderpc.protocol.comet import key_types, keys, validators
from flask_noderpc.protocol.comet.validators import median_time

KEYS = [keys.PrivateKey(bytes([number]) * 32).public for number in range(6)]


def voters(*powers: int) -> ValidatorSet:
    return validators.genesis_set(
        ValidatorUpdate(key, power) for key, power in zip(KEYS, powers, strict=False)
    )


def vote(key: PublicKey, time_ns: int, flag: int = BlockIDFlag.COMMIT) -> CommitSig:
    return CommitSig(flag, key_types.address(key), time_ns, bytes(64))


def commit(*sigs: CommitSig) -> Commit:
    return Commit(1, 0, signatures=sigs)


@pytest.mark.parametrize(
    ("powers", "times", "median"),
    [
        ((10,), (7,), 7),
        ((1, 1, 1), (30, 10, 20), 10),
        # With two equal powers, the first one reaches half of the total, rounded down.
        ((5, 5), (10, 20), 10),
        ((1, 9), (10, 20), 20),
        ((9, 1), (10, 20), 10),
        ((1, 1, 1, 1), (40, 30, 20, 10), 20),
        ((1, 1, 1, 1, 1), (50, 40, 30, 20, 10), 20),
        ((3, 3, 4), (10, 20, 30), 20),
        ((33, 33, 34), (10, 20, 30), 20),
        ((1, 1, 10), (10, 20, 30), 30),
    ],
)
def test_the_median_is_the_first_time_with_half_of_the_power(
    powers: tuple[int, ...], times: tuple[int, ...], median: int
) -> None:
    sigs = [vote(key, time_ns) for key, time_ns in zip(KEYS, times, strict=False)]

    assert median_time(commit(*sigs), voters(*powers)) == median


def test_absent_votes_do_not_count() -> None:
    members = voters(1, 1, 100)
    sigs = (vote(KEYS[0], 10), vote(KEYS[1], 20), ABSENT)

    assert median_time(commit(*sigs), members) == 10


def test_an_absent_vote_does_not_count_even_where_it_names_its_validator() -> None:
    members = voters(1, 9)
    sigs = (vote(KEYS[0], 10), vote(KEYS[1], 20, BlockIDFlag.ABSENT))

    assert median_time(commit(*sigs), members) == 10


def test_a_vote_for_nil_counts() -> None:
    members = voters(1, 9)
    sigs = (vote(KEYS[0], 10), vote(KEYS[1], 20, BlockIDFlag.NIL))

    assert median_time(commit(*sigs), members) == 20


def test_a_vote_of_an_unknown_validator_does_not_count() -> None:
    members = voters(1)
    sigs = (vote(KEYS[0], 20), vote(KEYS[5], 10))

    assert median_time(commit(*sigs), members) == 20


@pytest.mark.parametrize("sigs", [(), (ABSENT,), (ABSENT, ABSENT)])
def test_a_commit_without_votes_has_no_time(sigs: tuple[CommitSig, ...]) -> None:
    with pytest.raises(ValueError, match="has no median time"):
        median_time(commit(*sigs), voters(1, 1))


@given(st.data())
def test_a_minority_of_a_third_cannot_move_the_time_past_the_honest(
    data: st.DataObject,
) -> None:
    powers = data.draw(st.lists(st.integers(1, 50), min_size=2, max_size=6))
    liars = data.draw(st.sets(st.integers(0, len(powers) - 1)))
    while 3 * sum(powers[at] for at in liars) >= sum(powers):
        liars.pop()
    times = data.draw(
        st.lists(st.integers(0, 10**18), min_size=len(powers), max_size=len(powers))
    )
    sigs = [vote(key, time_ns) for key, time_ns in zip(KEYS, times, strict=False)]
    honest = [time_ns for at, time_ns in enumerate(times) if at not in liars]

    assert min(honest) <= median_time(commit(*sigs), voters(*powers)) <= max(honest)


@given(st.permutations(range(4)))
def test_the_order_of_the_votes_does_not_matter(order: list[int]) -> None:
    members = voters(4, 3, 2, 1)
    sigs = [vote(KEYS[at], 10 * at) for at in range(4)]

    shuffled = commit(*(sigs[at] for at in order))

    assert median_time(shuffled, members) == median_time(commit(*sigs), members)
