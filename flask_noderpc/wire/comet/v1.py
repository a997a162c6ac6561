"""The ``comet-1.0`` dialect: CometBFT 1.0."""

from __future__ import annotations

from dataclasses import replace

from ...domain import rpc_results
from ..consensus_shapes import consensus_dump
from ..event_page import event_page
from ..schema_patch import SchemaPatch
from . import v038_shapes
from .evidence import EVIDENCE_1, with_evidence
from .v038 import COMET_038
from .v038_shapes import ValidatorSet
from .v1_shapes import (
    ConsensusParams,
    DuplicateVote,
    LightClientAttack,
    Status,
    ValidatorUpdate,
)

REPLACED = SchemaPatch(
    {
        v038_shapes.Status: Status,
        v038_shapes.DuplicateVote: DuplicateVote,
        v038_shapes.LightClientAttack: LightClientAttack,
        v038_shapes.ValidatorUpdate: ValidatorUpdate,
        v038_shapes.ConsensusParams: ConsensusParams,
    }
)

EVENT_SCHEMAS = {event: REPLACED(schema) for event, schema in COMET_038.events.items()}

COMET_1 = replace(
    COMET_038,
    name="comet-1.0",
    node_version="1.0.1",
    schemas={
        **REPLACED.results(COMET_038.schemas),
        # CometBFT 1.0: consensus/types/round_state.go.
        rpc_results.ConsensusDump: consensus_dump(ValidatorSet, receive_time=True),
        rpc_results.EventPage: event_page(EVENT_SCHEMAS),
    },
    events=EVENT_SCHEMAS,
    params=with_evidence(COMET_038.params, EVIDENCE_1),
    behaviours=replace(
        COMET_038.behaviours,
        failed_check_is_error=True,
        closed_while_catching_up=True,
        bad_tx_order="invalid order_by: expected `asc`, `desc` or ``, but got {}",
    ),
    # CometBFT 1.0: rpc/jsonrpc/server/rpc_func.go.
    http=replace(COMET_038.http, mounts=("", "/v1")),
)
