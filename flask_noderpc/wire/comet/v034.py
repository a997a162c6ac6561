"""The ``comet-0.34`` dialect: CometBFT 0.34, where it differs from 0.37.

CometBFT 0.34: results contain the structs of types/params.pb.go, so that zero fields of
parameters are omitted everywhere.
"""

from __future__ import annotations

from dataclasses import replace

from ...domain import abci, responses
from .. import builders, common
from ..dialect import SchemaPatch
from ..events import event_page
from ..fields import Base64OrNull, Flag, IntString
from ..schema import Nested, WireSchema
from . import v038_schemas
from .v037 import COMET_037
from .v038_schemas import BlockParamsUpdate, EvidenceParamsUpdate, ValidatorParamsUpdate


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


REPLACED = SchemaPatch(
    {
        v038_schemas.EventAttribute: EventAttribute,
        v038_schemas.VersionParamsUpdate: VersionParams,
        common.ConsensusParams: ConsensusParams,
    }
)

EVENT_SCHEMAS = {event: REPLACED(schema) for event, schema in COMET_037.events.items()}

COMET_034 = replace(
    COMET_037,
    name="comet-0.34",
    node_version="0.34.35",
    schemas={
        **REPLACED.results(COMET_037.schemas),
        responses.ResultEvents: event_page(EVENT_SCHEMAS),
    },
    events=EVENT_SCHEMAS,
    # CometBFT 0.34: rpc/core/routes.go.
    omits_routes=frozenset({"header", "header_by_hash"}),
    ignored={"tx_search": ("match_events",), "block_search": ("match_events",)},
)
