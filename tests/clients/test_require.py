"""A missing client is a reason to skip on a desk, and a failure in CI."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from . import require


def test_a_program_is_found_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    python = Path(sys.executable)
    monkeypatch.setenv("PATH", str(python.parent))

    assert require(python.name) == str(python)


@pytest.mark.parametrize(
    ("required", "outcome"), [("0", pytest.skip.Exception), ("1", pytest.fail.Exception)]
)
def test_a_missing_program_skips_or_fails(
    monkeypatch: pytest.MonkeyPatch, required: str, outcome: type[BaseException]
) -> None:
    monkeypatch.setenv("NODERPC_REQUIRE_CLIENTS", required)

    with pytest.raises(outcome, match="no-such-program is not installed"):
        require("no-such-program")
