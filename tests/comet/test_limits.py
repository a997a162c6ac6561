from __future__ import annotations

import pytest

from flask_noderpc.domain.genesis import (
    BlockParams,
    ConsensusParams,
    EvidenceParams,
    ValidatorParams,
)
from flask_noderpc.protocol.comet.chain_state import MAX_BLOCK_BYTES, check_params


def test_the_default_parameters_may_be() -> None:
    check_params(ConsensusParams())


@pytest.mark.parametrize("max_bytes", [-1, 1, MAX_BLOCK_BYTES])
def test_a_block_may_be_of_any_size_up_to_the_limit(max_bytes: int) -> None:
    check_params(ConsensusParams(BlockParams(max_bytes=max_bytes), EvidenceParams(max_bytes=1)))


@pytest.mark.parametrize(
    ("params", "name"),
    [
        (ConsensusParams(BlockParams(max_bytes=0)), "block.max_bytes"),
        (ConsensusParams(BlockParams(max_bytes=-2)), "block.max_bytes"),
        (ConsensusParams(BlockParams(max_bytes=MAX_BLOCK_BYTES + 1)), "block.max_bytes"),
        (ConsensusParams(BlockParams(max_gas=-2)), "block.max_gas"),
        (ConsensusParams(evidence=EvidenceParams(max_age_num_blocks=0)), "max_age_num_blocks"),
        (ConsensusParams(evidence=EvidenceParams(max_age_duration=0)), "max_age_duration"),
        (ConsensusParams(evidence=EvidenceParams(max_bytes=-1)), "evidence.max_bytes"),
        (ConsensusParams(BlockParams(max_bytes=1_048_575)), "evidence.max_bytes"),
        (ConsensusParams(vote_extensions_enable_height=-1), "vote_extensions_enable_height"),
        (ConsensusParams(pbts_enable_height=-1), "pbts_enable_height"),
        (ConsensusParams(validator=ValidatorParams(())), "pub_key_types"),
        (ConsensusParams(validator=ValidatorParams(("rsa",))), "pub_key_types"),
    ],
)
def test_invalid_limits_are_refused_by_name(params: ConsensusParams, name: str) -> None:
    with pytest.raises(ValueError, match=name):
        check_params(params)
