"""Tests that files and folders of a node belong to its owner only."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.until import PATIENCE

from .node_process import COMMAND, started


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    before = os.umask(0o000)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    """Return the modes of a folder and everything in it, without the test's log."""
    found = {"": folder, **{str(p.relative_to(folder)): p for p in folder.rglob("*")}}
    return {name: path.stat().st_mode & 0o777 for name, path in found.items()}


WANTED = {
    "": 0o700,
    "config": 0o700,
    "config/genesis.json": 0o644,
    "config/node_key.json": 0o600,
    "config/priv_validator_key.json": 0o600,
    "data": 0o700,
    "data/noderpc.db": 0o600,
    "data/priv_validator_state.json": 0o600,
}
BESIDE = {"data/noderpc.db-wal": 0o600, "data/noderpc.db-shm": 0o600}


def test_a_new_home_is_its_owners_alone(tmp_path: Path) -> None:
    home, copy = tmp_path / "home", tmp_path / "copy.db"
    with started(tmp_path, "--home", str(home)) as node:
        node.until_up()
        assert modes(home) == {**WANTED, **BESIDE}
        backup = [*COMMAND[:-1], "backup", "--home", str(home), str(copy)]
        subprocess.run(backup, check=True, capture_output=True, timeout=PATIENCE)
    assert copy.stat().st_mode & 0o777 == 0o600


def test_an_existing_home_retains_its_file_modes(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "data").mkdir(parents=True, mode=0o750)
    home.chmod(0o750)
    (home / "data").chmod(0o750)
    with started(tmp_path, "--home", str(home)) as node:
        node.until_up()
        found = modes(home)
    assert (found[""], found["data"], found["data/noderpc.db"]) == (0o750, 0o750, 0o600)


def test_init_makes_a_home_that_is_its_owners_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    made = [*COMMAND[:-1], "init", "--home", str(home)]
    subprocess.run(made, check=True, capture_output=True, timeout=PATIENCE)
    assert modes(home) == {name: mode for name, mode in WANTED.items() if "noderpc" not in name}
