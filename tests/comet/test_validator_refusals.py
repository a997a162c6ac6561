"""Tests of validator updates that are refused."""

from __future__ import annotations

import pytest

from flask_noderpc.domain.validator import SECP256K1, PublicKey, ValidatorSet, ValidatorUpdate
from flask_noderpc.protocol.comet import key_types, keys, validators

A, B, C = (keys.PrivateKey(bytes([number]) * 32).public for number in range(3))


def two() -> ValidatorSet:
    return validators.genesis_set([ValidatorUpdate(A, 5), ValidatorUpdate(B, 4)])


def test_a_negative_power_is_refused() -> None:
    with pytest.raises(ValueError, match="can't be negative, got -1"):
        validators.updated(two(), [ValidatorUpdate(A, -1)])


def test_a_key_named_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="is updated twice"):
        validators.updated(two(), [ValidatorUpdate(A, 1), ValidatorUpdate(A, 2)])


def test_removing_an_unknown_validator_is_refused() -> None:
    with pytest.raises(
        ValueError, match=f"{key_types.address(C).hex().upper()} is not in the set"
    ):
        validators.updated(two(), [ValidatorUpdate(C, 0)])


def test_a_set_without_anyone_left_is_refused() -> None:
    with pytest.raises(ValueError, match="would be empty"):
        validators.updated(two(), [ValidatorUpdate(A, 0), ValidatorUpdate(B, 0)])


def test_everyone_may_leave_when_someone_comes() -> None:
    members = validators.updated(
        two(), [ValidatorUpdate(A, 0), ValidatorUpdate(B, 0), ValidatorUpdate(C, 1)]
    )

    assert [member.pub_key for member in members.validators] == [C]


@pytest.mark.parametrize("key", [PublicKey(SECP256K1, bytes(32)), PublicKey("ed25519", b"")])
def test_a_key_without_an_address_is_refused(key: PublicKey) -> None:
    with pytest.raises(ValueError, match="expected a key of a known type"):
        validators.updated(two(), [ValidatorUpdate(key, 1)])


def test_a_total_power_at_the_limit_is_taken() -> None:
    # CometBFT limits the total power to an eighth of the largest int64.
    members = validators.updated(two(), [ValidatorUpdate(A, 1152921504606846975 - 4)])

    assert members.total_power == validators.MAX_TOTAL_POWER == 1152921504606846975


def test_a_total_power_above_the_limit_is_refused() -> None:
    with pytest.raises(ValueError, match="can't exceed 1152921504606846975"):
        validators.updated(two(), [ValidatorUpdate(A, 1152921504606846975 - 3)])


def test_a_first_set_with_a_negative_power_is_refused() -> None:
    with pytest.raises(ValueError, match="can't be negative"):
        validators.genesis_set([ValidatorUpdate(A, -1)])


def test_a_refused_update_leaves_the_set_as_it_was() -> None:
    members = two()

    with pytest.raises(ValueError, match="is not in the set"):
        validators.updated(members, [ValidatorUpdate(A, 9), ValidatorUpdate(C, 0)])

    assert members == two()
