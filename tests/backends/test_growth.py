"""Tests that a file becomes smaller after blocks were removed."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from flask_noderpc import SQLiteBackend
from flask_noderpc.backends.sqlite import schema
from flask_noderpc.backends.sqlite.engine import Connection
from flask_noderpc.cli import main
from flask_noderpc.errors import StoreError
from flask_noderpc.testing import SampleChain
from flask_noderpc.testing.chains import ChainMaker, make_blocks

from .conftest import OpenStore

pytestmark = pytest.mark.sqlite


def fill(store: SQLiteBackend, maker: ChainMaker, count: int) -> None:
    store.init_chain(maker.genesis, maker.state)
    for _ in range(count):
        store.append_block(*make_blocks(maker, 100, 10))


def test_pruning_gives_pages_back(open_store: OpenStore, path: Path) -> None:
    store, maker = open_store(), ChainMaker((10, 7))
    fill(store, maker, 12)
    store.close()
    before = path.stat().st_size

    store.prune(20)

    store.close()
    assert path.stat().st_size < before * 0.7
    store.append_block(maker.block(b"next=1"))
    assert store.verify() == 21


def test_a_store_is_compacted(open_store: OpenStore, path: Path) -> None:
    store, maker = open_store(), ChainMaker((10, 7))
    fill(store, maker, 3)
    store.prune(20)
    store.close()
    before = path.stat().st_size

    result = CliRunner().invoke(main, ["compact", str(path)])

    assert result.exit_code == 0, result.output
    assert path.stat().st_size < before / 3
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    store.append_block(maker.block(b"next=1"))
    assert store.verify() == 21


@pytest.fixture
def link(path: Path) -> Path:
    """Return a link to the store in another folder."""
    folder = path.parent / "links"
    folder.mkdir()
    made = folder / "link.db"
    made.symlink_to(path)
    return made


def test_a_link_to_a_store_stays_a_link(
    full: SQLiteBackend, path: Path, link: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full.close()
    usage = shutil.disk_usage(path.parent)
    folders: list[Path] = []

    def look(folder: Path) -> object:
        folders.append(folder)
        return usage

    monkeypatch.setattr("shutil.disk_usage", look)

    result = CliRunner().invoke(main, ["compact", str(link)])

    assert (result.exit_code, link.is_symlink()) == (0, True)
    assert set(folders) == {path.parent}
    assert full.verify() == 10


def test_the_wal_of_a_link_is_emptied(
    open_store: OpenStore, path: Path, link: Path, maker: ChainMaker
) -> None:
    store = open_store(link, max_log_bytes=100_000)
    store.init_chain(maker.genesis, maker.state)

    for block in make_blocks(maker, 3, 200):
        store.append_block(block)

    assert path.with_name(f"{path.name}-wal").stat().st_size <= 100_000
    assert [each.name for each in link.parent.iterdir()] == [link.name]


def test_a_node_that_starts_while_the_file_is_replaced_says_so(
    full: SQLiteBackend, path: Path, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    full.close()
    with closing(sqlite3.connect(path)) as at:
        # A store that one process holds alone has this journal mode.
        at.execute("PRAGMA journal_mode = DELETE")
    look = schema.refuse_foreign

    def replaced(connection: Connection) -> None:
        look(connection)
        copy = path.with_name("copy.db")
        shutil.copy(path, copy)
        copy.rename(path)

    with monkeypatch.context() as patch:
        patch.setattr(schema, "refuse_foreign", replaced)
        with pytest.raises(StoreError, match=r"chain\.db: the file was replaced .*try again"):
            open_store().reads.latest_height()
    assert open_store().verify() == 10


def test_a_store_that_is_open_is_not_compacted(
    full: SQLiteBackend, path: Path, sample: SampleChain
) -> None:
    result = CliRunner().invoke(main, ["compact", str(path)])

    assert result.exit_code == os.EX_CONFIG
    assert "another process has the store open: stop it first" in result.output
    assert full.reads.latest_height() == len(sample.blocks)


def test_a_full_disk_leaves_the_store_as_it_is(
    full: SQLiteBackend,
    path: Path,
    open_store: OpenStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    full.close()
    usage = shutil.disk_usage(path.parent)._replace(free=1 << 10)
    monkeypatch.setattr("shutil.disk_usage", lambda folder: usage)

    result = CliRunner().invoke(main, ["compact", str(path)])

    assert result.exit_code == os.EX_CONFIG
    assert "expected 0 MB of free disk space for the copy, got 0" in result.output
    monkeypatch.undo()
    assert open_store().verify() == 10


def test_a_missing_store_is_not_compacted(open_store: OpenStore, path: Path) -> None:
    with pytest.raises(StoreError, match="the file does not exist"):
        open_store(path.with_name("none.db")).compact()


def test_owner_and_mode_stay(full: SQLiteBackend, path: Path) -> None:
    full.close()
    path.chmod(0o640)
    owner = (12345, 12345) if os.geteuid() == 0 else (-1, -1)
    os.chown(path, *owner)
    before = path.stat()

    result = CliRunner().invoke(main, ["compact", str(path)])

    assert result.exit_code == 0, result.output
    after = path.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (
        before.st_mode,
        before.st_uid,
        before.st_gid,
    )
    assert after.st_ino != before.st_ino


def test_the_copy_of_an_interrupted_compaction_takes_no_space(
    full: SQLiteBackend, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full.close()
    draft, usage = path.with_name(f"{path.name}.compact"), shutil.disk_usage(path.parent)
    draft.write_bytes(bytes(1000))
    monkeypatch.setattr(
        "shutil.disk_usage",
        lambda folder: usage._replace(free=1 << 10 if draft.exists() else usage.free),
    )

    result = CliRunner().invoke(main, ["compact", str(path)])

    assert result.exit_code == 0, result.output
    assert [each.name for each in path.parent.iterdir()] == [path.name]
