"""Tests of validator sets: order, updates, and proposer rotation."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flask_noderpc.domain.validator import PublicKey, Validator, ValidatorSet, ValidatorUpdate
from flask_noderpc.protocol.comet import hashes, key_types, keys, validators

from . import rebuild

KEYS = [keys.PrivateKey(bytes([number]) * 32).public for number in range(8)]
A, B, C = KEYS[:3]
POWERS = st.lists(st.integers(1, 1000), min_size=1, max_size=8)


def genesis(*powers: int) -> ValidatorSet:
    """Return a first set with these powers for the first keys."""
    return validators.genesis_set(
        ValidatorUpdate(key, power) for key, power in zip(KEYS, powers, strict=False)
    )


def placed(*members: tuple[int, int]) -> ValidatorSet:
    """Return a set of (power, priority), in the order of :func:`validators.in_order`."""
    return ValidatorSet(
        validators.in_order(
            Validator(key_types.address(key), key, power, priority)
            for key, (power, priority) in zip(KEYS, members, strict=False)
        )
    )


def priority(members: ValidatorSet, key: PublicKey) -> int:
    return members.by_address[key_types.address(key)][1].proposer_priority


def priorities(members: ValidatorSet) -> list[int]:
    return [member.proposer_priority for member in members.validators]


def powers(members: ValidatorSet) -> dict[PublicKey, int]:
    return {member.pub_key: member.voting_power for member in members.validators}


def test_a_new_validator_proposes_as_on_a_real_chain() -> None:
    # CometBFT 0.38: a set of one validator with power 10 gains one with power 1.
    members = validators.rotated(validators.updated(genesis(10), [ValidatorUpdate(B, 1)]))

    shown = []
    for _ in range(12):
        shown.append(priorities(members))
        members = validators.rotated(members)

    assert shown == [
        [5, -5],
        [4, -4],
        [3, -3],
        [2, -2],
        [1, -1],
        [0, 0],
        [-1, 1],
        [-2, 2],
        [-3, 3],
        [-4, 4],
        [-5, 5],
        [5, -5],
    ]


@pytest.mark.parametrize(
    ("version", "offence", "later"), [("0.34.35", 146, 155), ("0.38.25", 112, 180)]
)
def test_an_update_leads_to_the_set_of_a_real_chain(
    version: str, offence: int, later: int
) -> None:
    # The duplicate vote of a kvstore chain costs the validator one of its ten powers.
    replies = rebuild.reply(version)["validator_evidence_multipart"]
    members = rebuild.validator_set(replies[f"validators?height={later}"]["validators"])
    before = rebuild.header(replies[f"block?height={offence}#evidence"]["block"]["header"])
    after = rebuild.header(replies[f"block?height={later}#multipart"]["block"]["header"])
    big, small = (member.pub_key for member in members.validators)

    first = validators.updated(
        validators.genesis_set([ValidatorUpdate(big, 10)]), [ValidatorUpdate(small, 1)]
    )
    second = validators.updated(first, [ValidatorUpdate(big, 9)])

    assert hashes.validators_hash(first) == before.validators_hash
    assert hashes.validators_hash(second) == after.validators_hash


def test_a_single_validator_stays_at_zero() -> None:
    members = genesis(10)

    for _ in range(5):
        assert priorities(members) == [0]
        assert members.proposer == key_types.address(A)
        members = validators.rotated(members)


def test_an_empty_set_rotates_to_itself() -> None:
    assert validators.rotated(ValidatorSet()) == ValidatorSet()


def test_validators_stand_by_power_then_by_address() -> None:
    members = genesis(5, 7, 5, 7, 5, 7, 9)

    shown = [(member.voting_power, member.address) for member in members.validators]

    assert [power for power, _ in shown] == [9, 7, 7, 7, 5, 5, 5]
    assert shown[1:4] == sorted(shown[1:4])
    assert shown[4:] == sorted(shown[4:])


def test_the_lower_address_proposes_on_a_tie() -> None:
    members = genesis(3, 3, 3)

    assert members.proposer == min(member.address for member in members.validators)


def test_the_proposer_pays_the_whole_power() -> None:
    members = validators.rotated(placed((1, 0), (3, 0)))

    assert (priority(members, A), priority(members, B)) == (1, -1)
    assert members.proposer == key_types.address(B)


def test_distant_priorities_are_divided_toward_zero() -> None:
    # Priorities have a spread of 46, where 2·10 is allowed: divided by 3, they are 7 and -7,
    # not rounded down to -8.
    members = validators.rotated(placed((5, 23), (5, -23)))

    assert (priority(members, A), priority(members, B)) == (7 + 5 - 10, -7 + 5)


def test_priorities_within_the_window_are_unchanged() -> None:
    members = validators.rotated(placed((5, 10), (5, -10)))

    assert (priority(members, A), priority(members, B)) == (10 + 5 - 10, -10 + 5)


def test_priorities_are_centred_on_the_floor_of_their_average() -> None:
    # The average of -1 and -2 is -1.5, and its floor -2, so they become 1 and 0.
    members = validators.rotated(placed((5, -1), (5, -2)))

    assert (priority(members, A), priority(members, B)) == (1 + 5 - 10, 0 + 5)


@given(POWERS, st.integers(1, 30))
def test_the_sum_of_priorities_stays_within_the_count(powers: list[int], steps: int) -> None:
    members = genesis(*powers)

    for _ in range(steps):
        members = validators.rotated(members)
        assert 0 <= sum(priorities(members)) < len(powers)


@given(POWERS.filter(lambda powers: sum(powers) <= 200), st.integers(1, 3))
def test_each_validator_proposes_in_proportion_to_its_power(
    powers: list[int], cycles: int
) -> None:
    members = genesis(*powers)
    total = members.total_power

    turns: Counter[bytes] = Counter()
    for _ in range(cycles * total):
        turns[members.proposer] += 1
        members = validators.rotated(members)

    assert turns == {v.address: cycles * v.voting_power for v in members.validators}


@given(POWERS, st.lists(st.integers(1, 1000), min_size=1, max_size=8), st.integers(0, 9))
def test_priorities_after_an_update_stay_within_the_window(
    powers: list[int], later: list[int], steps: int
) -> None:
    members = validators.at_round(genesis(*powers), steps)
    updates = [ValidatorUpdate(key, power) for key, power in zip(KEYS, later, strict=False)]

    after = validators.updated(members, updates)

    assert max(priorities(after)) - min(priorities(after)) <= 2 * after.total_power
    assert 0 <= sum(priorities(after)) < len(after.validators)


@given(POWERS, st.integers(0, 20))
def test_a_later_round_is_as_many_steps_on(powers: list[int], rounds: int) -> None:
    members = genesis(*powers)

    expected = members
    for _ in range(rounds):
        expected = validators.rotated(expected)

    assert validators.at_round(members, rounds) == expected


def test_round_zero_is_the_set_itself() -> None:
    members = genesis(1, 2, 3)

    assert validators.at_round(members, 0) is members


def test_a_newcomer_starts_an_eighth_below_the_total() -> None:
    members = validators.updated(placed((60, 0), (30, 0)), [ValidatorUpdate(C, 10)])

    # The priority is -(100 + 12), minus the floor of the average, -112 / 3.
    assert priority(members, C) == -112 + 38
    assert priority(members, A) == priority(members, B) == 38


def test_the_priority_of_a_new_validator_counts_simultaneous_removals() -> None:
    # CometBFT uses the total before removals, 60 + 30 + 30, and not 60 + 30.
    members = validators.updated(
        placed((60, 0), (30, 0)), [ValidatorUpdate(B, 0), ValidatorUpdate(C, 30)]
    )

    assert priority(members, A) - priority(members, C) == 120 + 120 // 8


def test_changing_the_power_leaves_the_priority() -> None:
    members = validators.updated(placed((5, 3), (5, -3)), [ValidatorUpdate(A, 7)])

    assert powers(members) == {A: 7, B: 5}
    assert priority(members, A) == 3


def test_an_update_rescales_priorities_for_the_new_total_power() -> None:
    # Priorities have a spread of 200, where 2·(5 + 50) is allowed, and are divided by 2.
    members = validators.updated(placed((50, 100), (50, -100)), [ValidatorUpdate(A, 5)])

    assert (priority(members, A), priority(members, B)) == (50, -50)


def test_an_update_can_add_change_and_remove_at_once() -> None:
    members = validators.updated(
        genesis(5, 4),
        [ValidatorUpdate(A, 0), ValidatorUpdate(B, 1), ValidatorUpdate(C, 2)],
    )

    assert powers(members) == {C: 2, B: 1}
    assert [member.pub_key for member in members.validators] == [C, B]


def test_no_update_leaves_the_set_as_it_is() -> None:
    members = placed((5, 100), (5, -100))

    assert validators.updated(members, []) is members
