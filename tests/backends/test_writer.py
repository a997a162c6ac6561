"""Tests that writes which arrive together share a transaction, and that each gets its own
result."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from flask_noderpc import SQLiteBackend
from flask_noderpc.backends.sqlite.connection import SQLiteFile
from flask_noderpc.backends.sqlite.handles import Writer
from flask_noderpc.errors import MempoolFull, StoreError
from tests.helpers.until import PATIENCE, until

pytestmark = pytest.mark.sqlite

# SQLite's connection, which has more methods than the type of all stores.
Connection = Any
Work = Callable[[Connection], object]


@pytest.fixture
def writer(path: Path) -> Iterator[Writer]:
    made = Writer(SQLiteFile(path))
    made.open()
    yield made
    made.close()


def put(key: bytes) -> Work:
    return lambda at: (
        at.execute("INSERT INTO app_state (key, content) VALUES (?, X'00')", (key,)).rowcount
    )


def keys(writer: Writer) -> list[bytes]:
    rows = writer.run(
        lambda at: at.execute("SELECT key FROM app_state ORDER BY key").fetchall()
    )
    return [key for (key,) in rows]


def together(writer: Writer, works: list[Work]) -> tuple[list[object], list[str]]:
    """Return what each job returned or raised when all were waiting at once, and the SQL that
    ran."""
    began, resume = threading.Event(), threading.Event()
    answers: list[object] = [None] * len(works)
    sql: list[str] = []

    def hold(at: Connection) -> None:
        began.set()
        resume.wait(PATIENCE)
        at.set_trace_callback(sql.append)

    def end(at: Connection) -> None:
        at.set_trace_callback(None)

    def ask(number: int) -> None:
        try:
            answers[number] = writer.run(works[number])
        except Exception as error:
            answers[number] = error

    threads = [threading.Thread(target=writer.run, args=(hold,))]
    threads += [threading.Thread(target=ask, args=(number,)) for number in range(len(works))]
    threads[0].start()
    began.wait(PATIENCE)
    for thread in threads[1:]:
        thread.start()
    until(lambda: len(writer._waiting) == len(works), "all wait")
    resume.set()
    for thread in threads:
        thread.join(PATIENCE)
    writer.run(end)
    return answers, sql


def test_writes_that_wait_together_share_one_transaction(writer: Writer) -> None:
    answers, sql = together(writer, [put(b"%d" % number) for number in range(5)])

    assert answers == [1] * 5
    assert keys(writer) == [b"0", b"1", b"2", b"3", b"4"]
    # One transaction for the write that was held, one for the five, and one that ends the
    # trace.
    assert sql.count("BEGIN IMMEDIATE") == 2


def test_a_failure_does_not_undo_its_neighbours(writer: Writer) -> None:
    def fail(at: Connection) -> None:
        put(b"half")(at)
        raise MempoolFull(1, 1, 1, 1)

    answers, _ = together(writer, [put(b"a"), fail, put(b"b"), put(b"b")])

    failed = [type(answer) for answer in answers if not isinstance(answer, int)]
    assert sorted(error.__name__ for error in failed) == ["MempoolFull", "StoreError"]
    assert keys(writer) == [b"a", b"b"]


def test_a_transaction_that_is_lost_is_an_error_of_all_in_it(writer: Writer) -> None:
    answers, _ = together(writer, [put(b"a"), lambda at: at.execute("ROLLBACK"), put(b"b")])

    lost = [answer for answer in answers if isinstance(answer, StoreError)]
    assert len(lost) == 3
    assert "transaction was lost" in str(lost[0])
    assert keys(writer) == []
    writer.run(put(b"later"))
    assert keys(writer) == [b"later"]


def test_an_error_of_another_kind_reaches_its_caller(writer: Writer) -> None:
    def fail(at: Connection) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        writer.run(fail)

    assert writer.run(lambda at: 5) == 5


def test_a_failed_commit_writes_nothing_and_fails_every_caller(writer: Writer) -> None:
    def break_the_rules(at: Connection) -> None:
        at.execute("PRAGMA defer_foreign_keys = ON")
        at.execute("CREATE TABLE child (id INTEGER REFERENCES chain (id))")
        at.execute("INSERT INTO child VALUES (99)")

    writer._open().execute("PRAGMA foreign_keys = ON")
    answers, _ = together(writer, [put(b"a"), break_the_rules])

    assert [type(answer) for answer in answers] == [StoreError, StoreError]
    assert keys(writer) == []


def test_a_closed_writer_opens_again(writer: Writer) -> None:
    writer.run(put(b"a"))
    writer.close()

    assert keys(writer) == [b"a"]


def test_a_backend_that_was_never_used_closes(path: Path) -> None:
    SQLiteBackend(path).close()

    assert not path.exists()
