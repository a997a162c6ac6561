"""Tests of the progress of commands on stderr: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import re
import sys
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from flask_noderpc import SQLiteBackend
from flask_noderpc.backends import open_store
from flask_noderpc.backends.sqlite import copies
from flask_noderpc.cli import main
from flask_noderpc.server import output
from flask_noderpc.testing import make_chain

from ..helpers.terminal import run_on_terminal

BLOCKS = 30


@pytest.fixture
def database(tmp_path: Path) -> Path:
    chain, path = make_chain(BLOCKS), tmp_path / "chain.db"
    with closing(SQLiteBackend(path)) as backend:
        backend.init_chain(chain.genesis, chain.state)
        backend.append_block(*chain.blocks)
    return path


def words_of(database: Path) -> dict[str, list[str]]:
    copy = str(database.with_name("copy.db"))
    return {
        "verifying": ["verify", str(database)],
        "copying": ["backup", str(database), copy],
        "pruning": ["prune", str(database), "--retain", "2"],
    }


LABELS = ["verifying", "copying", "pruning"]


@pytest.mark.parametrize("label", LABELS)
def test_a_terminal_shows_a_bar_and_stdout_none(database: Path, label: str) -> None:
    program = str(Path(sys.executable).with_name("noderpc"))

    out, shown = run_on_terminal([program, *words_of(database)[label]])

    assert re.search(rf"{label}  \[#+-*\]  100%  [\d,]+ (blocks|pages) a second", shown), shown
    assert label not in out
    assert out.endswith("\n")


@pytest.mark.parametrize("label", LABELS)
def test_what_is_no_terminal_gets_lines_at_intervals(
    database: Path, label: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "_LINE_EACH_S", 0)

    found = CliRunner().invoke(main, words_of(database)[label])

    assert found.exit_code == 0, found.output
    assert label not in found.stdout
    lines = [line for line in found.stderr.splitlines() if line.startswith(label)]
    assert lines
    for line in lines:
        assert re.fullmatch(
            rf"{label}: \d+ of \d+ (blocks|pages), \d+ a second, \d+ s left", line
        )


def test_short_work_has_no_lines(database: Path) -> None:
    found = CliRunner().invoke(main, ["verify", str(database)])
    assert (found.exit_code, found.stderr) == (0, "")


def test_the_rate_is_that_of_the_work_and_not_of_what_was_done_before(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(f"{output.__name__}.time.monotonic", lambda: now[0])
    work = output.Progress("backfill", done=1_000)
    now[0] += 40
    work.show(1_400, 2_000)
    now[0] += 1
    work.show(1_500, 2_000)
    assert capsys.readouterr().err == "backfill: 1400 of 2000 blocks, 10 a second, 60 s left\n"


def test_a_compaction_tells_how_much_is_copied(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "_STEPS", 10)
    told: list[tuple[int, int]] = []
    with closing(open_store(database)) as store:
        _, after = store.compact(lambda done, total: told.append((done, total)))
    assert told
    assert told == sorted(told)
    assert all(0 <= done <= total for done, total in told)
    assert told[-1][1] >= after
