"""Build domain values from the JSON of CometBFT replies, of 0.34 to 1.0."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from typing import Any, TypeAlias

from flask_noderpc.domain.abci import ExecTxResult
from flask_noderpc.domain.block import (
    Block,
    BlockID,
    Commit,
    CommitSig,
    DuplicateVoteEvidence,
    Header,
    MerkleProof,
    PartSetHeader,
    TxProof,
    Version,
    Vote,
)
from flask_noderpc.domain.genesis import BlockParams, ConsensusParams
from flask_noderpc.domain.time import from_text
from flask_noderpc.domain.validator import ED25519, PublicKey, Validator, ValidatorSet

Json: TypeAlias = Any

GOLDEN = Path(__file__).parent.parent / "golden"


def reply(version: str) -> dict[str, Json]:
    """Return all captured REST replies of one node version."""
    replies: dict[str, Json] = json.loads((GOLDEN / f"rest_{version}.json").read_text())
    return replies


def text_bytes(text: str | None) -> bytes:
    """Return the bytes of a base64 string; CometBFT writes empty ones as null."""
    return b64decode(text or "", validate=True)


def block_id(found: Json) -> BlockID:
    """Return a block ID."""
    parts = PartSetHeader(found["parts"]["total"], bytes.fromhex(found["parts"]["hash"]))
    return BlockID(bytes.fromhex(found["hash"]), parts)


def header(found: Json) -> Header:
    """Return a header."""
    return Header(
        version=Version(int(found["version"]["block"]), int(found["version"]["app"])),
        chain_id=found["chain_id"],
        height=int(found["height"]),
        time=from_text(found["time"]),
        last_block_id=block_id(found["last_block_id"]),
        last_commit_hash=bytes.fromhex(found["last_commit_hash"]),
        data_hash=bytes.fromhex(found["data_hash"]),
        validators_hash=bytes.fromhex(found["validators_hash"]),
        next_validators_hash=bytes.fromhex(found["next_validators_hash"]),
        consensus_hash=bytes.fromhex(found["consensus_hash"]),
        app_hash=bytes.fromhex(found["app_hash"]),
        last_results_hash=bytes.fromhex(found["last_results_hash"]),
        evidence_hash=bytes.fromhex(found["evidence_hash"]),
        proposer_address=bytes.fromhex(found["proposer_address"]),
    )


def commit_sig(found: Json) -> CommitSig:
    """Return one signature of a commit."""
    return CommitSig(
        found["block_id_flag"],
        bytes.fromhex(found["validator_address"]),
        from_text(found["timestamp"]),
        text_bytes(found["signature"]),
    )


def commit(found: Json) -> Commit:
    """Return a commit."""
    return Commit(
        int(found["height"]),
        found["round"],
        block_id(found["block_id"]),
        tuple(commit_sig(sig) for sig in found["signatures"]),
    )


def vote(found: Json) -> Vote:
    """Return a vote of a piece of evidence."""
    return Vote(
        type=found["type"],
        height=int(found["height"]),
        round=found["round"],
        block_id=block_id(found["block_id"]),
        timestamp=from_text(found["timestamp"]),
        validator_address=bytes.fromhex(found["validator_address"]),
        validator_index=found["validator_index"],
        signature=text_bytes(found["signature"]),
        extension=text_bytes(found.get("extension")),
        extension_signature=text_bytes(found.get("extension_signature")),
    )


def evidence(found: Json) -> DuplicateVoteEvidence:
    """Return evidence of a duplicate vote."""
    assert found["type"] == "tendermint/DuplicateVoteEvidence"
    value = found["value"]
    return DuplicateVoteEvidence(
        vote(value["vote_a"]),
        vote(value["vote_b"]),
        int(_spelt(value, "TotalVotingPower", "total_voting_power")),
        int(_spelt(value, "ValidatorPower", "validator_power")),
        from_text(_spelt(value, "Timestamp", "timestamp")),
    )


def _spelt(found: Json, *names: str) -> Json:
    """Return the member that has one of the names; CometBFT 1.0 renamed some."""
    (name,) = found.keys() & set(names)
    return found[name]


def block(found: Json) -> Block:
    """Return a whole block."""
    return Block(
        header(found["header"]),
        tuple(text_bytes(tx) for tx in found["data"]["txs"]),
        tuple(evidence(item) for item in found["evidence"]["evidence"]),
        commit(found["last_commit"]),
    )


def public_key(found: Json) -> PublicKey:
    """Return an ed25519 key."""
    assert found["type"] == "tendermint/PubKeyEd25519"
    return PublicKey(ED25519, text_bytes(found["value"]))


def validator(found: Json) -> Validator:
    """Return a validator, of a set (``voting_power``) or of the genesis (``power``)."""
    return Validator(
        bytes.fromhex(found["address"]),
        public_key(found["pub_key"]),
        int(found["voting_power"] if "voting_power" in found else found["power"]),
        int(found.get("proposer_priority", 0)),
    )


def validator_set(found: Json) -> ValidatorSet:
    """Return the validators in the order of the list."""
    return ValidatorSet(tuple(validator(item) for item in found))


def consensus_params(found: Json) -> ConsensusParams:
    """Return the parameters that the consensus hash covers."""
    limits = found["block"]
    return ConsensusParams(BlockParams(int(limits["max_bytes"]), int(limits["max_gas"])))


def tx_result(found: Json) -> ExecTxResult:
    """Return the parts of a result that the results hash covers."""
    return ExecTxResult(
        code=found["code"],
        data=text_bytes(found["data"]),
        gas_wanted=int(found["gas_wanted"]),
        gas_used=int(found["gas_used"]),
    )


def tx_proof(found: Json) -> TxProof:
    """Return a proof that a transaction is in a block."""
    proof = found["proof"]
    return TxProof(
        bytes.fromhex(found["root_hash"]),
        text_bytes(found["data"]),
        MerkleProof(
            int(proof["total"]),
            int(proof["index"]),
            text_bytes(proof["leaf_hash"]),
            tuple(text_bytes(aunt) for aunt in proof["aunts"]),
        ),
    )
