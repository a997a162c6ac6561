"""Tests that missing programs and libraries skip a test on a developer's machine, and fail it
in CI."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from .require import require_library, require_program


def test_a_program_is_found_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    python = Path(sys.executable)
    monkeypatch.setenv("PATH", str(python.parent))

    assert require_program(python.name) == str(python)


@pytest.mark.parametrize(
    ("required", "outcome"), [("0", pytest.skip.Exception), ("1", pytest.fail.Exception)]
)
def test_a_missing_program_or_library_skips_or_fails(
    monkeypatch: pytest.MonkeyPatch, required: str, outcome: type[BaseException]
) -> None:
    monkeypatch.setenv("NODERPC_REQUIRE_CLIENTS", required)

    with pytest.raises(outcome, match="no-such-program is not installed"):
        require_program("no-such-program")
    with pytest.raises(outcome, match=r"nosuchlibrary is not installed: pip install"):
        require_library("nosuchlibrary")
