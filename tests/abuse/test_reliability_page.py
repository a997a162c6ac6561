"""Tests that docs/reliability.rst has numbered rows, each with tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reliability.rst").read_text()


def test_the_rows_are_numbered_in_order() -> None:
    found = re.findall(r"^   \* - (\d+)$", PAGE, re.MULTILINE)
    assert len(found) > 30
    assert found == [str(number) for number in range(1, len(found) + 1)]


def test_each_names_tests_that_are_there() -> None:
    rows = re.findall(r"^   \* - \d+\n(?:     .*\n)+", PAGE, re.MULTILINE)
    assert len(rows) > 30
    for row in rows:
        named = re.findall(r"``(tests/\S+)``", row)
        assert named, row
        for path in named:
            assert (ROOT / path).is_file(), path
