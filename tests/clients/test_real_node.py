"""Tests that compare a real node with ours, and with its companion: tests/differential, live,
for
0.38."""

from __future__ import annotations

from pathlib import Path

from tests.differential import companion, run
from tests.differential.sides import VERSIONS


def test_no_answer_of_a_live_node_differs_without_a_reason(
    go_programs: Path, tmp_path: Path
) -> None:
    version = VERSIONS["0.38.25"]

    assert run.compare(version, go_programs / "cometbft", tmp_path) == 0


def test_a_companion_answers_as_its_node(go_programs: Path, tmp_path: Path) -> None:
    version = VERSIONS["0.38.25"]

    assert companion.compare(version, go_programs / "cometbft", tmp_path) == 0
