"""Tests that a corrupt, locked, full, too new or missing file causes a clear error and no
loss."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from flask_noderpc import SQLiteBackend
from flask_noderpc.backends.sqlite import connection
from flask_noderpc.chain.applications.kvstore import KVStore
from flask_noderpc.cli import main
from flask_noderpc.errors import InvalidBlock, InvalidSetting, StoreError
from flask_noderpc.testing import SampleChain
from flask_noderpc.testing.chains import ChainMaker

from ..helpers.until import PATIENCE, until
from .conftest import OpenStore

pytestmark = pytest.mark.sqlite


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_WRITE_PATIENCE_S", 0.05)


@contextmanager
def locked(path: Path, mode: str = "IMMEDIATE") -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(f"BEGIN {mode}")
        yield other


@pytest.mark.parametrize(
    "content", [b"no database" * 1000, b"SQLite format 3\x00" + b"\xff" * 9000]
)
def test_garbage_is_refused_and_left_as_it_is(
    open_store: OpenStore, path: Path, content: bytes
) -> None:
    path.write_bytes(content)

    with pytest.raises(StoreError, match=r"chain\.db: .*(not a SQLite database|corrupt|file)"):
        open_store().reads.latest_height()

    assert path.read_bytes() == content


def test_a_store_that_can_t_be_opened_leaves_no_threads(
    open_store: OpenStore, path: Path
) -> None:
    path.write_bytes(b"no database" * 1000)
    backend = open_store()
    before = threading.active_count()

    for _ in range(10):
        with pytest.raises(StoreError):
            backend.reads.latest_height()

    until(lambda: threading.active_count() <= before, "the end of the threads")


@pytest.mark.parametrize("schema", ["CREATE TABLE blocks (id)", "CREATE TABLE other (id)"])
@pytest.mark.parametrize("command", ["", "verify", "migrate", "compact", "prune --retain=1"])
def test_another_program_s_database_is_refused_and_left_as_it_is(
    open_store: OpenStore, path: Path, schema: str, command: str
) -> None:
    with closing(sqlite3.connect(path)) as at:
        at.execute(schema)
    content = path.read_bytes()

    if command:
        name, *options = command.split()
        result = CliRunner().invoke(main, [name, str(path), *options])
        assert result.exit_code == os.EX_CONFIG
        message = result.output
    else:
        with pytest.raises(StoreError) as caught:
            open_store().reads.latest_height()
        message = str(caught.value)

    assert f"{path}: expected a flask-noderpc store, got a database of another" in message
    assert path.read_bytes() == content


def test_an_empty_file_becomes_a_store(open_store: OpenStore, path: Path) -> None:
    path.touch()

    assert open_store().reads.latest_height() == 0


def test_a_folder_is_no_store(open_store: OpenStore, tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="expected a file, got the folder"):
        open_store(tmp_path)


def test_an_uncreatable_folder_is_a_store_error(open_store: OpenStore, tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(StoreError, match="file"):
        open_store(tmp_path / "file" / "deeper" / "chain.db").reads.latest_height()


def test_a_store_that_was_cut_short_is_refused_or_noticed(
    full: SQLiteBackend, open_store: OpenStore, path: Path
) -> None:
    full.close()
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)

    with pytest.raises((StoreError, InvalidBlock), match=r"corrupt|Tree|malformed"):
        open_store().verify()


def test_an_overwritten_page_is_an_error_of_the_calls_that_need_it(
    full: SQLiteBackend, open_store: OpenStore, path: Path
) -> None:
    full.close()
    with closing(sqlite3.connect(path)) as plain:
        (page,) = plain.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'tx_slices'"
        ).fetchone()
        (size,) = plain.execute("PRAGMA page_size").fetchone()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    backend = open_store()

    with pytest.raises(StoreError, match="corrupt, restore a backup"):
        backend.reads.block(2)

    assert backend.reads.block_meta(2).header.height == 2
    assert backend.reads.validators(2).total_power == 20


def test_a_newer_store_is_refused_and_left_as_it_is(
    full: SQLiteBackend, open_store: OpenStore, path: Path
) -> None:
    full.close()
    with closing(sqlite3.connect(path)) as plain, plain:
        plain.execute(
            "INSERT INTO _sqlite_migrations (migration_set, name, applied_at)"
            " VALUES ('flask_noderpc', 'm999_future', '2999-01-01')"
        )

    for name in (path, f"file:{path}?mode=ro"):
        with pytest.raises(StoreError, match=r"newer flask-noderpc \(m999_future\).*upgrade"):
            open_store(name).reads.latest_height()

    with closing(sqlite3.connect(path)) as plain:
        assert plain.execute("SELECT count(*) FROM blocks").fetchone()[0] > 0


def test_reads_go_on_while_another_program_holds_the_write_lock(
    full: SQLiteBackend, sample: SampleChain, path: Path
) -> None:
    with locked(path):
        assert full.reads.latest_height() == len(sample.blocks)
        assert full.reads.block(2)[1] == sample.blocks[1].block


@pytest.mark.usefixtures("impatient")
def test_a_write_reports_a_lock_held_by_another_program(
    open_store: OpenStore, maker: ChainMaker, path: Path
) -> None:
    backend = open_store(application=KVStore)
    backend.init_chain(maker.genesis, maker.state)

    with locked(path, "EXCLUSIVE"), pytest.raises(StoreError, match="holds the write lock"):
        backend.mempool.submit(b"a=1")

    assert backend.mempool.submit(b"a=1").code == 0


@pytest.mark.usefixtures("impatient")
def test_a_store_that_is_locked_at_the_start_opens_later(
    full: SQLiteBackend, open_store: OpenStore, path: Path
) -> None:
    full.close()
    other = open_store()

    with locked(path, "EXCLUSIVE"), pytest.raises(StoreError, match="holds the write lock"):
        other.reads.latest_height()

    assert other.reads.latest_height() > 0


def test_a_write_waits_for_the_lock(
    open_store: OpenStore, maker: ChainMaker, path: Path
) -> None:
    backend = open_store(application=KVStore)
    backend.init_chain(maker.genesis, maker.state)
    done = threading.Event()

    def send() -> None:
        backend.mempool.submit(b"a=1")
        done.set()

    with locked(path):
        sender = threading.Thread(target=send)
        sender.start()
        assert not done.wait(0.2)
    sender.join(PATIENCE)

    assert done.is_set()
    assert backend.mempool.pending(1).txs == (b"a=1",)


def test_a_new_file_that_another_opens_just_now_is_waited_for(
    open_store: OpenStore, path: Path
) -> None:
    is_held = threading.Event()
    opened: list[bool] = []

    def use() -> None:
        is_held.wait(PATIENCE)
        opened.append(open_store().has_chain())

    opener = threading.Thread(target=use)
    opener.start()
    # A file without a WAL: SQLite refuses the second connection at once, but waits for the lock
    # later.
    with locked(path):
        is_held.set()
        opener.join(0.2)
    opener.join(PATIENCE)

    assert opened == [False]


@pytest.mark.usefixtures("impatient")
def test_a_store_held_exclusively_is_an_error_of_each_read(
    full: SQLiteBackend, open_store: OpenStore, path: Path
) -> None:
    full.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN IMMEDIATE")
        other.execute("COMMIT")

        with pytest.raises(StoreError, match="lock"):
            open_store().reads.latest_height()


def test_a_store_can_be_opened_only_to_read(
    full: SQLiteBackend, open_store: OpenStore, sample: SampleChain, path: Path
) -> None:
    reader = open_store(f"file:{path}?mode=ro", application=KVStore)

    assert reader.reads.latest_height() == len(sample.blocks)
    assert reader.verify() == len(sample.blocks)
    with pytest.raises(StoreError, match="read-only"):
        reader.mempool.submit(b"a=1")


def test_a_missing_read_only_store_is_not_created(
    open_store: OpenStore, tmp_path: Path
) -> None:
    with pytest.raises(StoreError, match="can't be opened"):
        open_store(f"file:{tmp_path}/none/chain.db?mode=ro").reads.latest_height()

    assert not (tmp_path / "none").exists()


def test_a_uri_with_an_escaped_name_is_the_file(
    open_store: OpenStore, maker: ChainMaker, tmp_path: Path
) -> None:
    backend = open_store(f"file:{tmp_path}/with%20blank/chain.db")

    backend.init_chain(maker.genesis, maker.state)

    assert (tmp_path / "with blank" / "chain.db").exists()
    assert backend.has_chain()


@pytest.mark.parametrize("name", ["a#b?c%20d.db", "mode=ro.db", "ü.db"])
def test_a_name_with_odd_characters_is_the_file(
    open_store: OpenStore, maker: ChainMaker, tmp_path: Path, name: str
) -> None:
    backend = open_store(tmp_path / name)

    backend.init_chain(maker.genesis, maker.state)

    assert (tmp_path / name).exists()
    assert backend.has_chain()
