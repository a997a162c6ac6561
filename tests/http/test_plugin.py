"""Tests of the test kit: fixtures of the pytest plugin, and light imports."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from flask_noderpc import EmbeddedChain
from flask_noderpc.testing import Node, plugin, run_node

from ..helpers.http import call, get
from ..helpers.imports import loaded
from ..helpers.until import PATIENCE

# Examples of the README.
ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
README_TESTS = [block for block in BLOCKS if "def test_" in block]

ANOTHER_TEST = """
def test_each_test_gets_a_new_chain(noderpc_chain):
    assert noderpc_chain.reads.latest_height() == 0
"""


@pytest.mark.features
def test_an_installed_package_gives_pytest_its_fixtures(tmp_path: Path) -> None:
    for number, text in enumerate([*README_TESTS, ANOTHER_TEST]):
        (tmp_path / f"test_{number}.py").write_text(text)

    assert "3 passed" in output_in(tmp_path)


def output_in(folder: Path) -> str:
    """Return pytest's output for the tests in a folder, which must all pass."""
    found = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider"],
        cwd=folder,
        # Options of this run, for instance of coverage, must not apply to the run under test.
        env={name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"},
        capture_output=True,
        text=True,
        timeout=4 * PATIENCE,
    )

    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


DIALECTS = """
import json
import urllib.request

import pytest


def answered(url):
    return json.load(urllib.request.urlopen(url + "/status"))


@pytest.fixture
def noderpc_settings():
    return {"dialect": "comet-0.38"}


def test_of_the_module(noderpc_url):
    answer = answered(noderpc_url)
    assert answer["result"]["node_info"]["version"].startswith("0.38.")
    assert "error" not in answer


@pytest.mark.parametrize("noderpc_settings", [{"dialect": "comet-0.34"}])
def test_of_one_test(noderpc_url):
    info = answered(noderpc_url)["result"]["node_info"]
    assert info["version"].startswith("0.34.")
"""


def test_the_fixtures_take_a_dialect(tmp_path: Path) -> None:
    (tmp_path / "test_dialects.py").write_text(DIALECTS)

    assert "2 passed" in output_in(tmp_path)


@pytest.mark.parametrize("module", ["flask_noderpc", "flask_noderpc.testing"])
def test_an_import_loads_neither_gevent_nor_a_test_runner(module: str) -> None:
    assert loaded(module, {"gevent", "_pytest"}) == []


def test_the_blueprint_loads_what_a_mount_needs_when_it_is_registered() -> None:
    unwanted = {
        *("marshmallow", "cryptography", "wsproto", "msgspec", "sqlite3", "asyncio"),
        *("urllib3", "flask_noderpc.mount", "flask_noderpc.wire", "flask_noderpc.chain"),
    }

    assert loaded("flask_noderpc.extension", unwanted) == []


@pytest.mark.features
def test_the_plugins_load_no_more_than_pytest_does() -> None:
    modules = (plugin.__name__, *plugin.pytest_plugins)
    assert "flask_noderpc.ethereum.pytest_plugin" in modules

    unwanted = {"gevent", "flask", "flask_noderpc.settings", "flask_noderpc.feature"}
    assert loaded(", ".join(modules), unwanted) == []


def test_the_fixtures_are_one_node(
    noderpc_node: Node, noderpc_chain: EmbeddedChain, noderpc_url: str
) -> None:
    assert noderpc_chain is noderpc_node.chain
    assert noderpc_url == noderpc_node.url


def test_fixture_blocks_are_manual_and_the_clock_stands_still(noderpc_node: Node) -> None:
    heights = [noderpc_node.produce(2.5), noderpc_node.produce(1)]

    first, second = (
        get(noderpc_node.url, f"/header?height={height}").json["result"]["header"]["time"]
        for height in heights
    )

    assert heights == [1, 2]
    # The first block has the time of the genesis, and the next block the time of the votes for
    # the first.
    assert (first, second) == ("2023-11-14T22:13:20Z", "2023-11-14T22:13:22.5Z")


def test_run_node_takes_settings_and_a_folder(tmp_path: Path) -> None:
    with run_node(tmp_path, max_batch=1) as node:
        node.chain.mempool.submit(b"kept=1")
        node.produce()

    with run_node(tmp_path) as again:
        answer = call(again.url, "abci_query", {"data": "kept"}).json

    assert bytes.fromhex(answer["result"]["response"]["value"]) == b"1"
