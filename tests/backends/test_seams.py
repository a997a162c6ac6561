"""Tests of blocks that do not fit the stored ones, above or below: the error names file, height
and cure, and the store stays usable."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from flask_noderpc import SQLiteBackend
from flask_noderpc.backends.base.new_blocks import CommittedBlock, OlderBlock
from flask_noderpc.errors import InvalidBlock, StoreError
from flask_noderpc.testing.chains import ChainMaker
from flask_noderpc.testing.node import app_for

from .conftest import OpenStore

BLOCKS, TRUSTED = 30, 20
LOW, HIGH = 11, 24
CURE = "add blocks of this chain, or use another store"


class Chain:
    """A chain, and a fork of it above the store's heights."""

    def __init__(self, whole: SQLiteBackend, power: int) -> None:
        maker = ChainMaker((10, power))
        whole.init_chain(maker.genesis, maker.state)
        self.items = [maker.block(b"a%d=%d" % (n, n + power)) for n in range(BLOCKS)]
        whole.append_block(*self.items)
        self.whole = whole

    def item(self, height: int) -> CommittedBlock:
        return self.items[height - 1]

    def older(self, height: int) -> OlderBlock:
        item = self.item(height)
        return OlderBlock(item.block, item.results, self.whole.reads.validators(height))


@pytest.fixture
def chain(open_store: OpenStore, tmp_path: Path) -> Chain:
    return Chain(open_store(tmp_path / "whole.db"), 7)


@pytest.fixture
def fork(open_store: OpenStore, tmp_path: Path) -> Chain:
    """A chain with the same ID, and other blocks."""
    return Chain(open_store(tmp_path / "fork.db"), 3)


def begin(store: SQLiteBackend, chain: Chain) -> None:
    whole = chain.whole
    store.init_at(
        whole.reads.chain_id(),
        1,
        whole.reads.block_meta(TRUSTED).header,
        whole.reads.commit(TRUSTED),
        (
            whole.reads.validators(TRUSTED),
            whole.reads.validators(TRUSTED + 1),
            whole.reads.validators(TRUSTED + 2),
        ),
        whole.reads.consensus_params(TRUSTED + 1),
    )


@pytest.fixture
def store(open_store: OpenStore, chain: Chain) -> SQLiteBackend:
    """A store with the heights from LOW to HIGH."""
    backend = open_store()
    begin(backend, chain)
    backend.append_block(*chain.items[TRUSTED:HIGH])
    backend.backfill(*(chain.older(height) for height in range(TRUSTED, LOW - 1, -1)))
    return backend


@contextmanager
def refused(store: SQLiteBackend, height: int, reason: str) -> Iterator[None]:
    text = rf"^{re.escape(store.location.display_name)}: block {height}: {reason}.*\(.*{CURE}"
    with pytest.raises(InvalidBlock, match=text):
        yield


def check(store: SQLiteBackend, chain: Chain) -> None:
    """Check that all responses are the same, and that the store accepts the next block."""
    client = app_for(store).test_client()
    for height in range(LOW, HIGH + 1):
        result = client.get(f"/block?height={height}").get_json()["result"]
        shown = chain.whole.reads.block_meta(height).block_id.hash.hex()
        assert result["block_id"]["hash"].lower() == shown
    assert store.verify() == HIGH - LOW + 1
    store.append_block(*chain.items[HIGH:])
    store.backfill(*(chain.older(height) for height in range(LOW - 1, 0, -1)))
    assert store.verify() == BLOCKS


def test_a_block_of_another_parent_is_refused_above(
    store: SQLiteBackend, chain: Chain, fork: Chain
) -> None:
    with refused(store, HIGH + 1, "last_block_id: expected "):
        store.append_block(fork.item(HIGH + 1))

    check(store, chain)


def test_a_block_that_is_not_the_parent_is_refused_below(
    store: SQLiteBackend, chain: Chain, fork: Chain
) -> None:
    with refused(store, LOW - 1, "block_id: expected "):
        store.backfill(fork.older(LOW - 1))

    check(store, chain)


def test_blocks_before_a_wrong_one_are_stored(
    store: SQLiteBackend, chain: Chain, fork: Chain
) -> None:
    with refused(store, LOW - 1, "block_id: expected "):
        store.backfill(chain.older(LOW), fork.older(LOW - 1))

    check(store, chain)


@pytest.mark.parametrize("height", [LOW, TRUSTED, HIGH])
def test_another_block_at_a_stored_height_is_refused(
    store: SQLiteBackend, chain: Chain, fork: Chain, height: int
) -> None:
    with refused(store, height, "expected the stored block [0-9A-F]{64}"):
        store.backfill(fork.older(height))
    if height > LOW:
        with refused(store, height, "height: expected "):
            store.append_block(fork.item(height))

    check(store, chain)


def test_stored_blocks_again_change_nothing(store: SQLiteBackend, chain: Chain) -> None:
    before = store.reads.version()

    store.backfill(*(chain.older(height) for height in range(HIGH, LOW - 1, -1)))

    assert store.reads.version() == before
    check(store, chain)


def test_blocks_with_a_gap_are_refused(store: SQLiteBackend, chain: Chain) -> None:
    with refused(store, LOW - 2, f"height: expected {LOW - 1}, got {LOW - 2}"):
        store.backfill(chain.older(LOW - 2))
    with refused(store, HIGH + 2, f"height: expected {HIGH + 1}, got {HIGH + 2}"):
        store.append_block(chain.item(HIGH + 2))

    check(store, chain)


def test_a_block_of_another_chain_id_is_refused(store: SQLiteBackend, chain: Chain) -> None:
    above, below = chain.item(HIGH + 1), chain.older(LOW - 1)
    for item in (above, below):
        header = replace(item.block.header, chain_id="other-1")
        block = replace(item.block, header=header)
        with refused(store, header.height, "chain_id: expected sample-chain, got other-1"):
            if isinstance(item, OlderBlock):
                store.backfill(replace(item, block=block))
            else:
                store.append_block(replace(item, block=block))

    check(store, chain)


def test_the_beginning_of_another_chain_is_refused(
    store: SQLiteBackend, chain: Chain, fork: Chain
) -> None:
    shown = re.escape(store.location.display_name)
    known = rf"^{shown}: the store already has chain 'sample-chain', begun .*another"
    maker = ChainMaker((10,))

    with pytest.raises(StoreError, match=known):
        begin(store, fork)
    with pytest.raises(StoreError, match=known):
        store.init_chain(replace(maker.genesis, chain_id="other-1"), maker.state)
    with pytest.raises(StoreError, match=known):
        store.set_genesis(replace(maker.genesis, chain_id="other-1"))

    check(store, chain)


def one_by_one(store: SQLiteBackend, missing: list[OlderBlock]) -> None:
    for item in missing:
        store.backfill(item)


@pytest.mark.sqlite
def test_a_disk_that_is_full_in_the_middle_of_a_backfill_keeps_what_was_added(
    store: SQLiteBackend, chain: Chain, open_store: OpenStore, path: Path
) -> None:
    store.close()
    with closing(sqlite3.connect(path)) as at:
        (pages,) = at.execute("PRAGMA page_count").fetchone()
    small = open_store(max_pages=pages + 2)
    missing = [chain.older(height) for height in range(LOW - 1, 0, -1)]

    with pytest.raises(
        StoreError, match=rf"^{re.escape(str(path))}: the disk .* full, .*make space"
    ) as raised:
        one_by_one(small, missing)

    base = small.reads.base_height()
    assert f"block {base - 1} was not added" in str(raised.value)
    assert 1 < base < LOW
    assert small.verify() == HIGH - base + 1
    small.close()
    roomy = open_store()
    roomy.backfill(*(chain.older(height) for height in range(base - 1, 0, -1)))
    assert roomy.verify() == roomy.reads.latest_height()
