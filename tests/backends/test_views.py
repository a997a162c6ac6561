"""Tests of the views for operators who read the store with SQL."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from flask_noderpc import SQLiteBackend
from flask_noderpc.domain.block import ABSENT, BlockIDFlag
from flask_noderpc.domain.search import indexed_attributes
from flask_noderpc.domain.time import SECOND
from flask_noderpc.protocol.comet.hashes import block_id, tx_hash
from flask_noderpc.testing import SampleChain
from flask_noderpc.testing.chains import ChainMaker

pytestmark = pytest.mark.sqlite


@pytest.fixture
def at(full: SQLiteBackend) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(f"file:{full.location.path}?mode=ro", uri=True)) as connection:
        yield connection


def test_blocks(at: sqlite3.Connection, sample: SampleChain) -> None:
    found = at.execute("SELECT height, time, hash, proposer, tx_count FROM block_list")

    assert found.fetchall() == [
        (
            header.height,
            datetime.fromtimestamp(header.time // SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            block_id(item.block)[0].hash.hex().upper(),
            header.proposer_address.hex().upper(),
            len(item.block.txs),
        )
        for item in sample.blocks
        for header in (item.block.header,)
    ]


def test_transactions(at: sqlite3.Connection, sample: SampleChain) -> None:
    found = at.execute("SELECT height, position, hash, code, gas_wanted, gas_used FROM tx_list")

    assert found.fetchall() == [
        (
            item.block.header.height,
            position,
            tx_hash(tx).hex().upper(),
            result.code,
            result.gas_wanted,
            result.gas_used,
        )
        for item in sample.blocks
        for position, (tx, result) in enumerate(
            zip(item.block.txs, item.results.tx_results, strict=True)
        )
    ]


def test_events(at: sqlite3.Connection, sample: SampleChain) -> None:
    txs = at.execute("SELECT height, position, event, key, value FROM tx_events")
    blocks = at.execute("SELECT height, event, key, value FROM block_events")

    assert Counter(txs.fetchall()) == Counter(
        (item.block.header.height, position, event, key, value)
        for item in sample.blocks
        for position, result in enumerate(item.results.tx_results)
        for event, attributes in enumerate(indexed_attributes(result.events))
        for key, value in dict.fromkeys(attributes)
    )
    assert Counter(blocks.fetchall()) == Counter(
        (item.block.header.height, event, key, value)
        for item in sample.blocks
        for event, attributes in enumerate(
            indexed_attributes(item.results.begin_block_events + item.results.end_block_events)
        )
        for key, value in dict.fromkeys(attributes)
    )


def test_the_signing_record_of_a_validator(store: SQLiteBackend, maker: ChainMaker) -> None:
    blocks = [maker.block() for _ in range(3)]
    votes = list(blocks[-1].commit.signatures)
    votes[1:] = replace(votes[1], block_id_flag=BlockIDFlag.NIL), ABSENT
    last = replace(blocks[-1].commit, signatures=tuple(votes))
    store.append_block(*blocks[:-1], replace(blocks[-1], commit=last))
    _, nil, absent = (v.address.hex().upper() for v in store.reads.validators(3).validators)

    with closing(sqlite3.connect(store.location.path)) as at:
        found = at.execute("SELECT validator, height, vote FROM missed_vote_list").fetchall()
        plan = at.execute(
            "EXPLAIN QUERY PLAN SELECT count(*) FROM missed_vote_list WHERE validator = ?",
            (nil,),
        ).fetchall()

    assert set(found) == {(nil, 3, "nil"), (absent, 3, "absent")}
    assert "missed_votes_validator" in str(plan)


def test_a_block_by_its_time_is_a_look_up(at: sqlite3.Connection) -> None:
    by_time = "SELECT height FROM blocks WHERE time <= 0 ORDER BY time DESC LIMIT 1"

    plan = at.execute(f"EXPLAIN QUERY PLAN {by_time}").fetchall()

    assert "USING COVERING INDEX blocks_time" in str(plan)
