"""Schemas of CometBFT 0.38.

CometBFT 0.38: libs/json encodes 64-bit integers as strings and nil slices as null. ABCI
messages behind a pointer have all fields; in other places zero fields are omitted.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from ...domain import abci, genesis, responses
from ...domain import block as blocks
from ...domain import genesis as params
from ...domain import validator as validators
from ...domain.validator import (
    BLS12_381,
    ED25519,
    ML_DSA_65,
    SECP256K1,
    SECP256K1ETH,
    PublicKey,
)
from ...protocol.comet.key_types import KEY_NAMES, KEY_TYPES
from .. import builders, common
from ..fields import (
    Base64,
    Base64OrNull,
    Flag,
    GasString,
    Hex,
    IntString,
    Json,
    Number,
    RawJSON,
    Text,
    Timestamp,
    Utf8,
    WireField,
)
from ..schema import ListOf, Load, Nested, OneOf, WireSchema

# CometBFT 0.40: crypto/encoding/codec.go, type names of the protobuf keys in validator updates.
PROTO_KEY_NAMES = {
    kind: f"tendermint.crypto.PublicKey_{known.go_name}" for kind, known in KEY_TYPES.items()
}

# CometBFT 0.38: types/evidence.go.
EVIDENCE_TYPES = {
    blocks.DuplicateVoteEvidence: "tendermint/DuplicateVoteEvidence",
    blocks.LightClientAttackEvidence: "tendermint/LightClientAttackEvidence",
}

# CometBFT 0.38: p2p/transport.go, listener of a node without an external address.
LISTENERS = ("Listener(@)",)


class PubKey(WireSchema):
    """Public key with its type name."""

    domain = builders.public_key(KEY_NAMES)
    type = Text(get=lambda key: KEY_NAMES.get(key.type, key.type))
    value = Base64()


class Validator(WireSchema):
    """A member of a validator set."""

    domain = validators.Validator
    address = Hex()
    pub_key = Nested(PubKey)
    voting_power = IntString()
    proposer_priority = IntString()


class ValidatorSet(WireSchema):
    """Validator set with its proposer."""

    domain = builders.validator_set
    validators = ListOf(Validator, null_when_empty=True)
    proposer = Nested(Validator, nullable=True, get=attrgetter("proposer_validator"))


class EventAttribute(WireSchema):
    """Event attribute whose empty fields are not omitted."""

    domain = abci.EventAttribute
    key: WireField = Utf8()
    value: WireField = Utf8()
    index = Flag()


class Event(WireSchema):
    """Event whose empty fields are not omitted."""

    domain = abci.Event
    large = abci.PackedEvents
    type = Text()
    attributes = ListOf(EventAttribute)


class CompactEvent(WireSchema):
    """Event whose empty fields are omitted."""

    domain = abci.Event
    large = abci.PackedEvents
    type = Text(omit_empty=True)
    attributes = ListOf(EventAttribute, omit_empty=True)


class ExecTxResult(WireSchema):
    """Result of CheckTx or of an execution, with all fields; Sei's nodes omit zero fields."""

    domain = abci.ExecTxResult
    code = Number(may_be_missing=True)
    data = Base64OrNull(may_be_missing=True)
    log = Text(may_be_missing=True)
    info = Text(may_be_missing=True)
    gas_wanted = GasString(may_be_missing=True)
    gas_used = GasString(may_be_missing=True)
    events = ListOf(Event, may_be_missing=True)
    codespace = Text(may_be_missing=True)


class Version(WireSchema):
    """Header.version; CometBFT 0.38: version/types.pb.go omits zero fields."""

    domain = blocks.Version
    block = IntString(omit_empty=True)
    app = IntString(omit_empty=True)


class Header(common.Header):
    """A header."""

    version = Nested(Version)


class HeaderAnswer(common.HeaderAnswer):
    """Result of ``header`` and ``header_by_hash``."""

    header = Nested(Header, nullable=True)


class SignedHeader(common.SignedHeader):
    """A header and its commit."""

    header = Nested(Header)


class CommitAnswer(common.CommitAnswer):
    """Result of ``commit``."""

    signed_header = Nested(SignedHeader)


class Vote(common.Vote):
    """Vote; without vote extensions, ``extension`` and ``extension_signature`` are null."""

    extension = Base64OrNull()
    extension_signature = Base64OrNull()


class DuplicateVote(WireSchema):
    """Two votes of one validator, the total voting power and the validator's power at their
    height, and the block's time."""

    domain = blocks.DuplicateVoteEvidence
    vote_a = Nested(Vote)
    vote_b = Nested(Vote)
    total_voting_power = IntString(data_key="TotalVotingPower")
    validator_power = IntString(data_key="ValidatorPower")
    timestamp = Timestamp(data_key="Timestamp")


class LightValidatorSet(WireSchema):
    """The validators of a light block."""

    validators = ListOf(Validator)
    proposer = Nested(Validator)


class LightBlock(WireSchema):
    """Light block."""

    domain = builders.light_block
    signed_header = Nested(SignedHeader)
    validator_set = Nested(LightValidatorSet, get=lambda block: block)


class LightClientAttack(WireSchema):
    """Conflicting block, and the byzantine validators that are responsible for it."""

    domain = blocks.LightClientAttackEvidence
    conflicting_block = Nested(LightBlock, data_key="ConflictingBlock")
    common_height = IntString(data_key="CommonHeight")
    byzantine_validators = ListOf(
        Validator, data_key="ByzantineValidators", null_when_empty=True
    )
    total_voting_power = IntString(data_key="TotalVotingPower")
    timestamp = Timestamp(data_key="Timestamp")


class Evidence(WireSchema):
    """Evidence with its type name."""

    domain = builders.evidence(EVIDENCE_TYPES)
    type = Text(get=lambda piece: EVIDENCE_TYPES[type(piece)])
    value = OneOf(
        {
            blocks.DuplicateVoteEvidence: DuplicateVote,
            blocks.LightClientAttackEvidence: LightClientAttack,
        },
        get=lambda piece: piece,
    )


class Data(WireSchema):
    """Block.data."""

    domain = builders.only_member
    txs = ListOf(Base64())


class EvidenceData(WireSchema):
    """Block.evidence."""

    domain = builders.only_member
    evidence = ListOf(Evidence)


class BlockEvidence(Nested):
    """Block.evidence, an object with a list; in Sei's blocks only the list."""

    def decode(self, value: Json) -> Any:
        """Decode the object, or the list."""
        return super().decode(_in_object(value))

    def compiled_decode(self) -> Load:
        """Return :meth:`decode`, compiled."""
        load = super().compiled_decode()
        return lambda value: load(_in_object(value))


def _in_object(value: Json) -> Json:
    return {"evidence": value} if isinstance(value, list) else value


class Block(WireSchema):
    """A block."""

    domain = builders.comet_block
    header = Nested(Header)
    data = Nested(Data, get=lambda block: block)
    evidence = BlockEvidence(EvidenceData, get=lambda block: block)
    last_commit = Nested(common.Commit)


class BlockAnswer(WireSchema):
    """Result of ``block`` and ``block_by_hash``; an unknown block has an empty ID."""

    domain = responses.ResultBlock
    block_id = Nested(common.BlockID)
    block = Nested(Block, nullable=True)


class BlockMeta(WireSchema):
    """An element of BlockList.block_metas."""

    domain = blocks.BlockMeta
    block_id = Nested(common.BlockID)
    size: WireField = IntString(data_key="block_size")
    header = Nested(Header)
    tx_count = IntString(data_key="num_txs")


class BlockList(WireSchema):
    """Result of ``blockchain``."""

    domain = responses.ResultBlockchainInfo
    last_height = IntString()
    block_metas = ListOf(BlockMeta)


class ProtoKey(WireSchema):
    """Bytes of a protobuf key in a member named after its type."""

    ed25519 = Base64(get=lambda key: _of_type(key, ED25519), omit_empty=True)
    secp256k1 = Base64(get=lambda key: _of_type(key, SECP256K1), omit_empty=True)
    bls12381 = Base64(get=lambda key: _of_type(key, BLS12_381), omit_empty=True)
    mldsa65 = Base64(get=lambda key: _of_type(key, ML_DSA_65), omit_empty=True)
    secp256k1eth = Base64(get=lambda key: _of_type(key, SECP256K1ETH), omit_empty=True)


def _of_type(key: PublicKey, key_type: str) -> bytes:
    return key.value if key.type == key_type else b""


class ProtoKeySum(WireSchema):
    """Key of a protobuf PublicKey, with its type name."""

    domain = builders.proto_key(PROTO_KEY_NAMES)
    type = Text(get=lambda key: PROTO_KEY_NAMES.get(key.type, key.type))
    value = Nested(ProtoKey, get=lambda key: key)


class ProtoPubKey(WireSchema):
    """ValidatorUpdate.pub_key."""

    domain = builders.proto_or_comet_key(KEY_NAMES)
    sum = Nested(ProtoKeySum, data_key="Sum", get=lambda key: key, may_be_missing=True)
    type = Text(may_be_missing=True, load_only=True)
    value = Base64(may_be_missing=True, load_only=True)


class ValidatorUpdate(WireSchema):
    """New power of a validator, which is omitted if it is 0."""

    domain = validators.ValidatorUpdate
    pub_key = Nested(ProtoPubKey)
    power = IntString(omit_empty=True)


class BlockParamsUpdate(WireSchema):
    """ConsensusParams.block in an update."""

    domain = params.BlockParams
    max_bytes = IntString(omit_empty=True)
    max_gas = IntString(omit_empty=True)


class EvidenceParamsUpdate(WireSchema):
    """ConsensusParams.evidence in an update."""

    domain = params.EvidenceParams
    max_age_num_blocks = IntString(omit_empty=True)
    max_age_duration = IntString()
    max_bytes = IntString(omit_empty=True)


class ValidatorParamsUpdate(WireSchema):
    """ConsensusParams.validator in an update."""

    domain = params.ValidatorParams
    pub_key_types = ListOf(Text(), omit_empty=True)


class VersionParamsUpdate(WireSchema):
    """ConsensusParams.version in an update."""

    app_version = IntString(data_key="app", omit_empty=True)


class OlderParamsUpdate(WireSchema):
    """Parameter updates; CometBFT: types/params.pb.go omits unchanged groups."""

    domain = builders.params_update
    block = Nested(BlockParamsUpdate, omit_empty=True)
    evidence = Nested(EvidenceParamsUpdate, omit_empty=True)
    validator = Nested(ValidatorParamsUpdate, omit_empty=True)
    version = Nested(
        VersionParamsUpdate,
        get=lambda update: None if update.app_version is None else update,
        omit_empty=True,
    )


class ABCIParamsUpdate(WireSchema):
    """ConsensusParams.abci in an update."""

    vote_extensions_enable_height = IntString(omit_empty=True)


class ConsensusParamsUpdate(OlderParamsUpdate):
    """Parameter updates, with ``abci``, which is new in CometBFT 0.38."""

    abci = Nested(
        ABCIParamsUpdate,
        get=lambda update: None if update.vote_extensions_enable_height is None else update,
        omit_empty=True,
    )


class BlockResults(WireSchema):
    """Result of ``block_results``; CometBFT 0.38: the only result with ``app_hash`` in
    base64."""

    domain = builders.block_results
    height = IntString()
    tx_results = ListOf(ExecTxResult, data_key="txs_results", null_when_empty=True)
    finalize_block_events = ListOf(
        CompactEvent,
        get=lambda r: r.begin_block_events + r.end_block_events,
        null_when_empty=True,
    )
    validator_updates = ListOf(ValidatorUpdate, null_when_empty=True)
    consensus_param_updates = Nested(ConsensusParamsUpdate, nullable=True)
    app_hash = Base64OrNull()


class ValidatorPage(WireSchema):
    """Result of ``validators``."""

    domain = responses.ResultValidators
    block_height = IntString()
    validators = ListOf(Validator)
    count = IntString(get=lambda page: len(page.validators), dump_only=True)
    total = IntString()


class ValidatorInfo(WireSchema):
    """Status.validator_info."""

    domain = responses.ValidatorInfo
    address = Hex()
    pub_key = Nested(PubKey)
    voting_power = IntString()


class Status(WireSchema):
    """Result of ``status``."""

    domain = responses.ResultStatus
    node_info = Nested(common.NodeInfo)
    sync_info = Nested(common.SyncInfo)
    validator_info = Nested(ValidatorInfo)


class NetInfo(common.NetInfo):
    """Result of ``net_info``."""

    listeners = ListOf(Text(), get=lambda result: result.listeners or LISTENERS)


class ABCIParams(WireSchema):
    """ConsensusParams.abci, new in CometBFT 0.38."""

    vote_extensions_enable_height = IntString()


class ConsensusParams(common.ConsensusParams):
    """All consensus parameters at a height."""

    abci = Nested(ABCIParams, get=lambda params: params)


class ParamsAnswer(WireSchema):
    """Result of ``consensus_params``."""

    domain = responses.ResultConsensusParams
    block_height = IntString()
    consensus_params = Nested(ConsensusParams)


class GenesisValidator(WireSchema):
    """An element of Genesis.validators."""

    domain = genesis.GenesisValidator
    address = Hex()
    pub_key = Nested(PubKey)
    power = IntString()
    name = Text()


class Genesis(WireSchema):
    """Genesis document; CometBFT 0.38: types/genesis.go."""

    domain = genesis.Genesis
    genesis_time = Timestamp()
    chain_id = Text()
    initial_height = IntString()
    consensus_params = Nested(ConsensusParams)
    validators = ListOf(GenesisValidator, omit_empty=True)
    app_hash = Hex()
    app_state = RawJSON(omit_empty=True)


class GenesisAnswer(WireSchema):
    """Result of ``genesis``."""

    domain = responses.ResultGenesis
    genesis = Nested(Genesis)


class GenesisChunk(WireSchema):
    """Result of ``genesis_chunked``."""

    domain = genesis.GenesisChunk
    chunk: WireField = IntString()
    total: WireField = IntString()
    content = Base64(data_key="data")


class PendingCount(WireSchema):
    """Result of ``num_unconfirmed_txs``; CometBFT 0.38: the type of ``unconfirmed_txs``."""

    domain = responses.PendingCount
    n_txs = IntString(get=attrgetter("total"), dump_only=True)
    total = IntString()
    total_bytes = IntString()
    txs = ListOf(Base64(), get=lambda _: (), null_when_empty=True, dump_only=True)


class TxAnswer(WireSchema):
    """Result of ``tx``; it contains the proof if the caller requested it."""

    domain = responses.ResultTx
    hash = Hex()
    height = IntString()
    index = Number()
    tx_result = Nested(ExecTxResult)
    tx = Base64()
    proof = Nested(common.TxProof, omit_empty=True)


class TxSearch(WireSchema):
    """Result of ``tx_search``."""

    domain = responses.ResultTxSearch
    txs = ListOf(TxAnswer)
    total = IntString(data_key="total_count")


class BlockSearch(WireSchema):
    """Result of ``block_search``."""

    domain = responses.ResultBlockSearch
    blocks = ListOf(BlockAnswer)
    total = IntString(data_key="total_count")


class Broadcast(WireSchema):
    """Result of ``broadcast_tx_sync`` and ``broadcast_tx_async``; ``data`` is hex in this
    result."""

    domain = responses.ResultBroadcastTx
    code: WireField = Number()
    data = Hex()
    log = Text()
    codespace = Text()
    hash = Hex()


class BroadcastCommit(WireSchema):
    """Result of ``broadcast_tx_commit``."""

    domain = responses.ResultBroadcastTxCommit
    check_tx = Nested(ExecTxResult)
    tx_result = Nested(ExecTxResult)
    hash = Hex()
    height = IntString()


class EvidenceAnswer(WireSchema):
    """Result of ``broadcast_evidence``; the only result with a hash in base64."""

    domain = responses.ResultBroadcastEvidence
    hash: WireField = Base64()


class AppInfo(WireSchema):
    """``response`` of ``abci_info``; empty fields are omitted."""

    domain = abci.AppInfo
    data = Text(omit_empty=True)
    version = Text(omit_empty=True)
    app_version = IntString(omit_empty=True)
    last_block_height = IntString(omit_empty=True)
    last_block_app_hash = Base64(omit_empty=True)


class InfoAnswer(WireSchema):
    """Result of ``abci_info``."""

    domain = responses.ResultABCIInfo
    response = Nested(AppInfo)


class ProofOp(WireSchema):
    """One step of a query's proof."""

    domain = abci.ProofOp
    type = Text()
    key = Base64()
    data = Base64()


class ProofOps(WireSchema):
    """The proof of a query."""

    domain = builders.only_member
    ops = ListOf(ProofOp, get=lambda steps: steps)


class QueryResult(WireSchema):
    """``response`` of ``abci_query``, with all fields; a missing proof is null.

    A missing key or value (Go's nil slice) is null, too; an empty one is an empty string.
    """

    domain = builders.query_result
    code = Number()
    log = Text()
    info = Text()
    index = IntString()
    key = Base64(nullable=True)
    value = Base64(
        get=lambda r: r.value if r.value or r.encodes_empty_as_string else None, nullable=True
    )
    proof_ops = Nested(
        ProofOps, data_key="proofOps", get=lambda r: r.proof_ops or None, nullable=True
    )
    height = IntString()
    codespace = Text()


class QueryAnswer(WireSchema):
    """Result of ``abci_query``."""

    domain = responses.ResultABCIQuery
    response = Nested(QueryResult)
