"""Tests that each owner of tables has an ordered list of steps, and that a store remembers
which it has taken."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlite_utils import Database

from flask_noderpc import SQLiteBackend
from flask_noderpc.backends.sqlite import schema
from flask_noderpc.backends.sqlite.engine import Connection
from flask_noderpc.backends.sqlite.tables import CORE, Owner, Step
from flask_noderpc.cli import main
from flask_noderpc.errors import StoreError

from .conftest import OpenStore

pytestmark = pytest.mark.sqlite


def taken(path: Path, owner: str) -> list[str]:
    with closing(sqlite3.connect(path)) as at:
        found = at.execute(
            "SELECT name FROM _sqlite_migrations WHERE migration_set = ? ORDER BY rowid",
            (owner,),
        )
        return [name for (name,) in found]


def set_taken(path: Path, owner: str, names: Sequence[str]) -> None:
    with closing(sqlite3.connect(path)) as at, at:
        at.execute("DELETE FROM _sqlite_migrations WHERE migration_set = ?", (owner,))
        at.executemany(
            "INSERT INTO _sqlite_migrations (migration_set, name, applied_at)"
            " VALUES (?, ?, '2030-01-01')",
            [(owner, name) for name in names],
        )


def _add_notes(db: Database) -> None:
    db.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY) STRICT")
    db.execute(
        "INSERT INTO notes WITH RECURSIVE n (i) AS"
        " (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT i FROM n"
    )


def _add_text(db: Database) -> None:
    db.execute("ALTER TABLE notes ADD COLUMN body TEXT")


def _fill_one(at: Connection) -> bool:
    """Write the text of one note."""
    found = at.execute(
        "UPDATE notes SET body = 'text' WHERE id ="
        " (SELECT min(id) FROM notes WHERE body IS NULL) RETURNING id"
    )
    return bool(found.fetchall())


def _nothing(db: Database) -> None:
    pass


NOTES = (
    Step("n1_notes", _add_notes),
    Step("n2_text", _add_text),
    Step("n3_filled", _nothing, _fill_one),
)
NAMES = [step.name for step in NOTES]


def with_notes(monkeypatch: pytest.MonkeyPatch, *steps: Step) -> None:
    """Add an owner of tables with these steps."""
    monkeypatch.setattr(schema, "OWNERS", (CORE, Owner("notes", steps)))


@pytest.fixture
def first_step(
    full: SQLiteBackend, open_store: OpenStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A store that has taken the first step of the notes."""
    full.close()
    with_notes(monkeypatch, NOTES[0])
    store = open_store()
    assert store.verify() == 10
    store.close()
    assert taken(path, "notes") == NAMES[:1]
    return path


def notes(path: Path) -> list[tuple[int, str]]:
    with closing(sqlite3.connect(path)) as at:
        return at.execute("SELECT id, body FROM notes ORDER BY id").fetchall()


FILLED = [(number, "text") for number in range(1, 6)]


def test_a_store_gets_the_steps_that_it_lacks_when_it_is_opened(
    first_step: Path,
    open_store: OpenStore,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with_notes(monkeypatch, *NOTES)

    assert open_store().verify() == 10

    assert taken(first_step, "notes") == NAMES
    assert taken(first_step, "flask_noderpc") == CORE.names
    assert notes(first_step) == FILLED
    assert "of an earlier version: n2_text, n3_filled" in caplog.text


def test_a_store_that_is_only_read_names_the_steps_that_it_lacks(
    first_step: Path, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_notes(monkeypatch, *NOTES)

    refused = CliRunner().invoke(main, ["verify", str(first_step)])
    migrated = CliRunner().invoke(main, ["migrate", str(first_step)])
    verified = CliRunner().invoke(main, ["verify", str(first_step)])

    assert refused.exit_code != 0
    assert "lacks the migrations n2_text, n3_filled: start its node, or run" in refused.output
    assert (migrated.exit_code, verified.exit_code) == (0, 0)
    assert notes(first_step) == FILLED


@pytest.mark.parametrize("done", [0, 1, 5])
def test_a_step_that_was_interrupted_goes_on(
    first_step: Path, open_store: OpenStore, done: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = iter(range(done))

    def fill_some(at: Connection) -> bool:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return _fill_one(at)

    with_notes(monkeypatch, *NOTES[:2], NOTES[2]._replace(fill=fill_some))
    with suppress(KeyboardInterrupt):
        open_store().reads.latest_height()
    # The first rows are filled in the transaction of the second step.
    texts = [text for _, text in notes(first_step)] if done else []
    assert texts.count("text") == done
    assert taken(first_step, "notes") == NAMES[: 2 if done else 1]

    with_notes(monkeypatch, *NOTES)
    assert open_store().verify() == 10

    assert notes(first_step) == FILLED


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([*NAMES, "n4_later"], r"by a newer flask-noderpc \(n4_later\): upgrade"),
        ([NAMES[0], "n2_other"], r"by a newer flask-noderpc \(n2_other\): upgrade"),
        ([NAMES[0], NAMES[2]], "in this order: it was created"),
        ([NAMES[1], NAMES[0], NAMES[2]], "in this order: it was created"),
        (NAMES[1:], "in this order: it was created"),
    ],
)
@pytest.mark.parametrize("mode", ["rw", "ro"])
def test_a_store_with_other_steps_is_refused_and_left_as_it_is(
    first_step: Path,
    open_store: OpenStore,
    monkeypatch: pytest.MonkeyPatch,
    names: Sequence[str],
    message: str,
    mode: str,
) -> None:
    with_notes(monkeypatch, *NOTES)
    set_taken(first_step, "notes", names)

    with pytest.raises(StoreError, match=message):
        open_store(f"{first_step.as_uri()}?mode={mode}").reads.latest_height()
    if mode == "rw":
        found = CliRunner().invoke(main, ["migrate", str(first_step)])
        assert found.exit_code == os.EX_CONFIG
        assert "Traceback" not in found.output

    assert taken(first_step, "notes") == names


def test_tables_of_an_owner_that_is_not_installed_are_left_alone(
    first_step: Path, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "OWNERS", (CORE,))

    assert open_store().verify() == 10

    assert taken(first_step, "notes") == NAMES[:1]
