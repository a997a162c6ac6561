"""The ``comet-0.34`` dialect: what a CometBFT 0.34 node sends."""

from __future__ import annotations

from dataclasses import replace

from ..domain import answers
from . import comet038_shapes, comet_shapes
from .comet034_shapes import ConsensusParams, EventAttribute, VersionParams
from .comet037 import COMET_037
from .event_page import event_page
from .replacing import Replacing

REPLACED = Replacing(
    {
        comet038_shapes.EventAttribute: EventAttribute,
        comet038_shapes.VersionParamsUpdate: VersionParams,
        comet_shapes.ConsensusParams: ConsensusParams,
    }
)

EVENT_SCHEMAS = {event: REPLACED(schema) for event, schema in COMET_037.events.items()}

COMET_034 = replace(
    COMET_037,
    name="comet-0.34",
    node_version="0.34.35",
    schemas={
        **REPLACED.results(COMET_037.schemas),
        answers.EventPage: event_page(EVENT_SCHEMAS),
    },
    events=EVENT_SCHEMAS,
    # CometBFT 0.34: rpc/core/routes.go.
    lacks=frozenset({"header", "header_by_hash"}),
    ignored={"tx_search": ("match_events",), "block_search": ("match_events",)},
)
