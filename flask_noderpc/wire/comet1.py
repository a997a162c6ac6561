"""The ``comet-1.0`` dialect: what a CometBFT 1.0 node sends."""

from __future__ import annotations

from dataclasses import replace

from ..domain import answers
from . import comet038_shapes
from .comet038 import COMET_038
from .comet1_shapes import ConsensusParams, DuplicateVote, Status, ValidatorUpdate
from .event_page import event_page
from .replacing import Replacing

REPLACED = Replacing(
    {
        comet038_shapes.Status: Status,
        comet038_shapes.DuplicateVote: DuplicateVote,
        comet038_shapes.ValidatorUpdate: ValidatorUpdate,
        comet038_shapes.ConsensusParams: ConsensusParams,
    }
)

EVENT_SCHEMAS = {event: REPLACED(schema) for event, schema in COMET_038.events.items()}

COMET_1 = replace(
    COMET_038,
    name="comet-1.0",
    node_version="1.0.1",
    schemas={
        **REPLACED.results(COMET_038.schemas),
        answers.EventPage: event_page(EVENT_SCHEMAS),
    },
    events=EVENT_SCHEMAS,
    rules=replace(
        COMET_038.rules,
        failed_check_is_error=True,
        closed_while_catching_up=True,
        bad_tx_order="invalid order_by: expected `asc`, `desc` or ``, but got {}",
    ),
    # CometBFT 1.0: rpc/jsonrpc/server/rpc_func.go.
    http=replace(COMET_038.http, mounts=("", "/v1")),
)
