"""Tests of the pages of docs/: their tables come from the code, and the files that they name
exist."""

from __future__ import annotations

import csv
import re
import runpy
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from docutils import nodes
from docutils.core import publish_doctree
from docutils.parsers.rst import directives

from flask_noderpc import COMETBFT_ROUTES, installation
from flask_noderpc.cometbft.routes import UNSAFE_ROUTES
from flask_noderpc.ethereum.rpc.dev.routes import DEV_ROUTES
from flask_noderpc.ethereum.rpc.routes import EVM_ROUTES
from flask_noderpc.settings import all_settings
from tests.helpers.tutorial import INSTALL_PACKAGE
from tests.helpers.until import PATIENCE

README = Path(__file__).parents[1] / "README.md"
DOCS = README.parent / "docs"


class Registry:
    """Stands in for Sphinx's application object."""

    add_directive = staticmethod(directives.register_directive)


@pytest.fixture
def tables() -> dict[str, Any]:
    """Return the names of the module that makes the tables, which tests may replace."""
    made = runpy.run_path(str(DOCS / "tables.py"))
    made["setup"](Registry())
    return made


def named(page: str) -> list[str]:
    """Return the names that a page describes by its tables alone, without the text around
    them."""
    tables = re.findall(r"^\.\. noderpc-[\w-]+::.*$", (DOCS / page).read_text(), re.MULTILINE)
    assert tables, f"{page} has no table"
    tree = publish_doctree("\n\n".join(tables), settings_overrides={"halt_level": 2})
    return [term.astext() for term in tree.findall(nodes.term)]


def test_the_docs_name_each_file_that_they_include() -> None:
    # The code host shows these pages without the included files.
    for path in DOCS.rglob("*.rst"):
        named = path.read_text().split(".. literalinclude:: ")
        for before, after in pairwise(named):
            file = (path.parent / after.split()[0]).resolve().relative_to(DOCS.parent)
            is_caption = ":caption:" in after.split("\n\n")[0]
            assert is_caption or before.endswith(f"``{file}``:\n\n"), (path.name, file)


@pytest.mark.usefixtures("tables")
def test_every_route_stands_on_its_page() -> None:
    assert named("routes.rst") == [route.name for route in COMETBFT_ROUTES + UNSAFE_ROUTES]


@pytest.mark.usefixtures("tables")
def test_every_method_of_the_evm_layer_stands_on_its_page_once() -> None:
    assert sorted(named("ethereum/methods.rst")) == sorted(
        route.name for route in EVM_ROUTES + DEV_ROUTES
    )


@pytest.mark.usefixtures("tables")
def test_every_setting_stands_on_its_page() -> None:
    assert sorted(named("settings.rst")) == sorted(row.key for row in all_settings())
    assert len(all_settings()) <= 90


def test_a_row_that_is_added_is_on_the_page_at_once(tables: dict[str, Any]) -> None:
    # The directives read these names from their module.
    seen = tables["Settings"].lines.__globals__
    seen["COMETBFT_ROUTES"] = COMETBFT_ROUTES[:1]
    seen["settings_of"] = lambda group: all_settings()[:1] if group == "chain" else []

    assert named("routes.rst") == ["health", *(route.name for route in UNSAFE_ROUTES)]
    assert named("settings.rst") == [all_settings()[0].key]


def test_the_readme_shows_the_speeds_that_the_docs_show() -> None:
    with (DOCS / "benchmarks" / "nodes.csv").open(newline="") as file:
        found = {(row["Workload"], row["Way"]): row for row in csv.DictReader(file)}
    shown = re.findall(r"^\| `(.+)`, (\w+) \| (.+) \|$", README.read_text(), re.MULTILINE)
    assert shown

    for workload, way, ratios in shown:
        row = found[workload, way]
        assert ratios.split(" | ") == [
            row[f"/ {peer}"] for peer in ("pywsgi", "Flask view", "CometBFT")
        ]


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.rst")), ids=lambda page: page.stem)
def test_files_and_commands_that_a_page_names_exist(page: Path) -> None:
    root, text = DOCS.parent, page.read_text()
    paths = re.findall(r"``([\w./]+/[\w.]*\w/?)``", text)
    files = [path for path in paths if path.endswith(".py") or path.startswith("tests/")]
    files += re.findall(r"^   (\w[\w/]*/[\w.]+\.py) ", text, re.MULTILINE)
    modules = [
        name.replace(".", "/") for name in re.findall(r"python -m\s+(benchmarks[\w.]*\b)", text)
    ]

    missing = [
        file
        for file in files
        if not ((root / file).exists() or (root / "flask_noderpc" / file).exists())
    ]
    # Python runs the __main__.py of a package.
    missing += [
        module
        for module in modules
        if not any((root / run).exists() for run in (f"{module}.py", f"{module}/__main__.py"))
    ]
    assert missing == []


def test_the_page_of_the_architecture_has_the_figures_of_a_call() -> None:
    text = " ".join((DOCS / "architecture.rst").read_text().split())
    files, count, of_transaction = re.findall(
        r"a block enters (\d+) files and moves (\d+) times, the transaction (\d+) files", text
    )[0]
    # Count in a new process, as other tests have filled caches in this one.
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.moves"],
        cwd=DOCS.parent,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    found = re.findall(r": (\d+) files, (\d+) moves;", done.stdout)

    # Python 3.12 and later inline comprehensions, which are calls in earlier versions.
    assert abs(int(found[0][1]) - int(count)) <= 5, done.stderr
    assert found[0][0] == files
    # One more file is entered if the block is made before the call waits for it.
    assert abs(int(found[1][0]) - int(of_transaction)) <= 1


def test_pages_install_the_package_as_errors_say() -> None:
    where = installation.where()
    wrong = []
    for page in (README, *sorted(DOCS.rglob("*.rst"))):
        for found in INSTALL_PACKAGE.finditer(page.read_text()):
            command = installation.install_command(found[2] or "", found[1])
            if found[0].strip() != (f"{command}  # {where}" if where else command):
                wrong.append(f"{page.relative_to(README.parent)}: {found[0].strip()}")

    assert wrong == []


def test_no_other_text_installs_the_package_from_pypi() -> None:
    folders = ("flask_noderpc", "example_app", "docs", "deploy")
    files = [path for name in folders for path in README.parent.glob(f"{name}/**/*")]
    texts = {".py", ".rst", ".service", ".yaml", ""}
    install = re.compile(r"pip install[^\n]*flask-noderpc|flask-noderpc\[")

    for path in (README, *(path for path in files if path.is_file() and path.suffix in texts)):
        text = path.read_text()
        if path.suffix in {".md", ".rst"}:  # The test above compares these lines.
            text = INSTALL_PACKAGE.sub("", text)
        assert not install.search(text), path
