"""Schemas of the interface document.

Each constant settles a point that the document leaves open, or a difference from real nodes;
docs/dialects.rst lists the constants with their reasons.
"""

from __future__ import annotations

from operator import attrgetter

from ..domain import abci, block, responses, validator
from ..domain import genesis as params
from ..domain.time import SECOND
from ..protocol.comet.key_types import KEY_TYPES
from ..protocol.comet.keys import commit_vote
from ..protocol.comet.messages import MESSAGES
from . import builders, common
from .comet import v038_schemas
from .fields import Base64, Hex, IntString, Json, Number, RawJSON, Text, Timestamp
from .schema import Choice, ListOf, Nested, WireSchema

# document: PubKey.type is «of the form engine/PubKeyEd25519».
KEY_NAMES = {
    kind: "engine/" + known.json_name.rpartition("/")[2] for kind, known in KEY_TYPES.items()
}

# document: Evidence.type is a string; it is CometBFT's name with the document's prefix.
EVIDENCE_TYPES = {
    block.DuplicateVoteEvidence: "engine/DuplicateVoteEvidence",
    block.LightClientAttackEvidence: "engine/LightClientAttackEvidence",
}

# document: Evidence.time is a number: the time of the offence in whole seconds.
EVIDENCE_TIME_UNIT = SECOND

# document: abci_info has exactly these three fields. document: tags are {key, value, index};
# the key is the indexed name, «type.key». document: CommitSignature.signature is a string; the
# signature of an absent validator, null in CometBFT, is empty.


class PubKey(v038_schemas.PubKey):
    """PubKey."""

    domain = builders.public_key(KEY_NAMES)
    type = Text(get=lambda key: KEY_NAMES.get(key.type, key.type))


class Validator(v038_schemas.Validator):
    """Validator."""

    pub_key = Nested(PubKey)


class ValidatorSet(v038_schemas.ValidatorSet):
    """Validator set with its proposer."""

    validators = ListOf(Validator, null_when_empty=True)
    proposer = Nested(Validator, nullable=True, get=attrgetter("proposer_validator"))


class Attribute(v038_schemas.EventAttribute):
    """One key and value."""

    key = Base64()
    value = Base64()


class Event(v038_schemas.Event):
    """Event."""

    attributes = ListOf(Attribute)


class TxExecResult(WireSchema):
    """TxExecResult."""

    domain = abci.ExecTxResult
    code = IntString()
    data = Base64()
    log = Text()
    info = Text()
    gas_wanted = IntString()
    gas_used = IntString()
    events = ListOf(Event)
    codespace = Text()


class BlockParams(WireSchema):
    """ConsensusParams.block."""

    domain = params.BlockParams
    max_bytes = IntString()
    max_gas = IntString()
    time_iota_ms = IntString()


class EvidenceParams(WireSchema):
    """ConsensusParams.evidence; the document's ``max_age`` is a number of blocks."""

    domain = params.EvidenceParams
    max_age_num_blocks = IntString(data_key="max_age")


class ValidatorParams(WireSchema):
    """ConsensusParams.validator."""

    domain = params.ValidatorParams
    pub_key_types = ListOf(Text())


class ConsensusParams(WireSchema):
    """ConsensusParams; in an update, an unchanged group is null."""

    block = Nested(BlockParams, nullable=True)
    evidence = Nested(EvidenceParams, nullable=True)
    validator = Nested(ValidatorParams, nullable=True)


class EvidenceValidator(WireSchema):
    """Evidence.validator."""

    pub_key = Nested(PubKey)
    voting_power = Number()
    address = Hex()


class Evidence(WireSchema):
    """Evidence, encoded from a pair of the evidence and the validator that it accuses."""

    type = Text(get=lambda pair: EVIDENCE_TYPES[type(pair[0])])
    height = Number(get=lambda pair: pair[0].height)
    time = Number(get=lambda pair: pair[0].timestamp // EVIDENCE_TIME_UNIT)
    total_voting_power = Number(get=lambda pair: pair[0].total_voting_power)
    validator = Nested(EvidenceValidator, get=lambda pair: pair[1])


class BlockSignature(WireSchema):
    """BlockSignature: the complete vote, in the format of nodes before 0.33."""

    domain = block.Vote
    type = Number()
    height = IntString()
    round = Number()
    block_id = Nested(common.BlockID)
    timestamp = Timestamp()
    validator_address = Hex()
    validator_index = Number()
    signature = Base64()


def _votes(commit: block.Commit) -> list[block.Vote | None]:
    # document: does not mention absent validators; their entry is null, as in nodes before
    # 0.33.
    return [
        None if sig.block_id_flag == block.BlockIDFlag.ABSENT else commit_vote(commit, index)
        for index, sig in enumerate(commit.signatures)
    ]


class LastCommit(WireSchema):
    """LastCommit."""

    domain = builders.commit_of_votes
    height = Number()
    round = Number()
    block_id = Nested(common.BlockID)
    signatures = ListOf(Nested(BlockSignature, nullable=True), get=_votes)


def _accusations(
    result: responses.ResultBlock,
) -> list[tuple[block.Evidence, validator.Validator]]:
    # document: Evidence has one validator; evidence that accuses several validators is repeated
    # for each of them.
    assert result.block is not None
    pairs = zip(result.block.evidence, result.byzantine_validators, strict=True)
    return [(piece, one) for piece, accused in pairs for one in accused]


class Block(WireSchema):
    """Block, encoded from a result with the validators that its evidence accuses."""

    domain = builders.document_block
    header = Nested(common.Header, get=attrgetter("block.header"))
    data = ListOf(Base64(), get=attrgetter("block.txs"))
    evidence = ListOf(
        Evidence,
        get=_accusations,
    )
    last_commit = Nested(LastCommit, get=attrgetter("block.last_commit"))


class BlockAnswer(WireSchema):
    """Result of ``block`` and ``block_by_hash``."""

    domain = responses.ResultBlock
    block_id = Nested(common.BlockID)
    block = Nested(Block, get=lambda result: result)


class CommitSignature(WireSchema):
    """CommitSignature; address and signature of an absent validator are empty."""

    domain = block.CommitSig
    block_id_flag = Number()
    validator_address = Hex()
    timestamp = Timestamp()
    signature = Base64()


class Commit(common.Commit):
    """The commit of a signed header."""

    signatures = ListOf(CommitSignature)


class SignedHeader(common.SignedHeader):
    """SignedHeader."""

    commit = Nested(Commit)


class CommitAnswer(common.CommitAnswer):
    """Result of ``commit``."""

    signed_header = Nested(SignedHeader)


class BlockMeta(v038_schemas.BlockMeta):
    """BlockMeta."""

    size = Number(data_key="block_size")
    header = Nested(common.Header)


class BlockList(v038_schemas.BlockList):
    """Result of ``blockchain``."""

    block_metas = ListOf(BlockMeta)


class ValidatorUpdate(v038_schemas.ValidatorUpdate):
    """Element of BlockResults.validator_updates."""

    pub_key = Nested(PubKey)
    power = IntString()


class BlockResults(WireSchema):
    """BlockResults."""

    domain = builders.document_results
    height = IntString()
    total_gas_used = IntString(
        get=lambda r: sum(tx.gas_used for tx in r.tx_results), dump_only=True
    )
    tx_results = ListOf(TxExecResult, data_key="txs_results")
    begin_block_events = ListOf(Event)
    end_block_events = ListOf(Event, data_key="end_block")
    validator_updates = ListOf(ValidatorUpdate)
    consensus_param_updates = Nested(
        ConsensusParams, data_key="consensus_params_updates", nullable=True
    )


class ValidatorPage(v038_schemas.ValidatorPage):
    """Result of ``validators``."""

    validators = ListOf(Validator)


class ValidatorInfo(v038_schemas.ValidatorInfo):
    """ValidatorInfo."""

    pub_key = Nested(PubKey)


class Status(v038_schemas.Status):
    """Result of ``status``."""

    validator_info = Nested(ValidatorInfo)


class GenesisValidator(v038_schemas.GenesisValidator):
    """Element of Genesis.validators."""

    pub_key = Nested(PubKey)


class Genesis(WireSchema):
    """Genesis document; ``app_state`` is the application's JSON."""

    domain = builders.document_genesis
    genesis_time = Timestamp()
    chain_id = Text()
    initial_height = IntString()
    consensus_params = Nested(ConsensusParams)
    validators = ListOf(GenesisValidator)
    app_hash = Hex()
    app_state = RawJSON()


class GenesisAnswer(v038_schemas.GenesisAnswer):
    """Result of ``genesis``."""

    genesis = Nested(Genesis)


class GenesisChunk(v038_schemas.GenesisChunk):
    """Result of ``genesis_chunked``."""

    chunk = Number()
    total = Number()


class ParamsAnswer(WireSchema):
    """Result of ``consensus_params``."""

    domain = builders.params_answer
    block_height = IntString()
    consensus_params = Nested(ConsensusParams)


class PendingCount(WireSchema):
    """Result of ``num_unconfirmed_txs``."""

    domain = responses.PendingCount
    n_txs = IntString(get=attrgetter("total"), dump_only=True)
    total = IntString()
    total_bytes = IntString()


def _tags(result: abci.ExecTxResult) -> list[abci.EventAttribute]:
    return [
        abci.EventAttribute(event.type.encode() + b"." + tag.key, tag.value, tag.index)
        for event in result.events
        for tag in event.attributes
    ]


class TxLookupResult(WireSchema):
    """TxLookup.tx_result."""

    domain = builders.tagged_result
    log = Text()
    gas_wanted = IntString()
    gas_used = IntString()
    tags = ListOf(Attribute, get=_tags)


class TxLookup(WireSchema):
    """Result of ``tx`` without a proof."""

    domain = responses.ResultTx
    hash = Hex()
    height = IntString()
    index = Number()
    tx_result = Nested(TxLookupResult)
    tx = Base64()


class ProvenTxLookup(TxLookup):
    """Result of ``tx`` with ``prove=true``."""

    proof = Nested(common.TxProof)


def _is_proven(lookup: Json) -> bool:
    return isinstance(lookup, dict) and "proof" in lookup


TX_LOOKUP = Choice(
    (TxLookup, ProvenTxLookup),
    lambda result: TxLookup if result.proof is None else ProvenTxLookup,
    lambda value: ProvenTxLookup if _is_proven(value) else TxLookup,
)
"""Schema of a transaction with or without a proof."""


class TxSearch(v038_schemas.TxSearch):
    """Result of ``tx_search``. The document does not have it: CometBFT's schema with the
    document's transactions."""

    txs = ListOf(TxLookup)


class ProvenTxSearch(TxSearch):
    """Result of ``tx_search`` with ``prove=true``."""

    txs = ListOf(ProvenTxLookup)


def _tx_search(result: responses.ResultTxSearch) -> type[WireSchema]:
    proven = any(tx.proof is not None for tx in result.txs)
    return ProvenTxSearch if proven else TxSearch


def _recognized_search(value: Json) -> type[WireSchema]:
    txs = value.get("txs") if isinstance(value, dict) else None
    proven = isinstance(txs, list) and any(map(_is_proven, txs))
    return ProvenTxSearch if proven else TxSearch


TX_SEARCH = Choice((TxSearch, ProvenTxSearch), _tx_search, _recognized_search)
"""Schema of a transaction search with or without proofs."""


class BlockSearch(v038_schemas.BlockSearch):
    """Result of ``block_search``. The document does not have it: CometBFT's schema with the
    document's block."""

    blocks = ListOf(BlockAnswer)


class Broadcast(v038_schemas.Broadcast):
    """Result of ``broadcast_tx_sync`` and ``broadcast_tx_async``."""

    code = IntString()


class BroadcastCommit(v038_schemas.BroadcastCommit):
    """Result of ``broadcast_tx_commit``, which the document does not have."""

    check_tx = Nested(TxExecResult)
    tx_result = Nested(TxExecResult)


class EvidenceAnswer(v038_schemas.EvidenceAnswer):
    """Result of ``broadcast_evidence``. The document does not have it; the hash is hex, as its
    other hashes are."""

    hash = Hex()


class AppInfo(WireSchema):
    """``response`` of ``abci_info``."""

    domain = abci.AppInfo
    data = Text()
    version = Text()
    app_version = IntString()


class InfoAnswer(v038_schemas.InfoAnswer):
    """Result of ``abci_info``."""

    response = Nested(AppInfo)


def _proof(result: abci.QueryResult) -> bytes:
    # document: the proof is hex of CometBFT's ProofOps.
    return MESSAGES.encode("ProofOps", ops=result.proof_ops)


class QueryResult(WireSchema):
    """``response`` of ``abci_query``."""

    domain = builders.document_query
    log = Text()
    height = IntString()
    proof = Hex(get=_proof)
    value = Hex()
    # An application may return no key; the document's is always a string.
    key = Hex(get=lambda result: result.key or b"")
    index = IntString()
    code = IntString()


class QueryAnswer(v038_schemas.QueryAnswer):
    """Result of ``abci_query``."""

    response = Nested(QueryResult)
