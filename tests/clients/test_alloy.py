"""Tests of alloy's typed calls to our development node, which are in alloy/src."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ..helpers.require import require_program, skip_or_fail
from ..helpers.until import PATIENCE

PROJECT = Path(__file__).parent / "alloy"


@pytest.fixture(scope="module")
def program() -> Path:
    """Return the program; building it takes about two minutes."""
    words = [require_program("cargo"), "build", "--locked", "--quiet"]
    words += ["--target-dir", str(PROJECT / "target")]
    built = subprocess.run(words, cwd=PROJECT, capture_output=True, text=True)
    if built.returncode != 0:
        skip_or_fail(f"alloy's program could not be built: {built.stderr[-2000:]}")
    return PROJECT / "target" / "debug" / "noderpc-alloy"


def test_alloy_understands_every_answer(program: Path, evm_base: str) -> None:
    urls = [f"{evm_base}/evm", f"{evm_base.replace('http', 'ws')}/evm/ws"]
    ended = subprocess.run(
        [str(program), *urls], capture_output=True, text=True, timeout=4 * PATIENCE
    )
    lines = ended.stdout.splitlines()
    assert [line for line in lines if not line.endswith(" ok")] == []
    # This line is missing if the program ended early.
    assert (lines[-1:], ended.returncode) == (["end ok"], 0), ended.stderr
    assert len(lines) > 150
