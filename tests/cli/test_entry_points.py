"""The commands as they are installed: ``flask noderpc`` and ``noderpc``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from flask_noderpc import SQLiteBackend
from flask_noderpc.cli import main
from flask_noderpc.testing import make_chain

ROOT = Path(__file__).parents[2]


def run(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """A command of this interpreter's environment, run in the folder of the sources."""
    program, *rest = words
    path = Path(sys.executable).with_name(program)
    return subprocess.run(
        [path, *rest],
        cwd=ROOT,
        env={"PATH": str(path.parent), **env},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_flask_finds_the_commands_and_starts_nothing(tmp_path: Path) -> None:
    database = tmp_path / "data" / "chain.db"

    found = run(
        "flask",
        "--app",
        "example_app",
        "noderpc",
        "routes",
        FLASK_NODERPC_DATABASE=str(database),
    )

    assert found.returncode == 0, found.stderr
    assert found.stdout.startswith("noderpc: dialect document, POST /\n  /health ")
    assert not database.parent.exists()


def test_flask_shows_the_settings_of_the_environment(tmp_path: Path) -> None:
    found = run(
        "flask",
        "--app",
        "example_app",
        "noderpc",
        "config",
        FLASK_NODERPC_DATABASE=str(tmp_path / "c.db"),
        FLASK_NODERPC_CHAIN_ID="42",
    )

    assert "* NODERPC_CHAIN_ID = '42'" in found.stdout
    assert "* NODERPC_EMPTY_BLOCKS = True" in found.stdout


def test_a_bad_setting_is_told_by_its_key(tmp_path: Path) -> None:
    found = run(
        "flask",
        "--app",
        "example_app",
        "noderpc",
        "config",
        FLASK_NODERPC_DATABASE=str(tmp_path / "c.db"),
        FLASK_NODERPC_BLOCK_INTERVAL="soon",
    )

    assert found.returncode != 0
    assert "NODERPC_BLOCK_INTERVAL = 'soon'" in found.stderr


def test_noderpc_makes_a_home(tmp_path: Path) -> None:
    found = run("noderpc", "init", "--home", str(tmp_path / "home"), "--chain-id", "mine")

    assert (found.returncode, found.stdout) == (0, f"chain mine in {tmp_path / 'home'}\n")
    key = tmp_path / "home" / "config" / "priv_validator_key.json"
    assert key.stat().st_mode & 0o777 == 0o600


def test_a_home_without_a_chain_id_gets_one(tmp_path: Path) -> None:
    found = CliRunner().invoke(main, ["init", "--home", str(tmp_path)])

    assert found.exit_code == 0
    assert found.output.startswith("chain test-chain-")


def test_a_home_that_can_t_be_read_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "genesis.json").write_text("{}")

    found = CliRunner().invoke(main, ["init", "--home", str(tmp_path)])

    assert found.exit_code == 1
    assert found.output.startswith("Error: ")
    assert "Traceback" not in found.output


@pytest.fixture
def database(tmp_path: Path) -> Path:
    chain, path = make_chain(6), tmp_path / "chain.db"
    backend = SQLiteBackend(path)
    backend.init_chain(chain.genesis, chain.state)
    backend.append_block(*chain.blocks)
    backend.close()
    return path


def test_noderpc_verifies_a_store(database: Path) -> None:
    found = run("noderpc", "verify", str(database))

    assert found.returncode == 0, found.stderr
    assert "6 blocks verified" in found.stdout


@pytest.mark.parametrize(
    ("content", "text"),
    [(b"", "no chain here"), (b"no database" * 500, "the file is no SQLite database")],
)
def test_what_is_no_store_is_told_in_one_line(
    tmp_path: Path, content: bytes, text: str
) -> None:
    path = tmp_path / "other.db"
    path.write_bytes(content)

    found = CliRunner().invoke(main, ["verify", str(path)])

    assert found.exit_code == 1
    assert text in found.output
    assert "Traceback" not in found.output


def test_a_store_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    found = CliRunner().invoke(main, ["verify", str(tmp_path / "nosuch.db")])

    assert found.exit_code == 2
    assert list(tmp_path.iterdir()) == []
