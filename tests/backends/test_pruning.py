"""Tests that a pruned store gives the same responses for its remaining blocks."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest

from flask_noderpc import SQLiteBackend
from flask_noderpc.backends.sql import prune as prune_steps
from flask_noderpc.errors import (
    BlockNotFound,
    HeightNotAvailable,
    ResultNotFound,
    TxNotFound,
    ValueNotAllowed,
)
from flask_noderpc.protocol.comet.hashes import tx_hash
from flask_noderpc.testing import SampleChain
from flask_noderpc.testing.chains import ChainMaker, make_blocks
from flask_noderpc.testing.node import app_for
from flask_noderpc.wire.dialects import DIALECTS
from tests.helpers.until import PATIENCE

from .conftest import OpenStore
from .eventful import Eventful, answers, searches
from .leftovers import assert_no_leftovers


@pytest.mark.parametrize("dialect", ["document", "comet-0.38"])
def test_a_pruned_chain_answers_like_the_full_one_for_its_blocks(
    open_store: OpenStore, tmp_path: Path, dialect: str
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    randomness = random.Random(seed)
    chain = Eventful(randomness)
    whole, pruned = open_store(), open_store(tmp_path / "pruned.db")
    for store in (whole, pruned):
        store.init_chain(chain.maker.genesis, chain.maker.state)

    for _ in range(3):
        blocks = chain.more(20)
        for store in (whole, pruned):
            store.append_block(*blocks)
        retain = randomness.randrange(1, 30)
        pruned.prune(retain)
        base = chain.base = pruned.reads.base_height()
        assert base >= pruned.reads.latest_height() - retain + 1

        mine, other = (app_for(s, dialect=dialect).test_client() for s in (pruned, whole))
        before, after = dict(answers(other, base, chain)), dict(answers(mine, base, chain))
        assert {path for path in before if before[path] != after[path]} == set()
        found, there = dict(searches(mine)), dict(searches(other, base))
        assert {path for path in found if found[path] != there[path]} == set()
        for tx in set(chain.txs):
            path = f"/tx?hash=0x{tx_hash(tx).hex()}&prove=true"
            if whole.reads.tx(tx_hash(tx)).height >= base:
                assert mine.get(path).data == other.get(path).data
        assert pruned.verify() == pruned.reads.latest_height() - base + 1
        assert_no_leftovers(pruned, base)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_errors_for_pruned_heights_name_the_lowest_height(
    full: SQLiteBackend, dialect: str
) -> None:
    assert full.prune(4) == 6
    client = app_for(full, dialect=dialect).test_client()
    routes = ["block", "commit", "block_results", "validators", "consensus_params"]

    for route in routes if dialect == "comet-0.34" else [*routes, "header"]:
        for height in (1, 6):
            found = client.get(f"/{route}?height={height}").text
            text = f"height {height} is not available, lowest height is 7"
            assert text in found, (route, found)
        assert "error" not in client.get(f"/{route}?height=7").get_json().keys() - {"error"}
    heights = client.get("/blockchain?minHeight=1&maxHeight=8").get_json()["result"]
    assert [meta["header"]["height"] for meta in heights["block_metas"]] == ["8", "7"]
    gone = client.get("/blockchain?minHeight=1&maxHeight=3").text
    assert "min height 7 can't be greater than max height 3" in gone


def test_status_shows_the_earliest_block(full: SQLiteBackend, sample: SampleChain) -> None:
    client = app_for(full, dialect="comet-0.38").test_client()
    before = client.get("/status").get_json()["result"]["sync_info"]

    full.prune(3)

    after = client.get("/status").get_json()["result"]["sync_info"]
    header = client.get("/block?height=8").get_json()["result"]
    assert after == {
        **before,
        "earliest_block_height": "8",
        "earliest_block_hash": header["block_id"]["hash"],
        "earliest_app_hash": header["block"]["header"]["app_hash"],
        "earliest_block_time": header["block"]["header"]["time"],
    }
    assert before["earliest_block_height"] == "1"


def test_transactions_of_pruned_blocks_are_not_found(
    full: SQLiteBackend, sample: SampleChain
) -> None:
    gone = sample.blocks[1].block
    own = full.reads.block(2)[0].hash

    full.prune(1)

    with pytest.raises(TxNotFound):
        full.reads.tx(tx_hash(gone.txs[0]))
    with pytest.raises(BlockNotFound):
        full.reads.height_of(own)
    with pytest.raises(HeightNotAvailable, match="lowest height is 10"):
        full.reads.block(2)
    with pytest.raises(ResultNotFound):
        full.reads.validators(2)
    with pytest.raises(ResultNotFound):
        full.reads.consensus_params(2)
    assert full.reads.consensus_params(1) == sample.genesis.consensus_params
    # A page of the method ``events`` begins with the lowest event that is left.
    events = app_for(full).test_client().get("/events?after=0000000000000002-00000001")
    assert events.get_json()["result"]["oldest"].startswith("000000000000000A"), events.text


def test_the_latest_block_always_stays(full: SQLiteBackend) -> None:
    with pytest.raises(ValueNotAllowed, match="expected at least 1 blocks"):
        full.prune(0)
    # A step prunes as many blocks as its time allows.
    assert sum(iter(lambda: full.prune_some(1_000), 0)) == 9
    assert (full.reads.base_height(), full.reads.latest_height()) == (10, 10)
    assert full.prune(5) == 0
    assert full.verify() == 1


@pytest.mark.parametrize("in_bulk", [False, True])
def test_a_chain_that_begins_above_one_is_pruned_too(
    open_store: OpenStore, in_bulk: bool
) -> None:
    maker, store = ChainMaker((10,), initial_height=500), open_store()
    store.init_chain(maker.genesis, maker.state)
    store.append_block(*make_blocks(maker, 10, 1))

    assert store.prune(4, in_bulk=in_bulk) == 6
    assert_no_leftovers(store, 506)

    assert (store.reads.base_height(), store.reads.latest_height()) == (506, 509)
    store.append_block(*make_blocks(maker, 2, 1))
    assert store.verify() == 6


def test_old_evidence_still_shows_the_accused_validator(
    full: SQLiteBackend, sample: SampleChain
) -> None:
    """The sample's evidence is in the last block but one, about the second block."""
    (piece,) = sample.blocks[-2].block.evidence
    before = full.reads.byzantine_validators(piece)

    full.prune(2)

    assert full.reads.byzantine_validators(piece) == before
    assert before[0].pub_key.value


@pytest.mark.parametrize("in_bulk", [False, True])
def test_others_write_read_and_verify_while_a_store_is_pruned(
    open_store: OpenStore, maker: ChainMaker, monkeypatch: pytest.MonkeyPatch, in_bulk: bool
) -> None:
    monkeypatch.setattr(prune_steps, "_MAX_BLOCKS_IN_BULK", 100)
    store, other = open_store(), open_store()
    store.init_chain(maker.genesis, maker.state)
    store.append_block(*make_blocks(maker, 600, 2))
    client = app_for(other, dialect="comet-0.38").test_client()
    done = threading.Event()
    heights: list[int] = []
    faults: list[BaseException] = []

    def prune() -> None:
        try:
            # Other blocks are appended meanwhile, and none of them may be removed.
            assert store.prune(10, in_bulk=in_bulk) == 590
        except BaseException as error:
            faults.append(error)
        finally:
            done.set()

    def verify() -> None:
        try:
            # Pruning continues at the lowest stored block, regardless of where the last run
            # stopped.
            assert 10 <= other.verify() < 700
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=work) for work in (prune, verify)]
    for thread in threads:
        thread.start()
    while not done.is_set():
        other.append_block(*make_blocks(maker, 1, 1))
        info = client.get("/status").get_json()["result"]["sync_info"]
        heights.append(int(info["earliest_block_height"]))
        metas = client.get("/blockchain").get_json()["result"]["block_metas"]
        assert int(metas[0]["header"]["height"]) == other.reads.latest_height()
        found = client.get('/tx_search?query="tx.height>0"&per_page=1').get_json()["result"]
        assert int(found["txs"][0]["height"]) >= heights[-1]
        query = '/block_search?query="block.height>0"&order_by="asc"&per_page=100'
        assert "blocks" in client.get(query).get_json()["result"]
    for thread in threads:
        thread.join(PATIENCE)

    assert faults == []
    assert heights == sorted(heights)
    assert len(set(heights)) > 2, "seen on its way"
    assert other.reads.base_height() == 591
    assert other.verify() == other.reads.latest_height() - 590
