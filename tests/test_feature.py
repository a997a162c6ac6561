"""Features are found by their folders, and loaded when they are used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
import pytest

import flask_noderpc
from flask_noderpc import DIALECTS, COMETBFT_ROUTES, NodeRPC
import flask_noderpc.testing.plugin
print(*(name for name in sys.modules if name.endswith(".feature") and name.count(".") > 1))
"""


def test_no_feature_is_loaded_before_it_is_used() -> None:
    words = [sys.executable, "-c", _LOADED]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.stdout.strip(), done.stderr) == ("", "")


def installed(folder: Path, value: str) -> list[str]:
    """Return what features() answers in a process that finds a distribution in a folder."""
    info = folder / "acme_feature-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-feature\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[flask_noderpc.features]\nacme = {value}\n")
    (folder / "acme.py").write_text(
        "from flask_noderpc.feature import Feature\nFEATURE = Feature(name='acme')\nOTHER = 1\n"
    )
    code = "from flask_noderpc.feature import features; print(*(f.name for f in features()))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(folder), str(PACKAGE.parent)))},
    )
    return (done.stdout or done.stderr).strip().splitlines()[-1:]


def test_another_distribution_brings_a_feature(tmp_path: Path) -> None:
    (names,) = installed(tmp_path, "acme:FEATURE")
    assert names.split() == [*(each.name for each in features()), "acme"]


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("acme:MISSING", "can't be loaded: AttributeError"),
        ("acme:OTHER", "is 1: acme:OTHER has to be a Feature of flask_noderpc.feature"),
    ],
)
def test_a_feature_that_is_none_is_refused_with_its_distribution(
    tmp_path: Path, value: str, error: str
) -> None:
    (line,) = installed(tmp_path, value)
    assert "the feature 'acme' of the distribution acme-feature" in line
    assert error in line
