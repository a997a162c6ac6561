"""Tests of the feature of docs/extending.rst, installed as its users install theirs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.until import PATIENCE

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "docs" / "examples" / "words"

MAIN = "from flask_noderpc.cli import main; main()"
OWN_TESTS = """
import json
from urllib.request import urlopen


def get(url):
    return urlopen(url, timeout=60).read().decode()


def test_the_fixture_serves_the_application_with_its_setting(words_url):
    taken, refused = (
        json.loads(get(f'{words_url}/broadcast_tx_sync?tx="{word}"'))["result"]
        for word in ("a=b", "longer=b")
    )
    assert int(taken["code"]) == 0
    assert int(refused["code"]) == 1
    assert refused["log"] == "a word has at most 5 bytes"


def test_the_route_and_the_page_are_served(words_url):
    assert json.loads(get(f"{words_url}/longest_word"))["result"] == {"bytes": 5}
    assert "blocks of words" in get(f"{words_url}/words/")
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the environment of processes that find the installed feature."""
    folder = tmp_path_factory.mktemp("words")
    # Build a copy, as a build leaves files in its source folder.
    shutil.copytree(EXAMPLE, folder / "source")
    words = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    options = ["--no-build-isolation", "--target", str(folder / "installed")]
    run([*words, *options, str(folder / "source")], dict(os.environ))
    path = os.pathsep.join((str(folder / "installed"), str(ROOT)))
    # Options of this run, for instance of coverage, must not apply.
    return {**os.environ, "PYTHONPATH": path, "PYTEST_ADDOPTS": ""}


def run(words: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(
        words, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_its_tests_use_its_fixture(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "test_words.py").write_text(OWN_TESTS)
    shown = run([sys.executable, "-m", "pytest", "-q", str(tmp_path)], environment)
    assert "2 passed" in shown


def test_the_commands_know_it(environment: dict[str, str]) -> None:
    shown = run([sys.executable, "-c", MAIN, "start", "--help"], environment)
    assert re.search(r"A chain of words:\s+--words-longest INTEGER", shown)
    assert re.search(r"--words\s+Serve /words", shown)
    assert re.search(r"--application \[[a-z|]*\bwords\b", shown)


def test_it_has_at_most_sixty_lines() -> None:
    lines = [
        line
        for path in EXAMPLE.rglob("*.py")
        for line in path.read_text().splitlines()
        if line.strip() and not line.strip().startswith(('"""', "#"))
    ]
    assert len(lines) <= 60
