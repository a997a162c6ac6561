"""Tests that a store of version 0.1 can be migrated, and then gives the same responses.

The stores in ``tests/golden`` were made by version 0.1: "whole" and "pruned" from
:class:`Eventful` blocks, "first" and "branch" by earlier commits from three transactions.
"""

from __future__ import annotations

import gzip
import os
import random
import sqlite3
from collections.abc import Iterable
from contextlib import closing, suppress
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

from flask_noderpc import SQLiteBackend
from flask_noderpc.backends.base.new_blocks import OlderBlock
from flask_noderpc.backends.sql import index_steps
from flask_noderpc.backends.sqlite import schema
from flask_noderpc.chain.applications.kvstore import KVStore
from flask_noderpc.cli import main
from flask_noderpc.errors import StoreError
from flask_noderpc.protocol.comet.hashes import tx_hash
from flask_noderpc.wire.dialects import DIALECTS

from .conftest import OpenStore
from .eventful import Eventful, answers, client_of, searches
from .leftovers import assert_no_leftovers

pytestmark = pytest.mark.sqlite

GOLDEN = Path(__file__).parents[1] / "golden"
BASES = {"whole": 1, "pruned": 121}
BLOCKS = 140


@pytest.fixture(scope="module")
def chain() -> Eventful:
    made = Eventful(random.Random(1))
    for _ in range(BLOCKS // 20):
        made.more(20)
    return made


def unpack(name: str, path: Path) -> Path:
    path.write_bytes(gzip.decompress((GOLDEN / f"store_0.1_{name}.db.gz").read_bytes()))
    return path


@pytest.fixture(params=BASES)
def old(request: pytest.FixtureRequest, path: Path) -> tuple[Path, int]:
    """A store of version 0.1, and its lowest height."""
    return unpack(request.param, path), BASES[request.param]


@pytest.fixture
def new(open_store: OpenStore, tmp_path: Path, chain: Eventful) -> SQLiteBackend:
    """A store of this version with the same blocks."""
    store = open_store(tmp_path / "new.db", application=KVStore)
    store.init_chain(chain.maker.genesis, chain.maker.state)
    store.append_block(*chain.blocks)
    return store


def assert_same(
    migrated: SQLiteBackend,
    new: SQLiteBackend,
    chain: Eventful,
    dialects: Iterable[str] = ("comet-0.38",),
) -> None:
    base = migrated.reads.base_height()
    if base > 1:
        new.prune(BLOCKS - base + 1)
    for dialect in dialects:
        mine, other = (client_of(s, dialect=dialect) for s in (migrated, new))
        before, after = dict(answers(other, base, chain)), dict(answers(mine, base, chain))
        assert {path for path in before if before[path] != after[path]} == set()
        assert dict(searches(mine)) == dict(searches(other))
        for tx in set(chain.txs):
            path = f"/tx?hash=0x{tx_hash(tx).hex()}&prove=true"
            assert mine.get(path).data == other.get(path).data
    assert migrated.head() == new.head()


def test_a_store_of_version_0_1_answers_as_before(
    old: tuple[Path, int], open_store: OpenStore, new: SQLiteBackend, chain: Eventful
) -> None:
    path, base = old

    migrated = open_store(path, application=KVStore)

    assert migrated.reads.base_height() == base
    assert_same(migrated, new, chain, DIALECTS)
    assert migrated.verify() == BLOCKS - base + 1
    assert_no_leftovers(migrated, base)
    assert migrated.mempool.pending(9).txs == (b"pending=1",)


def test_a_migrated_chain_goes_on(
    open_store: OpenStore, path: Path, new: SQLiteBackend, chain: Eventful
) -> None:
    migrated = open_store(unpack("whole", path), application=KVStore)
    goes_on = Eventful(random.Random(1))
    for _ in range(BLOCKS // 20):
        goes_on.more(20)

    for store in (migrated, new):
        store.append_block(*goes_on.more(0))
    following = goes_on.more(20)
    for store in (migrated, new):
        store.append_block(*following)

    assert migrated.verify() == BLOCKS + 20
    assert migrated.prune(10) == new.prune(10) == BLOCKS + 10
    assert_no_leftovers(migrated, BLOCKS + 11)


def test_a_pruned_chain_that_was_migrated_is_filled_downwards(
    open_store: OpenStore, path: Path, new: SQLiteBackend, chain: Eventful
) -> None:
    migrated = open_store(unpack("pruned", path), application=KVStore)
    for height in range(BASES["pruned"] - 1, 90, -1):
        item, members = chain.blocks[height - 1], new.reads.validators(height)
        params = new.reads.consensus_params(height)
        migrated.backfill(OlderBlock(item.block, item.results, members, params))

    for height in range(91, BLOCKS + 2):
        assert migrated.reads.consensus_params(height) == new.reads.consensus_params(height)
        assert migrated.reads.validators(height) == new.reads.validators(height)
    assert migrated.verify() == BLOCKS - 90


def interrupt(path: Path, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Migrate in the smallest steps, and stop after some."""
    with monkeypatch.context() as patch:
        patch.setattr(schema, "_STEP_S", -1.0)
        # With these limits each block counts as a large one.
        for module, name in (
            (schema, "_BYTES"),
            (schema, "_TXS"),
            (index_steps, "ATTRIBUTES_PER_STEP"),
        ):
            patch.setattr(module, name, 1)
        backend = SQLiteBackend(path)
        left = iter(range(steps))

        def end(remaining: int) -> None:
            if next(left, None) is None:
                raise KeyboardInterrupt

        with suppress(KeyboardInterrupt):
            backend.migrate(end)


@pytest.mark.parametrize("steps", [1, 40, 41, 42, 43, 44])
def test_a_migration_can_be_interrupted_and_goes_on(
    old: tuple[Path, int],
    steps: int,
    open_store: OpenStore,
    new: SQLiteBackend,
    chain: Eventful,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path, base = old
    interrupt(path, steps, monkeypatch)
    store = open_store(path, application=KVStore)

    if steps == 1:
        with pytest.raises(StoreError, match="run `noderpc migrate`"):
            store.reads.latest_height()
    result = CliRunner().invoke(main, ["migrate", str(path)])

    assert result.exit_code == 0, result.output
    assert "blocks migrated" in result.output
    assert_same(store, new, chain)
    assert store.verify() == BLOCKS - base + 1


def test_no_step_is_as_large_as_the_chain(
    old: tuple[Path, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """This holds however long a validator set was valid, and however many hits a block has."""
    path, base = old
    monkeypatch.setattr(schema, "_STEP_S", -1.0)
    monkeypatch.setattr(schema, "_HEIGHTS", 10, raising=False)
    heights: list[int] = []
    blocks: list[int] = []

    def look(remaining: int) -> None:
        blocks.append(remaining)
        with closing(sqlite3.connect(path)) as at, suppress(sqlite3.OperationalError):
            heights.extend(at.execute("SELECT count(*) FROM validator_heights").fetchone())

    SQLiteBackend(path).migrate(look)

    assert blocks[0] == BLOCKS - base + 1
    assert sum(heights) > 0
    for counts, most in ((heights, 10), (blocks, 1)):
        assert max(a - b for a, b in pairwise(counts)) == most


@pytest.mark.parametrize("more", [1, 52, 65])
def test_a_migration_goes_on_when_the_disk_has_space_again(
    path: Path, more: int, open_store: OpenStore, new: SQLiteBackend, chain: Eventful
) -> None:
    unpack("whole", path)
    with closing(sqlite3.connect(path)) as at:
        (pages,) = at.execute("PRAGMA page_count").fetchone()

    with pytest.raises(StoreError, match=r"chain\.db: the disk or the page limit is full"):
        SQLiteBackend(path, max_pages=pages + more).migrate()
    result = CliRunner().invoke(main, ["migrate", str(path)])

    assert result.exit_code == 0, result.output
    store = open_store(path, application=KVStore)
    assert_same(store, new, chain)
    assert store.verify() == BLOCKS


@pytest.mark.parametrize("where", ["rw", "ro"])
def test_a_large_store_names_the_command(
    open_store: OpenStore, path: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpack("whole", path)
    monkeypatch.setattr(schema, "_MAX_BLOCKS_WHEN_OPENED", BLOCKS - 1)

    with pytest.raises(StoreError, match="run `noderpc migrate`"):
        open_store(f"{path.as_uri()}?mode={where}").reads.latest_height()


def test_a_store_that_needs_no_migration_is_left_alone(full: SQLiteBackend, path: Path) -> None:
    full.close()

    result = CliRunner().invoke(main, ["migrate", str(path)])

    assert (result.exit_code, full.verify()) == (0, 10)


def test_a_file_of_something_else_is_not_migrated(path: Path) -> None:
    with closing(sqlite3.connect(path)) as at, at:
        at.execute("CREATE TABLE other (id)")

    result = CliRunner().invoke(main, ["migrate", str(path)])

    assert result.exit_code == os.EX_CONFIG
    assert "expected a flask-noderpc store" in result.output


# Stores of the first commit of version 0.1, and of one whose steps have other names.
@pytest.mark.parametrize("name", ["first", "branch"])
def test_a_store_of_an_earlier_commit_of_version_0_1_is_migrated(
    open_store: OpenStore, path: Path, name: str
) -> None:
    migrated = open_store(unpack(name, path), application=KVStore)
    migrated.mempool.submit(b"more=1")
    client = client_of(migrated, dialect="comet-0.38")
    found = client.get("/tx_search?query=\"app.key='a1'\"").get_json()["result"]

    assert migrated.verify() == 3
    assert migrated.mempool.pending(9).txs == (b"pend=1", b"more=1")
    assert (found["total_count"], found["txs"][0]["height"]) == ("1", "2")
    assert_no_leftovers(migrated, 1)


def test_a_store_that_a_process_has_open_is_not_migrated(path: Path) -> None:
    unpack("whole", path)
    with closing(sqlite3.connect(path)) as at:
        at.execute("PRAGMA journal_mode = WAL").fetchone()
        at.execute("SELECT 1 FROM blocks").fetchone()
        result = CliRunner().invoke(main, ["migrate", str(path)])

    assert result.exit_code == os.EX_CONFIG
    assert "another process has the store open: stop it first" in result.output
