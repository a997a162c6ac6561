"""Tests of chains that benchmarks.realistic makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.realistic.__main__ import extend
from benchmarks.realistic.content import SHAPES, Shape
from flask_noderpc.backends.sql.store import ChainStore
from flask_noderpc.errors import InvalidBlock
from tests.helpers.stores import make_store

FEW = Shape("few", validators=7, txs=2, tx_bytes=100, attributes=40)


@pytest.fixture
def store(tmp_path: Path) -> ChainStore:
    made: ChainStore = make_store(tmp_path / "chain.db")
    return made


def test_a_chain_verifies_and_has_the_size_of_its_shape(store: ChainStore) -> None:
    assert extend(store, FEW, 53) == 53

    assert store.verify() == 53
    results = store.reads.results(53).tx_results
    assert [sum(len(e.attributes) for e in each.events) for each in results] == [40, 40]
    assert len(store.reads.commit(53).signatures) == 7
    # A power that changes at height 50 is in effect from 52 on.
    assert store.reads.validators(51).total_power != store.reads.validators(52).total_power
    store.close()


@pytest.mark.parametrize("processes", [0, 2])
def test_a_chain_that_was_interrupted_goes_on_as_in_one_go(
    processes: int, tmp_path: Path
) -> None:
    hashes = []
    for name, steps in (("one", [8]), ("two", [3, 8])):
        store = make_store(tmp_path / f"{name}.db")
        added = [extend(store, FEW, count, processes=processes) for count in steps]
        assert sum(added) == 8
        hashes.append(store.reads.hash_at(8))
        store.close()

    assert hashes[0] == hashes[1]


def test_an_unsigned_chain_has_every_hash_and_no_valid_signature(store: ChainStore) -> None:
    extend(store, FEW, 3, signed=False)

    with pytest.raises(InvalidBlock, match="signature 0 does not verify"):
        store.verify()
    store.close()


@pytest.mark.parametrize("name", ["busy", "idle", "small"])
def test_each_shape_can_be_made(name: str, store: ChainStore) -> None:
    extend(store, SHAPES[name], 2, signed=False)

    assert len(store.reads.block(2)[1].txs) == SHAPES[name].txs
    store.close()
