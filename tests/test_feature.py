"""Features are found by their folders, and loaded when they are used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import flask_noderpc
from flask_noderpc.feature import features
from tests.helpers.until import PATIENCE

PACKAGE = Path(flask_noderpc.__file__).parent


def test_each_folder_with_a_declaration_is_a_feature() -> None:
    folders = sorted(each.parent.name for each in PACKAGE.glob("*/feature.py"))
    assert [each.name for each in features()] == folders
    assert "ethereum" in folders


_LOADED = """
import sys
import flask_noderpc
from flask_noderpc import DIALECTS, COMETBFT_ROUTES, NodeRPC
import flask_noderpc.testing.plugin
print(*(name for name in sys.modules if name.endswith(".feature") and name.count(".") > 1))
"""


def test_no_feature_is_loaded_before_it_is_used() -> None:
    words = [sys.executable, "-c", _LOADED]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.stdout.strip(), done.stderr) == ("", "")
