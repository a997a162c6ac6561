"""Modules that an import loads, in a new interpreter."""

from __future__ import annotations

import subprocess
import sys

from .until import PATIENCE


def loaded(modules: str, among: set[str]) -> list[str]:
    """Return which modules of a set are loaded by importing others, whose names are
    comma-separated."""
    code = f"import sys, {modules}; print(*(sys.modules.keys() & {among!r}))"
    found = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        timeout=PATIENCE,
        capture_output=True,
        text=True,
    )
    return found.stdout.split()
