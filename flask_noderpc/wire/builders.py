"""Functions that build domain values from loaded members.

Schemas need such a function if their members differ from the fields of the domain class. Each
function is the ``domain`` of a schema and takes its members as keywords. A field that a
dialect's JSON does not have gets the default of the class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ..domain import abci, block, genesis, responses, validator
from ..domain.block import NO_BLOCK, BlockIDFlag
from ..domain.validator import PublicKey, ValidatorUpdate


def public_key(names: Mapping[str, str]) -> Callable[..., PublicKey]:
    """Return a function that builds public keys from JSON; ``names`` maps each key type to its
    JSON name."""
    types = {name: kind for kind, name in names.items()}

    def build(type: str, value: bytes) -> PublicKey:
        return PublicKey(types.get(type, type), value)

    return build


def proto_key(names: Mapping[str, str]) -> Callable[..., PublicKey]:
    """Return a function that builds public keys from protobuf's JSON, in which the value is an
    object with one member: the key's bytes."""
    build = public_key(names)
    return lambda type, value: build(type, b"".join(value.values()))


def proto_or_comet_key(names: Mapping[str, str]) -> Callable[..., PublicKey]:
    """Return a function that builds public keys from protobuf's JSON or, as in Sei's results,
    from the JSON names in ``names``."""
    build = public_key(names)

    def of_either(sum: PublicKey | None, type: str, value: bytes) -> PublicKey:
        return build(type, value) if sum is None else sum

    return of_either


def only_member(**member: Any) -> Any:
    """Return the value of the only member."""
    (value,) = member.values()
    return value


def validator_set(
    validators: tuple[validator.Validator, ...], proposer: validator.Validator | None
) -> validator.ValidatorSet:
    """Return a validator set with the address of its proposer."""
    return validator.ValidatorSet(validators, proposer.address if proposer else b"")


def light_block(
    signed_header: block.SignedHeader, validator_set: dict[str, Any]
) -> block.LightBlock:
    """Return a light client's block."""
    return block.LightBlock(signed_header, **validator_set)


def evidence(names: Mapping[type, str]) -> Callable[..., block.Evidence]:
    """Return a function that builds evidence; ``names`` maps each evidence class to its JSON
    type name."""

    def build(type: str, value: block.Evidence) -> block.Evidence:
        if names[value.__class__] != type:
            raise ValueError(
                f"type: expected {names[value.__class__]} by its value, got {type}"
            )
        return value

    return build


def comet_block(
    header: block.Header,
    data: tuple[bytes, ...],
    evidence: tuple[block.Evidence, ...],
    last_commit: block.Commit,
) -> block.Block:
    """Return a block of CometBFT's JSON."""
    return block.Block(header, data, evidence, last_commit)


def document_block(
    header: block.Header, data: tuple[bytes, ...], evidence: Any, last_commit: block.Commit
) -> block.Block:
    """Return a block without evidence; raise :exc:`ValueError` if the JSON has evidence.

    document: its evidence has no votes, and without the votes the block would have another
    hash.
    """
    if evidence:
        raise ValueError(
            "expected a block without evidence: the dialect's evidence has no votes"
        )
    return block.Block(header, data, (), last_commit)


def commit_of_votes(
    height: int,
    round: int,
    block_id: block.BlockID,
    signatures: tuple[block.Vote | None, ...],
) -> block.Commit:
    """Return a commit built from complete votes."""
    return block.Commit(height, round, block_id, tuple(map(_commit_sig, signatures)))


def _commit_sig(vote: block.Vote | None) -> block.CommitSig:
    if vote is None:
        return block.ABSENT
    flag = BlockIDFlag.NIL if vote.block_id == NO_BLOCK else BlockIDFlag.COMMIT
    return block.CommitSig(flag, vote.validator_address, vote.timestamp, vote.signature)


def block_results(finalize_block_events: abci.Events, **members: Any) -> abci.BlockResults:
    """Return block results. CometBFT 0.38 has one list for the events of BeginBlock and
    EndBlock, which becomes ``begin_block_events``."""
    return abci.BlockResults(begin_block_events=finalize_block_events, **members)


def results_before_038(
    begin_block_events: abci.Events | None,
    end_block_events: abci.Events | None,
    finalize_block_events: abci.Events,
    total_gas_used: int | None,
    **members: Any,
) -> abci.BlockResults:
    """Return block results of a version before CometBFT 0.38. Sei's results have one list of
    events and ``total_gas_used``."""
    if total_gas_used is not None:
        return block_results(finalize_block_events, **members)
    if begin_block_events is None or end_block_events is None:
        raise ValueError(
            "begin_block_events and end_block_events: expected both, got only one or neither"
        )
    return abci.BlockResults(
        begin_block_events=begin_block_events, end_block_events=end_block_events, **members
    )


def document_results(
    consensus_param_updates: dict[str, Any] | None, **members: Any
) -> abci.BlockResults:
    """Return block results without the app hash, which the interface document does not have."""
    groups = consensus_param_updates
    update = None if groups is None else genesis.ConsensusParamsUpdate(**groups)
    return abci.BlockResults(consensus_param_updates=update, **members)


def validator_update(power: int, pub_key_bytes: bytes, pub_key_type: str) -> ValidatorUpdate:
    """Return a validator update from CometBFT 1.0's JSON, which has the key's bytes and type
    as members."""
    return ValidatorUpdate(PublicKey(pub_key_type, pub_key_bytes), power)


def params_update(
    version: dict[str, Any] | None = None,
    abci: dict[str, Any] | None = None,
    feature: dict[str, Any] | None = None,
    authority: dict[str, Any] | None = None,
    **groups: Any,
) -> genesis.ConsensusParamsUpdate:
    """Return an update of consensus parameters from its groups in JSON, such as ``block``; a
    group that is null is unchanged."""
    members = {**(version or {}), **(feature or abci or {}), **(authority or {})}
    return genesis.ConsensusParamsUpdate(**groups, **members)


def consensus_params(
    version: dict[str, Any],
    abci: dict[str, Any] | None = None,
    feature: dict[str, Any] | None = None,
    authority: dict[str, Any] | None = None,
    **groups: Any,
) -> genesis.ConsensusParams:
    """Return all consensus parameters; CometBFT 1.0 has the height of vote extensions in
    ``feature``."""
    members = {**version, **(feature or abci or {}), **(authority or {})}
    return genesis.ConsensusParams(**groups, **members)


def document_params(**groups: Any) -> genesis.ConsensusParams:
    """Return all consensus parameters, with defaults for the groups that the document does not
    have."""
    return genesis.ConsensusParams(**{name: g for name, g in groups.items() if g is not None})


def params_answer(
    block_height: int, consensus_params: dict[str, Any]
) -> responses.ResultConsensusParams:
    """Return the document's consensus parameters at a height."""
    return responses.ResultConsensusParams(block_height, document_params(**consensus_params))


def document_genesis(consensus_params: dict[str, Any], **members: Any) -> genesis.Genesis:
    """Return the document's genesis; an ``app_state`` of ``{}`` means that it has none."""
    found = genesis.Genesis(consensus_params=document_params(**consensus_params), **members)
    return replace(found, app_state=b"") if found.app_state == b"{}" else found


def tagged_result(tags: tuple[abci.EventAttribute, ...], **members: Any) -> abci.ExecTxResult:
    """Return a transaction result with one event for each of the document's tags, whose keys
    are ``type.key``."""
    return abci.ExecTxResult(events=tuple(map(_event_of, tags)), **members)


def _event_of(tag: abci.EventAttribute) -> abci.Event:
    kind, dot, key = tag.key.rpartition(b".")
    if not dot:
        raise ValueError("key: expected an event type, a dot and a key")
    try:
        return abci.Event(kind.decode(), (abci.EventAttribute(key, tag.value, tag.index),))
    except UnicodeDecodeError:
        raise ValueError("key: expected an event type in UTF-8") from None


def query_result(
    proof_ops: tuple[abci.ProofOp, ...] | None, value: bytes | None, **members: Any
) -> abci.QueryResult:
    """Return the result of an application's query; ``proof_ops`` is ``None`` without a proof,
    and ``value`` may be ``None``."""
    return abci.QueryResult(
        proof_ops=proof_ops or (),
        value=value or b"",
        encodes_empty_as_string=value == b"",
        **members,
    )


def document_query(proof: bytes, **members: Any) -> abci.QueryResult:
    """Return the result of an application's query; raise :exc:`ValueError` if it has a proof,
    which the document encodes as hex of protobuf."""
    if proof:
        raise ValueError("proof: expected none: proofs in hex of protobuf can't be decoded")
    return abci.QueryResult(**members)
