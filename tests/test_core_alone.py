"""Tests that the core works without the folders of features and the packages of all extras."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.until import PATIENCE

ROOT = Path(__file__).parents[1]
FEATURES = {each.parent.name for each in (ROOT / "flask_noderpc").glob("*/feature.py")}

# Folders that take some seconds each; .ci/long runs all.
SHORT = ("cli", "comet", "domain", "events", "interface", "jsonrpc", "flask/test_settings.py")
WHOLE = (*SHORT, "backends", "chain", "flask", "http", "websocket", "wire")


@pytest.fixture
def core(tmp_path: Path) -> Path:
    """Copy the package and its tests without the folders of features."""
    for name in ("flask_noderpc", "tests"):
        shutil.copytree(
            ROOT / name,
            tmp_path / name,
            ignore=lambda folder, names, top=ROOT / name: (
                {*names} & FEATURES if Path(folder) == top else {*names} & {"__pycache__"}
            ),
        )
    for name in ("docs", "example_app", "setup.cfg", "pyproject.toml", "README.md"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


@pytest.mark.integration
def test_the_core_s_tests_pass_without_the_features(core: Path) -> None:
    folders = WHOLE if os.environ.get("NODERPC_CAMPAIGN") == "long" else SHORT
    words = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "tests.helpers.core_alone"]
    words += ["-m", "not integration and not features", "-n", "2"]
    done = subprocess.run(
        [*words, *(f"tests/{each}" for each in folders)],
        cwd=core,
        env={
            **os.environ,
            "PYTHONPATH": str(core),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_ADDOPTS": "",
        },
        capture_output=True,
        text=True,
        timeout=60 * PATIENCE,
    )
    assert done.returncode == 0, done.stdout[-5_000:] + done.stderr
    assert " passed" in done.stdout
