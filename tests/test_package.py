"""Tests of the distributions of this repository, and of the Python versions that they
support."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

import flask_noderpc

ROOT = Path(__file__).parents[1]
FOLDERS = (
    ".ci",
    ".github",
    "benchmarks",
    "deploy",
    "docs",
    "example_app",
    "flask_noderpc",
    "tests",
)
FILES = (
    "CHANGES.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "README.md",
    "SECURITY.md",
    "setup.cfg",
    "tox.ini",
)
# Files that are made here, or by npm and pip.
_OTHERS = shutil.ignore_patterns(
    "node_modules", "target", ".venv", "__pycache__", "_build", "*.db", "*.db-*"
)


def run(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run this interpreter in a folder, with the sources there."""
    # Options of this run's pytest must not apply.
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "COV_"))}
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True
    )


def files_in(folder: Path) -> set[str]:
    return {
        str(path.relative_to(folder))
        for name in FOLDERS
        for path in (folder / name).rglob("*")
        if path.is_file()
    }


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the repository's files."""
    folder = tmp_path_factory.mktemp("source")
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name, ignore=_OTHERS)
    for name in (*FILES, "MANIFEST.in", "pyproject.toml", "setup.py"):
        shutil.copy(ROOT / name, folder)
    return folder


def built(kind: str, folder: Path) -> Path:
    """Return a distribution, ``sdist`` or ``wheel``, of the source in a folder."""
    before = set((folder / "dist").glob("*"))
    build = f"from setuptools import build_meta; build_meta.build_{kind}('dist')"
    done = run("-c", build, folder=folder)
    assert done.returncode == 0, done.stderr
    (archive,) = set((folder / "dist").glob("*")) - before
    return archive


@pytest.fixture(scope="module")
def unpacked(source: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, set[str]]:
    """Return the contents of a source distribution, and the files it was made of."""
    before, target = files_in(source), tmp_path_factory.mktemp("target")
    with tarfile.open(built("sdist", source)) as found:
        found.extractall(target, filter="data")
    (folder,) = target.iterdir()
    return folder, before


def test_the_source_distribution_has_all_that_is_here(unpacked: tuple[Path, set[str]]) -> None:
    folder, source = unpacked
    assert source - files_in(folder) == set()
    assert [name for name in FILES if not (folder / name).is_file()] == []


def test_the_wheel_has_the_whole_package_and_nothing_else(source: Path) -> None:
    before = {name for name in files_in(source) if name.startswith("flask_noderpc/")}
    with zipfile.ZipFile(built("wheel", source)) as found:
        names = set(found.namelist())
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        said = message_from_bytes(found.read(metadata))
    assert {name for name in names if ".dist-info/" not in name} == before
    for name in (
        "py.typed",
        "web/templates/noderpc/index.html",
        "explorer/templates/noderpc_explorer/base.html",
        "explorer/static/explorer.css",
    ):
        assert f"flask_noderpc/{name}" in names
    assert said["Version"] == flask_noderpc.__version__
    labels = {each.split(", ")[0] for each in said.get_all("Project-URL", [])}
    assert {"Documentation", "Changes", "Source", "Issues", "Security"} <= labels
    assert "cometbft" in said["Keywords"].split(",")


@pytest.mark.integration
def test_the_tests_of_the_source_distribution_run(unpacked: tuple[Path, set[str]]) -> None:
    folder, _ = unpacked
    found = run(
        "-m",
        "pytest",
        "-q",
        "tests/test_docs.py",
        "tests/example_app/test_example_app.py",
        folder=folder,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    where = run("-c", "import flask_noderpc as m; print(m.__file__)", folder=folder)
    assert where.stdout.strip() == str(folder / "flask_noderpc" / "__init__.py")


def test_a_too_old_python_is_refused_before_installing() -> None:
    as_if_older = (
        "import runpy, sys; sys.version_info = (3, 10, 13);"
        " runpy.run_path('setup.py', run_name='__main__')"
    )
    found = run("-c", as_if_older, folder=ROOT)
    assert found.returncode == 1
    assert found.stderr == "flask-noderpc needs Python 3.11 or later; this is Python 3.10\n"


def test_the_package_has_a_version() -> None:
    declared = (ROOT / "setup.cfg").read_text()
    assert f"\nversion = {flask_noderpc.__version__}\n" in declared
