"""Tests of bytes and hashes that were recorded from running CometBFT nodes."""

from __future__ import annotations

from base64 import b64decode
from dataclasses import fields, replace

import pytest

from flask_noderpc.domain.abci import ExecTxResult
from flask_noderpc.domain.block import (
    ABSENT,
    NO_BLOCK,
    BlockID,
    Commit,
    CommitSig,
    Header,
    PartSetHeader,
    Version,
    Vote,
    VoteType,
)
from flask_noderpc.domain.genesis import BlockParams, ConsensusParams, EvidenceParams
from flask_noderpc.domain.time import ZERO_TIME, from_text
from flask_noderpc.domain.validator import ED25519, PublicKey, Validator, ValidatorSet
from flask_noderpc.protocol import protobuf
from flask_noderpc.protocol.comet import hashes, key_types, keys, messages

EMPTY = "E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855"
VALIDATORS = "0BD0A04CE5AFC2443D86BB9AA938D799C743736398F17B3108398CB6C1A95FA8"
CONSENSUS = "048091BC7DDC283F77BFBF91D73C44DA58C3DF8A9CBC867405D8B7F3DAADA22F"
PROPOSER = "E3764A63335B634AAA9C7D8B938D2AEB156B8EF1"
KEY = PublicKey(ED25519, b64decode("Rh+L9NzV1YaYaDYoFhV1fEqaVwLA4t1BaKlGv5r5zRI="))

# CometBFT 0.38, the first block of test-chain-x.
FIRST = Header(
    version=Version(11, 1),
    chain_id="test-chain-x",
    height=1,
    time=from_text("2026-11-20T09:33:24.427211873Z"),
    last_block_id=NO_BLOCK,
    last_commit_hash=bytes.fromhex(EMPTY),
    data_hash=bytes.fromhex(EMPTY),
    validators_hash=bytes.fromhex(VALIDATORS),
    next_validators_hash=bytes.fromhex(VALIDATORS),
    consensus_hash=bytes.fromhex(CONSENSUS),
    app_hash=bytes(8),
    last_results_hash=bytes.fromhex(EMPTY),
    evidence_hash=bytes.fromhex(EMPTY),
    proposer_address=bytes.fromhex(PROPOSER),
)
FIRST_HASH = "AD370449BF4B71A7A890E842055A86DC95E83149319C2043896BC11211B148E6"
FIRST_LEAVES = (
    "080b1001",
    "0a0c746573742d636861696e2d78",
    "0801",
    "08e4a780d80610e1f8dacb01",
    "1200",
    "0a20" + EMPTY,
    "0a20" + EMPTY,
    "0a20" + VALIDATORS,
    "0a20" + VALIDATORS,
    "0a20" + CONSENSUS,
    "0a080000000000000000",
    "0a20" + EMPTY,
    "0a20" + EMPTY,
    "0a14" + PROPOSER,
)

# CometBFT 0.38, the only precommit for height 43 of the same chain.
PRECOMMIT = Vote(
    type=VoteType.PRECOMMIT,
    height=43,
    round=0,
    block_id=BlockID(
        bytes.fromhex("C339C71B6585AFE2BAF7877537542EF09AEAE463FFB823EC3A20C9B0F680176E"),
        PartSetHeader(
            1,
            bytes.fromhex("11E89C1B526E93D77D12FB67650FB3766F08F1BCB3F9E6BAE383AAEF5309C689"),
        ),
    ),
    timestamp=from_text("2026-11-20T09:34:07.988552232Z"),
    validator_address=bytes.fromhex(PROPOSER),
    validator_index=0,
    signature=b64decode(
        "vzlvI1xEJNOeELpMjj2OieY/KPllZ+xg4HO9mGgtRzsaxRSflOTBv+TAYHbvL+fXRYTmz5KZeryr9ZLyOVyOAg=="
    ),
)


def test_the_merkle_root_of_nothing_is_the_hash_of_nothing() -> None:
    assert hashes.root([]).hex().upper() == EMPTY


def test_the_header_hash_is_the_node_s() -> None:
    assert hashes.header_hash(FIRST).hex().upper() == FIRST_HASH


def test_the_header_hash_is_the_root_of_the_fourteen_leaves() -> None:
    leaves = [bytes.fromhex(leaf) for leaf in FIRST_LEAVES]

    assert len(leaves) == 14
    assert hashes.root(leaves) == hashes.header_hash(FIRST)


@pytest.mark.parametrize(
    "changed",
    [
        replace(FIRST, version=Version(11, 2)),
        replace(FIRST, chain_id="test-chain-y"),
        replace(FIRST, height=2),
        replace(FIRST, time=FIRST.time + 1),
        replace(FIRST, last_block_id=BlockID(bytes(32), PartSetHeader(1, bytes(32)))),
        replace(FIRST, last_commit_hash=bytes(32)),
        replace(FIRST, data_hash=bytes(32)),
        replace(FIRST, validators_hash=bytes(32)),
        replace(FIRST, next_validators_hash=bytes(32)),
        replace(FIRST, consensus_hash=bytes(32)),
        replace(FIRST, app_hash=bytes(9)),
        replace(FIRST, last_results_hash=bytes(32)),
        replace(FIRST, evidence_hash=bytes(32)),
        replace(FIRST, proposer_address=bytes(20)),
    ],
    ids=[entry.name for entry in fields(Header)],
)
def test_every_field_of_a_header_changes_its_hash(changed: Header) -> None:
    assert hashes.header_hash(changed) != hashes.header_hash(FIRST)


def test_a_transaction_is_known_by_its_sha256() -> None:
    known = "57D835FBBA0DBF922D8A2EDA56922C9B24E7760927F245A7684A736C4769DB8A"

    assert hashes.tx_hash(b"name=satoshi").hex().upper() == known


def test_the_data_hash_is_over_the_hashes_of_the_transactions() -> None:
    known = "3B6C72BEBC4465E6C8702D56EB3F550AC642123CB8BABA21012D29023906B7CF"

    assert hashes.data_hash([b"name=satoshi"]).hex().upper() == known


@pytest.mark.parametrize(
    ("max_bytes", "max_gas", "known"),
    [
        (22_020_096, -1, CONSENSUS),
        (
            4_194_304,
            10_000_000,
            "68ECD6F333119CE43751ECE583B981F23508AEAF4221FF582B1BB33BE42BCEFA",
        ),
    ],
)
def test_the_consensus_hash_is_over_the_block_limits(
    max_bytes: int, max_gas: int, known: str
) -> None:
    params = ConsensusParams(BlockParams(max_bytes, max_gas))

    assert hashes.consensus_hash(params).hex().upper() == known


def test_the_consensus_hash_covers_no_other_parameter() -> None:
    plain = ConsensusParams()
    other = ConsensusParams(
        BlockParams(time_iota_ms=1), EvidenceParams(max_bytes=1), app_version=9
    )

    assert hashes.consensus_hash(other) == hashes.consensus_hash(plain)


def test_the_results_hash_of_no_transactions_is_the_hash_of_nothing() -> None:
    assert hashes.results_hash([]).hex().upper() == EMPTY


def test_the_results_hash_of_one_plain_success_is_an_empty_leaf() -> None:
    known = "6E340B9CFFB37A989CA544E6BB780A2C78901D3FB33738768511A30617AFA01D"

    assert hashes.results_hash([ExecTxResult()]).hex().upper() == known


def test_the_results_hash_omits_nondeterministic_fields() -> None:
    talkative = ExecTxResult(log="done", info="more", codespace="app")

    assert hashes.results_hash([talkative]) == hashes.results_hash([ExecTxResult()])


def test_the_results_hash_covers_code_data_and_gas() -> None:
    result = ExecTxResult(code=1, data=b"\x02", gas_wanted=3, gas_used=4)

    assert hashes.results_hash([result]) == hashes.root([bytes.fromhex("080112010228033004")])


def test_the_zero_time_is_a_negative_number_of_seconds() -> None:
    assert protobuf.timestamp(ZERO_TIME).hex() == "088092b8c398feffffff01"


def test_an_absent_vote_has_zero_time() -> None:
    assert messages.commit_sig(ABSENT).hex() == "08011a0b088092b8c398feffffff01"


def test_the_block_id_of_no_block_holds_an_empty_part_set_header() -> None:
    assert messages.block_id(NO_BLOCK).hex() == "1200"


def test_the_sign_bytes_of_a_precommit_are_the_node_s() -> None:
    known = (
        "71" + "0802" + "112b00000000000000"
        "2248" + "0a20" + PRECOMMIT.block_id.hash.hex() + "1224" + "0801"
        "1220" + PRECOMMIT.block_id.parts.hash.hex() + "2a0c" + "088fa880d806"
        "10a8b8b0d703" + "320c" + "746573742d636861696e2d78"
    )

    assert messages.canonical_vote(PRECOMMIT, "test-chain-x").hex() == known


def test_the_signature_of_a_real_precommit_verifies() -> None:
    assert keys.verify_vote(PRECOMMIT, "test-chain-x", KEY)


def test_the_signature_does_not_carry_over_to_another_chain() -> None:
    assert not keys.verify_vote(PRECOMMIT, "test-chain-y", KEY)


def test_a_vote_extension_stands_behind_the_signature() -> None:
    # CometBFT 0.38: fields 9 and 10 of Vote.
    plain = messages.vote(PRECOMMIT)
    extended = messages.vote(replace(PRECOMMIT, extension=b"\x01", extension_signature=b"\x02"))

    assert plain.endswith(PRECOMMIT.signature)
    assert extended == plain + bytes.fromhex("4a0101" + "520102")


def test_a_commit_holds_the_same_vote() -> None:
    sig = CommitSig(2, PRECOMMIT.validator_address, PRECOMMIT.timestamp, PRECOMMIT.signature)
    commit = Commit(43, 0, PRECOMMIT.block_id, (sig,))

    assert keys.commit_vote(commit, 0) == PRECOMMIT


def test_a_validator_s_leaf_is_its_key_and_power() -> None:
    leaf = bytes.fromhex("0a220a20") + KEY.value + bytes.fromhex("100a")
    members = ValidatorSet((Validator(key_types.address(KEY), KEY, 10, proposer_priority=7),))

    assert hashes.validators_hash(members) == hashes.root([leaf])
    assert hashes.validators_hash(members).hex().upper() == VALIDATORS


def test_an_address_is_the_start_of_the_key_s_sha256() -> None:
    assert key_types.address(KEY).hex().upper() == PROPOSER
