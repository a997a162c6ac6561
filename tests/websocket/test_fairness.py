"""Tests that a flooding connection gets only a share of each iteration of gevent's loop."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.helpers.until import PATIENCE

ROOT = Path(__file__).parents[2]
# Each flooding connection has one message in each iteration of the loop, and a response takes a
# few.
MOST_BETWEEN_ANSWERS = 60


def test_a_flooding_peer_does_not_starve_others() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "tests.websocket.fairness"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    assert int(ended.stdout) < MOST_BETWEEN_ANSWERS
