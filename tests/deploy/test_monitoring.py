"""Tests of the configuration of Prometheus, and of its alerts, by Prometheus's own tool."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ..helpers.require import require_program
from ..helpers.until import PATIENCE
from .fixtures import FILES


@pytest.mark.parametrize(
    "words",
    [
        ("check", "config", str(FILES / "prometheus" / "prometheus.yml")),
        ("test", "rules", str(Path(__file__).with_name("alerts_test.yml"))),
    ],
)
def test_prometheus_takes_the_files_and_raises_the_alerts(words: tuple[str, ...]) -> None:
    done = subprocess.run(
        [require_program("promtool"), *words], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SUCCESS" in done.stdout
