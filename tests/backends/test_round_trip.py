"""Tests that an application's results are stored and read byte for byte."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from flask_noderpc.domain.abci import Event, EventAttribute, ExecTxResult
from flask_noderpc.domain.genesis import (
    BlockParams,
    ConsensusParamsUpdate,
    EvidenceParams,
    ValidatorParams,
)
from flask_noderpc.protocol.comet.hashes import tx_hash
from flask_noderpc.testing.chains import ChainMaker
from tests.helpers.stores import make_store

AGE = st.integers(1, 2**62)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
ATTRIBUTE = st.builds(
    EventAttribute,
    st.binary(max_size=20) | TEXT.map(str.encode),
    st.binary(max_size=20) | TEXT.map(str.encode),
    st.booleans(),
)
EVENTS = st.lists(
    st.builds(Event, TEXT, st.lists(ATTRIBUTE, max_size=3).map(tuple)), max_size=3
).map(tuple)
RESULT = st.builds(
    ExecTxResult,
    code=st.integers(0, (1 << 32) - 1),
    data=st.binary(max_size=50),
    log=TEXT,
    info=TEXT,
    gas_wanted=INT64,
    gas_used=INT64,
    events=EVENTS,
    codespace=TEXT,
)
UPDATE = st.none() | st.builds(
    ConsensusParamsUpdate,
    st.none()
    | st.builds(BlockParams, st.integers(2**20, 100 << 20), st.integers(-1, 2**62), INT64),
    st.none() | st.builds(EvidenceParams, AGE, AGE, st.integers(0, 2**20)),
    st.none() | st.just(ValidatorParams(("ed25519",))),
    st.none() | st.integers(0, (1 << 64) - 1),
)


@settings(max_examples=30, deadline=None)
@given(result=RESULT, begin=EVENTS, end=EVENTS, update=UPDATE)
def test_results_come_back_as_they_went_in(
    result: ExecTxResult,
    begin: tuple[Event, ...],
    end: tuple[Event, ...],
    update: ConsensusParamsUpdate | None,
) -> None:
    maker = ChainMaker()
    block = maker.block(b"a=1")
    given_results = replace(
        block.results,
        tx_results=(result,),
        begin_block_events=begin,
        end_block_events=end,
        consensus_param_updates=update,
    )
    with tempfile.TemporaryDirectory() as folder:
        backend = make_store(Path(folder) / "chain.db")
        try:
            backend.init_chain(maker.genesis, maker.state)
            backend.append_block(replace(block, results=given_results))

            assert backend.reads.results(1) == given_results
            assert backend.reads.tx(tx_hash(b"a=1")).result == result
        finally:
            backend.close()
