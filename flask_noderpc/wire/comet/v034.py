"""The ``comet-0.34`` dialect: CometBFT 0.34."""

from __future__ import annotations

from dataclasses import replace

from ...domain import rpc_results
from ..event_page import event_page
from ..schema_patch import SchemaPatch
from . import shapes, v038_shapes
from .v034_shapes import ConsensusParams, EventAttribute, VersionParams
from .v037 import COMET_037

REPLACED = SchemaPatch(
    {
        v038_shapes.EventAttribute: EventAttribute,
        v038_shapes.VersionParamsUpdate: VersionParams,
        shapes.ConsensusParams: ConsensusParams,
    }
)

EVENT_SCHEMAS = {event: REPLACED(schema) for event, schema in COMET_037.events.items()}

COMET_034 = replace(
    COMET_037,
    name="comet-0.34",
    node_version="0.34.35",
    schemas={
        **REPLACED.results(COMET_037.schemas),
        rpc_results.EventPage: event_page(EVENT_SCHEMAS),
    },
    events=EVENT_SCHEMAS,
    # CometBFT 0.34: rpc/core/routes.go.
    omits_routes=frozenset({"header", "header_by_hash"}),
    ignored={"tx_search": ("match_events",), "block_search": ("match_events",)},
)
