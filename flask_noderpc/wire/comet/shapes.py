"""Schemas that all versions of CometBFT extend."""

from __future__ import annotations

from ...domain import block as blocks
from ...domain import params
from .. import builders, common
from ..fields import Base64OrNull, Hex, IntString, Number, Text, Timestamp
from ..schema import ListOf, Nested, WireSchema


class Vote(WireSchema):
    """A vote."""

    domain = blocks.Vote
    type = Number()
    height = IntString()
    round = Number()
    block_id = Nested(common.BlockID)
    timestamp = Timestamp()
    validator_address = Hex()
    validator_index = Number()
    signature = Base64OrNull()


class BlockParams(WireSchema):
    """ConsensusParams.block."""

    domain = params.BlockParams
    max_bytes = IntString()
    max_gas = IntString()


class EvidenceParams(WireSchema):
    """ConsensusParams.evidence."""

    domain = params.EvidenceParams
    max_age_num_blocks = IntString()
    max_age_duration = IntString()
    max_bytes = IntString()


class ValidatorParams(WireSchema):
    """ConsensusParams.validator."""

    domain = params.ValidatorParams
    pub_key_types = ListOf(Text())


class VersionParams(WireSchema):
    """ConsensusParams.version."""

    app_version = IntString(data_key="app")


class ConsensusParams(WireSchema):
    """All consensus parameters at a height."""

    domain = builders.consensus_params
    block = Nested(BlockParams)
    evidence = Nested(EvidenceParams)
    validator = Nested(ValidatorParams)
    version = Nested(VersionParams, get=lambda params: params)
