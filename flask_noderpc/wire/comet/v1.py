"""The ``comet-1.0`` dialect, with its differences from CometBFT 0.38."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter

from ...domain import genesis, responses
from .. import builders, common
from ..consensus_schemas import consensus_dump
from ..dialect import SchemaPatch
from ..events import event_page
from ..fields import Base64, IntString, Text, Timestamp
from ..schema import ListOf, Nested, WireSchema
from . import v038_schemas
from .evidence import EVIDENCE_1, with_evidence
from .v038 import COMET_038
from .v038_schemas import ValidatorSet

# CometBFT 1.0: version/version.go.
P2P_PROTOCOL = 9


class ProtocolVersion(common.ProtocolVersion):
    """NodeInfo.protocol_version of this node; peers may have other versions."""

    p2p = IntString(get=lambda _: P2P_PROTOCOL)


class NodeInfo(common.NodeInfo):
    """NodeInfo of the node itself."""

    protocol_version = Nested(ProtocolVersion)


class Status(v038_schemas.Status):
    """Result of ``status``."""

    node_info = Nested(NodeInfo)


class DuplicateVote(v038_schemas.DuplicateVote):
    """Two votes of one validator; CometBFT 1.0: types/evidence.go renamed the other fields."""

    total_voting_power = IntString()
    validator_power = IntString()
    timestamp = Timestamp()


class LightClientAttack(v038_schemas.LightClientAttack):
    """Conflicting block; CometBFT 1.0 renamed all fields."""

    conflicting_block = Nested(v038_schemas.LightBlock)
    common_height = IntString()
    byzantine_validators = ListOf(v038_schemas.Validator, null_when_empty=True)
    total_voting_power = IntString()
    timestamp = Timestamp()


class ValidatorUpdate(WireSchema):
    """New power of a validator; CometBFT 1.0: abci/v1/types.pb.go has plain bytes for keys."""

    domain = builders.validator_update
    power = IntString(omit_empty=True)
    pub_key_bytes = Base64(get=attrgetter("pub_key.value"), omit_empty=True)
    pub_key_type = Text(get=attrgetter("pub_key.type"), omit_empty=True)


class SynchronyParams(WireSchema):
    """ConsensusParams.synchrony."""

    domain = genesis.SynchronyParams
    precision = IntString()
    message_delay = IntString()


class FeatureParams(WireSchema):
    """ConsensusParams.feature."""

    vote_extensions_enable_height = IntString()
    pbts_enable_height = IntString()


class ConsensusParams(common.ConsensusParams):
    """All consensus parameters at a height."""

    synchrony = Nested(SynchronyParams)
    feature = Nested(FeatureParams, get=lambda params: params)


class HeightValue(WireSchema):
    """Protobuf's Int64Value."""

    domain = builders.only_member
    value = IntString(get=lambda height: height, omit_empty=True)


class FeatureParamsUpdate(WireSchema):
    """ConsensusParams.feature in an update."""

    vote_extensions_enable_height = Nested(HeightValue, omit_none=True)
    pbts_enable_height = Nested(HeightValue, omit_none=True)


class ConsensusParamsUpdate(v038_schemas.OlderParamsUpdate):
    """Parameter updates; CometBFT 1.0: api/cometbft/types/v1/params.pb.go."""

    synchrony = Nested(SynchronyParams, omit_empty=True)
    feature = Nested(
        FeatureParamsUpdate,
        get=lambda u: (
            None if u.vote_extensions_enable_height is u.pbts_enable_height is None else u
        ),
        omit_empty=True,
    )


REPLACED = SchemaPatch(
    {
        v038_schemas.Status: Status,
        v038_schemas.DuplicateVote: DuplicateVote,
        v038_schemas.LightClientAttack: LightClientAttack,
        v038_schemas.ValidatorUpdate: ValidatorUpdate,
        v038_schemas.ConsensusParams: ConsensusParams,
        v038_schemas.ConsensusParamsUpdate: ConsensusParamsUpdate,
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
        responses.ResultDumpConsensusState: consensus_dump(ValidatorSet, receive_time=True),
        responses.ResultEvents: event_page(EVENT_SCHEMAS),
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
