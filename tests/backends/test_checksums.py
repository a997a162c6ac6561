"""Tests that a store whose rows have no checksums gets them when it is opened."""

from __future__ import annotations

import gzip
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest
from click.testing import CliRunner

from flask_noderpc import SQLiteBackend
from flask_noderpc.backends.sql import values
from flask_noderpc.backends.sqlite.tables import CORE
from flask_noderpc.chain.applications.kvstore import KVStore
from flask_noderpc.cli import main

from .conftest import OpenStore

pytestmark = pytest.mark.sqlite

GOLDEN = Path(__file__).parents[1] / "golden" / "store_0.2_without_checksums.db.gz"


@pytest.fixture
def earlier(path: Path) -> Path:
    """A store of three blocks that has taken only the first step, and so has no checksums."""
    path.write_bytes(gzip.decompress(GOLDEN.read_bytes()))
    return path


def taken(path: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(path)) as at:
        return at.execute(
            "SELECT migration_set, name FROM _sqlite_migrations ORDER BY rowid"
        ).fetchall()


def assert_migrated(store: SQLiteBackend, path: Path) -> None:
    assert store.verify() == 3
    assert store.app_state.get(b"pair:key1") == b"value1"
    assert store.metadata("note") == b"left by a process"
    assert store.mempool.pending(9).txs == (b"waits=1",)
    assert taken(path) == [("flask_noderpc", name) for name in CORE.names]


def test_rows_get_checksums_when_the_store_is_opened(
    earlier: Path, open_store: OpenStore
) -> None:
    assert taken(earlier) == [("flask_noderpc", "m101_packed_rows")]

    store = open_store(application=KVStore)

    assert_migrated(store, earlier)


def test_an_earlier_store_that_is_only_read_names_the_cure(
    earlier: Path, open_store: OpenStore
) -> None:
    refused = CliRunner().invoke(main, ["verify", str(earlier)])
    migrated = CliRunner().invoke(main, ["migrate", str(earlier)])
    verified = CliRunner().invoke(main, ["verify", str(earlier)])

    assert refused.exit_code != 0
    assert (
        "lacks the migrations m102_checksums, m103_checksums_filled: start its node"
        in refused.output
    )
    assert (migrated.exit_code, verified.exit_code) == (0, 0)
    assert "3 blocks verified" in verified.output
    assert_migrated(open_store(application=KVStore), earlier)


@pytest.mark.parametrize("done", [0, 1, 3])
def test_a_fill_that_was_interrupted_goes_on(
    earlier: Path, open_store: OpenStore, done: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_some, left = values.fill_app_state, iter(range(done))

    def interrupted(at: object) -> bool:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return fill_some(at)  # type: ignore[arg-type]

    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr(values, "_FILLED", 1)
        patch.setattr(values, "fill_app_state", interrupted)
        open_store().reads.latest_height()
    with closing(sqlite3.connect(earlier)) as at:
        (filled,) = at.execute(
            "SELECT count(*) FROM app_state WHERE checksum IS NOT NULL"
        ).fetchone()

    assert filled == done
    assert_migrated(open_store(application=KVStore), earlier)


def test_a_process_of_the_version_before_can_t_write_rows_without_checksums(
    full: SQLiteBackend, path: Path
) -> None:
    with closing(sqlite3.connect(path)) as at, at, pytest.raises(sqlite3.OperationalError):
        at.execute(
            "INSERT INTO app_state (key, value) VALUES (X'01', X'02')"
            " ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        )
