"""Schemas in which CometBFT 1.0 differs from 0.38."""

from __future__ import annotations

from ...domain.time import SECOND
from .. import builders, common
from ..fields import Base64, IntString, Text, Timestamp
from ..schema import ListOf, Nested, WireSchema
from . import shapes, v038_shapes

# CometBFT 1.0: version/version.go.
P2P_PROTOCOL = 9

# CometBFT 1.0: types/params.go, DefaultSynchronyParams.
PRECISION = 505 * SECOND // 1000
MESSAGE_DELAY = 15 * SECOND


class ProtocolVersion(common.ProtocolVersion):
    """NodeInfo.protocol_version of this node; peers may have another."""

    p2p = IntString(get=lambda _: P2P_PROTOCOL)


class NodeInfo(common.NodeInfo):
    """NodeInfo of the node itself."""

    protocol_version = Nested(ProtocolVersion)


class Status(v038_shapes.Status):
    """Result of ``status``."""

    node_info = Nested(NodeInfo)


class DuplicateVote(v038_shapes.DuplicateVote):
    """Two votes of one validator; CometBFT 1.0: types/evidence.go renamed the other fields."""

    total_voting_power = IntString()
    validator_power = IntString()
    timestamp = Timestamp()


class LightClientAttack(v038_shapes.LightClientAttack):
    """Conflicting block; CometBFT 1.0 renamed all fields."""

    conflicting_block = Nested(v038_shapes.LightBlock)
    common_height = IntString()
    byzantine_validators = ListOf(v038_shapes.Validator, null_when_empty=True)
    total_voting_power = IntString()
    timestamp = Timestamp()


class ValidatorUpdate(WireSchema):
    """A validator's new power; CometBFT 1.0: abci/v1/types.pb.go has plain bytes for keys."""

    domain = builders.validator_update
    power = IntString(omit_empty=True)
    pub_key_bytes = Base64(get=lambda update: update.pub_key.value, omit_empty=True)
    pub_key_type = Text(get=lambda update: update.pub_key.type, omit_empty=True)


class SynchronyParams(WireSchema):
    """ConsensusParams.synchrony; chains here have no PBTS and only the default values."""

    precision = IntString(get=lambda _: PRECISION, dump_only=True)
    message_delay = IntString(get=lambda _: MESSAGE_DELAY, dump_only=True)


class FeatureParams(WireSchema):
    """ConsensusParams.feature."""

    vote_extensions_enable_height = IntString()
    pbts_enable_height = IntString(get=lambda _: 0, dump_only=True)


class ConsensusParams(shapes.ConsensusParams):
    """All consensus parameters at a height."""

    synchrony = Nested(SynchronyParams, get=lambda params: params)
    feature = Nested(FeatureParams, get=lambda params: params)
