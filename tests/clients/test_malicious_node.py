"""Tests that CometBFT's light client refuses our chains as soon as one response is forged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from flask_noderpc.domain.abci import BlockResults, QueryResult
from flask_noderpc.domain.block import ABSENT, Block, BlockID, BlockMeta, Commit, Header
from flask_noderpc.domain.genesis import ConsensusParams
from flask_noderpc.domain.validator import ValidatorSet
from flask_noderpc.protocol.comet import hashes

from .light import LightClient, Question, Refused, Trust, light_client
from .malicious_node import Forgeries, served
from .verified import BLOCK, COMMIT, HEIGHT, PARAMS, QUERY, RESULTS, TX, write_chain


def _forge(header: Header) -> Header:
    return replace(header, app_hash=b"\x66" * 32)


def _other_header(meta: BlockMeta) -> BlockMeta:
    return replace(meta, header=_forge(meta.header))


def _other_block(commit: Commit) -> Commit:
    return replace(commit, block_id=replace(commit.block_id, hash=b"\x66" * 32))


def _broken_signature(commit: Commit) -> Commit:
    first, *others = commit.signatures
    signature = bytes([first.signature[0] ^ 1]) + first.signature[1:]
    return replace(commit, signatures=(replace(first, signature=signature), *others))


def _two_votes(commit: Commit) -> Commit:
    first, second, *others = commit.signatures
    return replace(commit, signatures=(first, second, *(ABSENT for _ in others)))


def _another_power(members: ValidatorSet) -> ValidatorSet:
    first, *others = members.validators
    return replace(members, validators=(replace(first, voting_power=11), *others))


def _one_less(members: ValidatorSet) -> ValidatorSet:
    return replace(members, validators=members.validators[1:])


def _other_txs(found: tuple[BlockID, Block]) -> tuple[BlockID, Block]:
    return found[0], replace(found[1], txs=(b"a=b",))


def _whole_other_block(found: tuple[BlockID, Block]) -> tuple[BlockID, Block]:
    block = replace(found[1], header=_forge(found[1].header))
    return hashes.block_id(block)[0], block


def _other_result(results: BlockResults) -> BlockResults:
    first, *others = results.tx_results
    return replace(results, tx_results=(replace(first, code=7), *others))


def _other_params(params: ConsensusParams) -> ConsensusParams:
    return replace(params, block=replace(params.block, max_bytes=2_000_000))


def _other_value(found: QueryResult) -> QueryResult:
    return replace(found, value=b"999")


def _other_height(found: QueryResult) -> QueryResult:
    return replace(found, height=found.height - 1)


def _other_proof(found: QueryResult) -> QueryResult:
    inner, outer = found.proof_ops
    # Change the last byte of the last aunt.
    data = inner.data[:-1] + bytes([inner.data[-1] ^ 1])
    return replace(found, proof_ops=(replace(inner, data=data), outer))


def _no_proof(found: QueryResult) -> QueryResult:
    return replace(found, proof_ops=())


FORGERIES: dict[str, tuple[Question, Forgeries, str]] = {
    "another header": (
        COMMIT,
        {"block_meta": _other_header},
        "commit signs block [0-9A-F]{64}, header is block",
    ),
    "a commit for another block": (
        COMMIT,
        {"commit": _other_block},
        "commit signs block 6{64}, header is block",
    ),
    "a broken signature": (COMMIT, {"commit": _broken_signature}, r"wrong signature \(#0\)"),
    "too few votes": (
        COMMIT,
        {"commit": _two_votes},
        "insufficient voting power: got 20, needed more than 26",
    ),
    "another power": (
        COMMIT,
        {"validators": _another_power},
        "expected validator hash of header to match validator set hash",
    ),
    "a validator less": (
        COMMIT,
        {"validators": _one_less},
        "expected validator hash of header to match validator set hash",
    ),
    "other transactions": (BLOCK, {"block": _other_txs}, "wrong Header.DataHash"),
    "a whole other block": (
        BLOCK,
        {"block": _whole_other_block},
        "block header [0-9A-F]{64} does not match with trusted header",
    ),
    "a transaction of another block": (
        TX,
        {"block": _other_txs},
        "proof matches different data hash",
    ),
    "another result": (
        RESULTS,
        {"results": _other_result},
        "last results [0-9A-F]{64} does not match with trusted last results",
    ),
    "other parameters": (
        PARAMS,
        {"consensus_params": _other_params},
        "params hash [0-9A-F]{64} does not match trusted hash",
    ),
    "another value": (QUERY, {"query": _other_value}, "verify value proof: leaf hash mismatch"),
    "another proof": (
        QUERY,
        {"query": _other_proof},
        "verify value proof: leaf hash mismatch",
    ),
    "a value of another height": (
        QUERY,
        {"query": _other_height},
        "verify value proof: calculated root hash is invalid",
    ),
    "no proof": (QUERY, {"query": _no_proof}, "no proof ops"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_lie_is_refused_and_the_truth_taken(
    chain: tuple[Path, Trust], go_programs: Path, name: str
) -> None:
    path, trust = chain
    question, forgeries, refusal = FORGERIES[name]
    for applied, check in ((forgeries, _refuses(refusal)), ({}, _takes)):
        with (
            served(path, applied) as url,
            light_client(go_programs / "cometbft", trust, url, url) as client,
        ):
            check(question, client)


def _refuses(text: str) -> Callable[[Question, LightClient], None]:
    def check(question: Question, client: LightClient) -> None:
        with pytest.raises(Refused, match=text):
            question.to(client)

    return check


def _takes(question: Question, client: LightClient) -> None:
    assert question.to(client)


def test_a_malicious_witness_stops_the_light_client(
    chain: tuple[Path, Trust], go_programs: Path
) -> None:
    path, trust = chain
    with (
        served(path, {}) as primary,
        served(path, {"commit": _other_block}) as witness,
        light_client(go_programs / "cometbft", trust, primary, witness) as client,
        pytest.raises(Refused, match="no witnesses connected"),
    ):
        COMMIT.to(client)


def test_a_fork_that_the_same_validators_signed_is_an_attack(
    chain: tuple[Path, Trust], go_programs: Path, tmp_path: Path
) -> None:
    path, trust = chain
    assert write_chain(tmp_path / "fork.db", forked_at=HEIGHT - 4) == trust
    with (
        served(path, {}) as primary,
        served(tmp_path / "fork.db", {}) as witness,
        light_client(go_programs / "cometbft", trust, primary, witness) as client,
        pytest.raises(Refused, match="attempted attack detected"),
    ):
        COMMIT.to(client)
