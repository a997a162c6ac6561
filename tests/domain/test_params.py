"""Tests of consensus parameters, and of the changes that an application makes to them."""

from __future__ import annotations

import pytest

from flask_noderpc.domain.genesis import (
    BlockParams,
    ConsensusParams,
    ConsensusParamsUpdate,
    EvidenceParams,
    ValidatorParams,
)


def test_the_defaults_are_those_of_a_real_node() -> None:
    # CometBFT 0.38: the consensus_params reply of a chain that has not set any.
    params = ConsensusParams()

    assert (params.block.max_bytes, params.block.max_gas) == (22020096, -1)
    assert params.evidence == EvidenceParams(100000, 172800000000000, 1048576)
    assert params.validator.pub_key_types == ("ed25519",)
    assert params.vote_extensions_enable_height == 0


def test_an_empty_update_changes_nothing() -> None:
    params = ConsensusParams(BlockParams(1, 2), app_version=3)

    assert params.updated(ConsensusParamsUpdate()) == params


@pytest.mark.parametrize(
    ("update", "expected"),
    [
        (
            ConsensusParamsUpdate(block=BlockParams(1000, 5)),
            ConsensusParams(block=BlockParams(1000, 5)),
        ),
        (
            ConsensusParamsUpdate(evidence=EvidenceParams(1, 2, 3)),
            ConsensusParams(evidence=EvidenceParams(1, 2, 3)),
        ),
        (
            ConsensusParamsUpdate(validator=ValidatorParams(("secp256k1",))),
            ConsensusParams(validator=ValidatorParams(("secp256k1",))),
        ),
        (ConsensusParamsUpdate(app_version=7), ConsensusParams(app_version=7)),
    ],
    ids=["block", "evidence", "validator", "app_version"],
)
def test_an_update_changes_only_its_group(
    update: ConsensusParamsUpdate, expected: ConsensusParams
) -> None:
    assert ConsensusParams().updated(update) == expected


def test_an_update_can_set_the_app_version_back_to_zero() -> None:
    params = ConsensusParams(app_version=7)

    assert params.updated(ConsensusParamsUpdate(app_version=0)).app_version == 0
