"""Compute bytes and hashes of a whole block in another way than by single signatures or
fields."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from flask_noderpc import DIALECTS
from flask_noderpc.domain.block import Block, BlockID, Commit, CommitSig, PartSetHeader
from flask_noderpc.domain.responses import ResultBlock
from flask_noderpc.domain.time import ZERO_TIME
from flask_noderpc.protocol.comet import hashes, keys, messages
from flask_noderpc.protocol.protobuf import Message

from .rebuild import GOLDEN
from .test_vectors import FIRST

TIMES = st.one_of(st.just(ZERO_TIME), st.integers(0, 4_000_000_000 * 10**9))
# Values of the length that most blocks have, and of lengths that other chains and absent votes
# have.
ADDRESSES = st.one_of(st.binary(min_size=20, max_size=20), st.binary(max_size=40))
SIGNATURES = st.one_of(st.binary(min_size=64, max_size=64), st.binary(max_size=140))
SIGS = st.builds(CommitSig, st.integers(0, 200), ADDRESSES, TIMES, SIGNATURES)
IDS = st.builds(
    BlockID,
    st.binary(min_size=32, max_size=32),
    st.builds(PartSetHeader, st.integers(1, 9), st.binary(min_size=32, max_size=32)),
)
COMMITS = st.builds(
    Commit,
    st.integers(1, 1 << 62),
    st.integers(0, 3),
    IDS,
    st.lists(SIGS, max_size=5).map(tuple),
)


@given(SIGS)
def test_a_signature_has_each_field_by_its_number(sig: CommitSig) -> None:
    found = Message(messages.commit_sig(sig))
    time = Message(found.blob(3))
    seconds, nanos = time.integer(1), time.integer(2)

    assert found.integer(1) == sig.block_id_flag
    assert (found.blob(2), found.blob(4)) == (sig.validator_address, sig.signature)
    # Go's zero time is before 1970.
    assert ((seconds ^ 1 << 63) - (1 << 63)) * 10**9 + nanos == sig.timestamp


@given(COMMITS, st.text(max_size=20))
def test_votes_of_a_commit_have_the_sign_bytes_of_each_vote(
    commit: Commit, chain_id: str
) -> None:
    assert list(messages.canonical_precommits(commit, chain_id)) == [
        messages.canonical_vote(keys.commit_vote(commit, index), chain_id)
        for index in range(len(commit.signatures))
    ]


@given(COMMITS, st.lists(st.binary(max_size=70_000), max_size=4))
def test_all_hashes_at_once_are_those_of_each_part(commit: Commit, txs: list[bytes]) -> None:
    block = Block(replace(FIRST, height=2), tuple(txs), (), commit)

    found = hashes.block_hashes(block)

    assert (found.block_id, found.size) == hashes.block_id(block)
    assert found.size == len(messages.block(block))
    assert found.tx_hashes == [hashes.tx_hash(tx) for tx in txs]
    assert found.data_hash == hashes.data_hash(txs)
    assert found.last_commit_hash == hashes.commit_hash(commit)
    assert found.evidence_hash == hashes.evidence_hash(())


def test_an_attack_on_light_clients_in_a_block_of_cometbft_1() -> None:
    # A node of 1.0.1 made this block; that version encodes keys of validators differently.
    recorded = (GOLDEN / "block_attack_1.0.1.json").read_bytes()
    found = DIALECTS["comet-1.0"].decode(ResultBlock, recorded)
    assert found.block is not None

    block_hashes = hashes.block_hashes(found.block)

    assert block_hashes.evidence_hash == found.block.header.evidence_hash
    assert block_hashes.block_id == hashes.block_id(found.block)[0] == found.block_id
