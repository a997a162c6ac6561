"""Schemas in which CometBFT 0.34 differs from 0.37.

CometBFT 0.34: results contain the structs of types/params.pb.go, so that zero fields of
parameters are omitted everywhere.
"""

from __future__ import annotations

from ...domain import abci
from .. import builders
from ..fields import Base64OrNull, Flag, IntString
from ..schema import Nested, WireSchema
from .v038_shapes import BlockParamsUpdate, EvidenceParamsUpdate, ValidatorParamsUpdate


class EventAttribute(WireSchema):
    """One key and value; CometBFT 0.34: abci/types/types.pb.go has bytes for both."""

    domain = abci.EventAttribute
    key = Base64OrNull()
    value = Base64OrNull()
    index = Flag()


class VersionParams(WireSchema):
    """ConsensusParams.version, here and in an update."""

    app_version = IntString(omit_empty=True)


class BlockParams(BlockParamsUpdate):
    """ConsensusParams.block; updates don't have the third."""

    time_iota_ms = IntString(omit_empty=True)


class ConsensusParams(WireSchema):
    """All consensus parameters at a height."""

    domain = builders.consensus_params
    block = Nested(BlockParams)
    evidence = Nested(EvidenceParamsUpdate)
    validator = Nested(ValidatorParamsUpdate)
    version = Nested(VersionParams, get=lambda params: params)
