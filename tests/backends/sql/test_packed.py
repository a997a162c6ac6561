"""Tests that packed rows are unpacked to the same values, and refused if they were changed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flask_noderpc.backends.sql.packed import blocks, state
from flask_noderpc.backends.sql.packed.blocks import DamagedRow, unseal
from flask_noderpc.domain.abci import BlockResults, Event, EventAttribute, ExecTxResult
from flask_noderpc.domain.block import (
    ABSENT,
    BlockID,
    BlockMeta,
    Commit,
    CommitSig,
    PartSetHeader,
    Version,
)
from flask_noderpc.domain.genesis import BlockParams, ConsensusParams, ConsensusParamsUpdate
from flask_noderpc.domain.search import TxResult
from flask_noderpc.domain.time import ZERO_TIME
from flask_noderpc.domain.validator import PublicKey, Validator, ValidatorSet, ValidatorUpdate
from tests.comet.test_vectors import FIRST

INTS = st.integers(-(1 << 63), (1 << 63) - 1)
TIMES = st.one_of(st.just(ZERO_TIME), INTS, st.integers(1_700 * 10**15, 1_701 * 10**15))
IDS = st.builds(
    BlockID, st.binary(max_size=32), st.builds(PartSetHeader, INTS, st.binary(max_size=32))
)
ADDRESSES = [bytes([index]) * 20 for index in range(4)]
FEW = (Validator(b"\x09" * 20, PublicKey("ed25519", b""), 1, 0),)


@st.composite
def commits(draw: st.DrawFn) -> Commit:
    """Draw commits with mostly usual votes, some absent ones, and some that no node would
    make."""
    strange = st.builds(
        CommitSig, st.integers(0, 9), st.binary(max_size=33), TIMES, st.binary(max_size=70)
    )
    signature = st.binary(min_size=64, max_size=64)
    signatures = []
    for address in ADDRESSES:
        usual = st.builds(CommitSig, st.integers(2, 3), st.just(address), TIMES, signature)
        signatures.append(draw(st.one_of(usual, st.just(ABSENT), strange)))
    height, round_ = draw(st.integers(0, 1 << 62)), draw(st.integers(0, 9))
    return Commit(height, round_, draw(IDS), tuple(signatures))


@given(commits(), st.booleans())
def test_commits(commit: Commit, is_known: bool) -> None:
    addresses = ADDRESSES if is_known else ()

    row = blocks.pack_commit(commit, addresses)

    assert blocks.unpack_commit(row, commit.height, lambda: ADDRESSES) == commit


def test_commits_of_another_set_than_the_known_one_are_whole() -> None:
    commit = Commit(3, 0, BlockID(), (CommitSig(2, b"\x07" * 20, 5, b"s" * 64),))

    for addresses in ((), ADDRESSES):
        row = blocks.pack_commit(commit, addresses)
        assert blocks.unpack_commit(row, 3, list) == commit


def test_a_vote_takes_69_bytes() -> None:
    addresses = [index.to_bytes(20) for index in range(180)]
    sigs = tuple(
        CommitSig(2, address, 1_700_000_000_000_000_000 + index, bytes(64))
        for index, address in enumerate(addresses)
    )

    row = blocks.pack_commit(Commit(9, 0, BlockID(), sigs), addresses)

    assert len(row) <= 69 * 180 + 60


TEXTS = st.text(max_size=9)
EVENTS = st.lists(
    st.builds(
        Event,
        TEXTS,
        st.lists(
            st.builds(
                EventAttribute, st.binary(max_size=9), st.binary(max_size=9), st.booleans()
            ),
            max_size=3,
        ).map(tuple),
    ),
    max_size=3,
).map(tuple)
RESULTS = st.builds(
    ExecTxResult,
    code=st.integers(0, (1 << 32) - 1),
    data=st.binary(max_size=9),
    log=TEXTS,
    info=TEXTS,
    gas_wanted=INTS,
    gas_used=INTS,
    events=EVENTS,
    codespace=TEXTS,
)


@given(st.lists(st.tuples(st.binary(max_size=9) | st.just(bytes(30_000)), RESULTS), max_size=5))
def test_transactions_with_their_results(txs: list[tuple[bytes, ExecTxResult]]) -> None:
    rows = list(blocks.slices(7, [tx for tx, _ in txs], [result for _, result in txs]))

    parts = [blocks.Slice(row, place) for place, row in rows]
    assert [tx for part in parts for tx in part.txs] == [tx for tx, _ in txs]
    assert [result for part in parts for result in part.results()] == [r for _, r in txs]
    for position, (tx, result) in enumerate(txs):
        (part,) = (part for part in parts if part.has(7, position))
        assert part.tx_result(position) == TxResult(7, position, tx, result)
    assert all(len(row) <= 65_536 + 200 for _, row in rows)


def test_a_large_transaction_has_a_row_of_its_own() -> None:
    txs = [b"small", bytes(100_000), b"small"]

    rows = blocks.slices(7, txs, [ExecTxResult()] * 3)

    assert [place - blocks.place(7) for place, _ in rows] == [0, 1, 2]


@given(
    EVENTS,
    EVENTS,
    st.lists(st.builds(ValidatorUpdate, st.builds(PublicKey, TEXTS, st.binary()), INTS)),
    st.one_of(
        st.none(),
        st.builds(ConsensusParamsUpdate, st.builds(BlockParams, INTS, INTS), app_version=INTS),
    ),
)
def test_results_of_blocks(
    begin: tuple[Event, ...],
    end: tuple[Event, ...],
    updates: list[ValidatorUpdate],
    params: ConsensusParamsUpdate | None,
) -> None:
    found = BlockResults(7, (), begin, end, tuple(updates), params, b"hash")

    assert blocks.unpack_results(blocks.pack_results(found), 7, lambda _: ()) == found
    with pytest.raises(DamagedRow, match="1 of 0"):
        blocks.unpack_results(blocks.pack_results(found), 7, lambda _: (ExecTxResult(),))


@given(IDS, TIMES, INTS)
def test_metas(block_id: BlockID, time: int, app: int) -> None:
    meta = BlockMeta(block_id, 5, replace(FIRST, time=time, version=Version(11, app)), 3)

    row = blocks.pack_meta(meta)
    assert blocks.unpack_meta(row, FIRST.height, FIRST.chain_id) == meta
    with pytest.raises(DamagedRow, match="the header of height 9 is damaged"):
        blocks.unpack_meta(row, 9, FIRST.chain_id)


@given(st.lists(st.builds(PublicKey, TEXTS, st.binary(max_size=40)), max_size=3), st.data())
def test_validator_sets(keys: list[PublicKey], data: st.DataObject) -> None:
    members = tuple(
        Validator(bytes([at]) * 20, key, data.draw(INTS), data.draw(INTS))
        for at, key in enumerate(keys)
    )
    found = ValidatorSet(members, b"proposer")

    row = state.pack_members(members, 5, 7)
    again = state.unpack_members(row, 5, 7)

    assert state.addresses(row, 5, 7) == [v.address for v in members]
    priorities = state.pack_priorities(found, 5, 6)
    assert state.unpack_priorities(priorities, 5, 6, again) == found
    for height, until, others in ((4, 6, again), (5, 7, again), (5, 6, again + FEW)):
        with pytest.raises(DamagedRow):
            state.unpack_priorities(priorities, height, until, others)


def test_consensus_parameters() -> None:
    params = ConsensusParams(app_version=7)

    row = state.pack_params(params, 3)
    assert state.unpack_params(row, 3) == params
    for since, until in ((2, None), (3, 9)):
        with pytest.raises(DamagedRow, match=f"parameters of height {since} is damaged"):
            state.unpack_params(row, since, until)


@given(st.data())
def test_a_flipped_bit_is_an_error(data: st.DataObject) -> None:
    row = bytearray(state.pack_params(ConsensusParams(), 3))
    bit = data.draw(st.integers(0, 8 * len(row) - 1))
    row[bit // 8] ^= 1 << bit % 8

    with pytest.raises(DamagedRow, match=r"parameters of height 3 .* restore a backup"):
        state.unpack_params(bytes(row), 3)


@pytest.mark.parametrize("row", [b"", b"\0\0", b"\0\0\0\0"])
def test_a_row_that_was_cut_off_is_an_error(row: bytes) -> None:
    with pytest.raises(DamagedRow):
        unseal(row, "commit", 3)
