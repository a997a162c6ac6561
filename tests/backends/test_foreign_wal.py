"""Tests that a missing WAL, or another file's WAL, is an error before SQLite uses it."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from flask_noderpc import SQLiteBackend
from flask_noderpc.backends.sqlite import schema
from flask_noderpc.backends.sqlite.connection import SQLiteFile
from flask_noderpc.cli import main
from flask_noderpc.errors import StoreError
from flask_noderpc.testing.chains import ChainMaker, make_blocks

from .conftest import OpenStore
from .test_migration import unpack

pytestmark = pytest.mark.sqlite

BLOCKS, COPIED = 60, 20
SUFFIXES = ("", "-wal", "-shm")


def copy(source: Path, target: Path, *suffixes: str) -> None:
    """Copy files of a store as ``kill -9`` would leave them."""
    target.parent.mkdir(exist_ok=True)
    for suffix in suffixes:
        shutil.copy(f"{source}{suffix}", f"{target}{suffix}")


def checkpoint(path: Path) -> None:
    with closing(sqlite3.connect(path)) as at:
        at.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def make(store: SQLiteBackend, maker: ChainMaker, path: Path) -> None:
    """Fill a store, copy it meanwhile, and copy into the folder ``killed`` what a kill would
    leave."""
    store.init_chain(maker.genesis, maker.state)
    blocks = list(make_blocks(maker, BLOCKS, 3))
    store.append_block(*blocks[:COPIED])
    checkpoint(path)
    shutil.copy(path, f"{path}.plain")
    store.backup(f"{path}.backup")
    store.append_block(*blocks[COPIED : COPIED + 20])
    checkpoint(path)
    for block in blocks[COPIED + 20 :]:
        store.append_block(block)
    copy(path, path.parent / "killed" / path.name, *SUFFIXES)


@pytest.fixture
def killed(open_store: OpenStore, maker: ChainMaker, path: Path) -> Path:
    """Return the files of a store whose process was killed, with a WAL of 20 blocks."""
    store = open_store()
    make(store, maker, path)
    store.close()
    return path.parent / "killed" / path.name


def test_a_wal_that_belongs_to_the_file_is_used(killed: Path, open_store: OpenStore) -> None:
    assert open_store(killed).verify() == BLOCKS


@pytest.mark.parametrize("kind", ["plain", "backup"])
@pytest.mark.parametrize("with_index", [True, False])
def test_the_wal_of_a_later_state_is_refused_and_the_copy_unharmed(
    killed: Path, open_store: OpenStore, path: Path, kind: str, with_index: bool
) -> None:
    copied = Path(f"{path}.{kind}").read_bytes()
    killed.write_bytes(copied)
    if not with_index:
        Path(f"{killed}-shm").unlink()

    for file in (killed, f"file:{killed}?mode=ro"):
        with pytest.raises(StoreError, match=r"chain\.db: chain\.db-wal belongs .*remove the"):
            open_store(file).reads.latest_height()
    for words in (["verify", str(killed)], ["compact", str(killed)], ["migrate", str(killed)]):
        shown = CliRunner().invoke(main, words)
        assert (shown.exit_code, "belongs to another file" in shown.output) == (78, True)

    assert killed.read_bytes() == copied
    for suffix in SUFFIXES[1:]:
        Path(f"{killed}{suffix}").unlink(missing_ok=True)
    assert open_store(killed).verify() == COPIED


def test_the_wal_of_an_earlier_state_is_refused(
    killed: Path, open_store: OpenStore, path: Path
) -> None:
    whole = open_store()
    whole.close()
    with closing(sqlite3.connect(path)) as at:
        version = at.execute("PRAGMA user_version").fetchone()[0] + 1
        at.execute(f"PRAGMA user_version = {version}")
    shutil.copy(path, killed)

    with pytest.raises(StoreError, match="belongs to another file"):
        open_store(killed).reads.latest_height()


def test_the_wal_of_another_chain_is_refused(
    killed: Path, open_store: OpenStore, tmp_path: Path
) -> None:
    other = tmp_path / "other.db"
    make(open_store(other), ChainMaker((5, 4)), other)
    shutil.copy(other, killed)

    with pytest.raises(StoreError, match="belongs to another file"):
        open_store(killed).reads.latest_height()


def test_the_wal_of_a_later_state_of_a_migration_is_refused(
    open_store: OpenStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpack("whole", path)
    mixed = path.with_name("mixed.db")
    monkeypatch.setattr(schema, "_STEP_S", -1.0)
    steps = SQLiteFile(path).migrate()

    for count in (60, 60, 20):
        for _ in range(count):
            next(steps)
        if not mixed.exists():
            shutil.copy(path, mixed)
        elif count == 60:
            checkpoint(path)
    shutil.copy(f"{path}-wal", f"{mixed}-wal")
    del steps
    copied = mixed.read_bytes()

    with pytest.raises(StoreError, match=r"mixed\.db-wal belongs to another file"):
        open_store(mixed).migrate()
    assert mixed.read_bytes() == copied


@pytest.mark.parametrize("frame", [0, -1])
def test_a_torn_page_of_the_wal_is_not_taken_for_another_file_s(
    killed: Path, open_store: OpenStore, frame: int
) -> None:
    log = Path(f"{killed}-wal")
    content = bytearray(log.read_bytes())
    frames = range(32, len(content), 4096 + 24)
    firsts = [at for at in frames if content[at : at + 4] == b"\0\0\0\1"]
    at = firsts[frame] + 24
    content[at : at + 512] = b"\xaa" * 512
    log.write_bytes(content)

    assert COPIED < open_store(killed).verify() < BLOCKS


def test_a_wal_that_is_missing_after_a_kill_is_an_error_that_names_the_height(
    killed: Path, open_store: OpenStore
) -> None:
    Path(f"{killed}-wal").unlink()

    for _ in range(2):
        with pytest.raises(
            StoreError,
            match=r"chain\.db: chain\.db-wal was removed .*from block 40, the latest",
        ):
            open_store(killed).reads.latest_height()

    Path(f"{killed}-shm").unlink()
    assert open_store(killed).verify() == COPIED + 20


def test_a_wal_that_is_removed_while_in_use_stops_writes_and_loses_nothing(
    open_store: OpenStore, maker: ChainMaker, path: Path
) -> None:
    store = open_store()
    store.init_chain(maker.genesis, maker.state)
    store.append_block(*make_blocks(maker, 5, 1))
    assert store.reads.latest_height() == 5
    Path(f"{path}-wal").unlink()

    with pytest.raises(StoreError, match=r"chain\.db-wal was removed .*stop all processes"):
        store.append_block(maker.block())
    with pytest.raises(StoreError, match=r"chain\.db-wal was removed"):
        open_store().reads.latest_height()
    # The only connection for reads is in use, so another one must be opened.
    with store._open().readers.snapshot(), pytest.raises(StoreError, match="was removed"):
        store.reads.latest_height()
    assert store.reads.block(5)[1].header.height == 5

    store.close()
    assert open_store().verify() == 5


def test_a_store_that_was_killed_is_compacted_and_opened(
    killed: Path, open_store: OpenStore
) -> None:
    open_store(killed).compact()

    assert open_store(killed).verify() == BLOCKS
