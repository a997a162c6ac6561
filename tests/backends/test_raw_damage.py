"""Tests of flipped bits and torn pages anywhere in a store's file: each response is right, or
an error that says what to do."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from flask_noderpc import SQLiteBackend
from flask_noderpc.errors import InvalidBlock, StoreError
from flask_noderpc.testing.node import app_for
from tests.faults.processes import is_long

from .conftest import OpenStore
from .eventful import Eventful, answers

pytestmark = pytest.mark.sqlite

BLOCKS = 24
PAGE, SECTOR = 4096, 512
DAMAGES = 400 if is_long() else 12
# Errors for a table that lost its last rows: the store just looks like a shorter chain, and
# verify finds that.
FEWER = ("must be less than or equal to", "could not find", "not available", "not found")
OF_HEAD = ("blockchain?minHeight=1", "dump_consensus_state")
CURE = "restore a backup"

Answers = dict[str, tuple[int, bytes]]


def seems_shorter(store: SQLiteBackend) -> bool:
    try:
        if store.reads.latest_height() == BLOCKS:
            return False
    except StoreError:
        return False
    with pytest.raises((InvalidBlock, StoreError)):
        store.verify()
    return True


@dataclass
class Damaged:
    """A store's file, the same at half its height, and all responses."""

    content: bytes
    earlier: bytes
    chain: Eventful
    expected: Answers

    def variants(self, seed: int) -> Iterator[bytes]:
        """Yield the content with a flipped bit, or with a sector of the earlier file."""
        randomness = random.Random(seed)
        for number in range(DAMAGES):
            content = bytearray(self.content)
            page = randomness.randrange(len(content) // PAGE) * PAGE
            if number % 3:
                # SQLite's own data is mostly at the beginning of a page.
                at = page + randomness.choice((randomness.randrange(PAGE), number % 100))
                content[at] ^= 1 << randomness.randrange(8)
            else:
                at = (page + randomness.randrange(PAGE // SECTOR) * SECTOR) % len(self.earlier)
                content[at : at + SECTOR] = self.earlier[at : at + SECTOR]
            yield bytes(content)


@pytest.fixture
def damaged(open_store: OpenStore, tmp_path: Path) -> Damaged:
    path, chain = tmp_path / "whole.db", Eventful(random.Random(7))
    contents = []
    for _ in range(2):
        store = open_store(path)
        store.init_chain(chain.maker.genesis, chain.maker.state)
        store.append_block(*chain.more(BLOCKS // 2))
        store.close()
        contents.append(path.read_bytes())
    client = app_for(open_store(path)).test_client()
    return Damaged(contents[1], contents[0], chain, dict(answers(client, 1, chain)))


def test_no_answer_is_altered(
    damaged: Damaged, open_store: OpenStore, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    seed = random.randrange(1 << 32) if is_long() else 7
    print(f"seed {seed}")
    counts, odd = {"as before": 0, "errors": 0}, set[tuple[int, str, str]]()
    for number, content in enumerate(damaged.variants(seed)):
        path.write_bytes(content)
        store = open_store()
        client = app_for(store).test_client()
        for request, (status, body) in answers(client, 1, damaged.chain):
            if request in OF_HEAD and seems_shorter(store):
                continue
            if (status, body) == damaged.expected[request]:
                counts["as before"] += 1
                continue
            text = body.decode()
            counts["errors"] += 1
            if status == 200 or not any(each in text for each in (CURE, *FEWER)):
                odd.add((number, request, text))
        store.close()
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
    print(counts)

    assert not odd
    assert counts["as before"] > counts["errors"] > 0
    assert not [record for record in caplog.records if record.exc_info]


# For each table or index: the paths whose responses depend on it, and the number of bytes at
# the start of a cell that hold its size, its key and its columns' sizes; for ``chain`` also the
# plain columns.
HEIGHTS = range(1, BLOCKS + 1)
OF_TABLES: dict[str, tuple[list[str], int]] = {
    "blocks": ([f"header?height={height}" for height in HEIGHTS], 12),
    "commits": ([f"commit?height={height}" for height in HEIGHTS], 12),
    "results": ([f"block_results?height={height}" for height in HEIGHTS], 12),
    "tx_slices": (
        [f"block?height={height}" for height in HEIGHTS] + ['tx_search?query="tx.height>0"'],
        12,
    ),
    "sqlite_autoindex_evidence_1": ([f"block?height={height}" for height in HEIGHTS], 8),
    "validator_sets": ([f"validators?height={height}" for height in HEIGHTS], 12),
    "validator_priorities": ([f"validators?height={height}" for height in HEIGHTS], 12),
    "consensus_params": ([f"consensus_params?height={height}" for height in HEIGHTS], 12),
    "chain": (["genesis", "header?height=3", "commit?height=3", "validators?height=3"], 48),
}
FLIPS = 200 if is_long() else 12


def cells(path: Path, table: str) -> Iterator[int]:
    """Yield the offsets of the cells of a table or an index, by SQLite's file format."""
    content = path.read_bytes()
    with closing(sqlite3.connect(path)) as at:
        sql = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        (root,) = at.execute(sql, (table,)).fetchone()
    pages = [root]
    while pages:
        start = (pages.pop() - 1) * PAGE
        is_leaf = content[start] in (0x0D, 0x0A)
        first = start + (8 if is_leaf else 12)
        count = int.from_bytes(content[start + 3 : start + 5])
        pointers = [content[first + 2 * n : first + 2 * n + 2] for n in range(count)]
        here = [start + int.from_bytes(pointer) for pointer in pointers]
        if is_leaf:
            yield from here
        else:
            pages += [int.from_bytes(content[cell : cell + 4]) for cell in here]
            pages.append(int.from_bytes(content[start + 8 : start + 12]))


@pytest.mark.parametrize("table", OF_TABLES)
def test_no_answer_is_that_of_another_key(
    damaged: Damaged, open_store: OpenStore, path: Path, table: str
) -> None:
    """One bit has flipped in a row's key, or in its column of sizes."""
    paths, size = OF_TABLES[table]
    seed = random.randrange(1 << 32) if is_long() else 3
    print(f"seed {seed}")
    randomness = random.Random(seed)
    path.write_bytes(damaged.content)
    places = list(cells(path, table))
    client = app_for(open_store(), dialect="comet-0.38").test_client()
    expected = {each: client.get(f"/{each}").data for each in paths}
    altered, errors = set[tuple[int, str]](), 0
    for number in range(FLIPS):
        content = bytearray(damaged.content)
        content[randomness.choice(places) + randomness.randrange(size)] ^= 1 << (number % 8)
        path.write_bytes(content)
        store = open_store()
        client = app_for(store, dialect="comet-0.38").test_client()
        for each in paths:
            found = client.get(f"/{each}")
            if found.status_code != 200:
                errors += 1
            elif found.data != expected[each]:
                altered.add((number, each))
        store.close()

    assert not altered
    assert errors > 0
