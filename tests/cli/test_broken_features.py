"""Tests of features of other distributions in the commands: flags, and errors of one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.until import PATIENCE

ROOT = Path(__file__).parents[2]
MAIN = "from flask_noderpc.cli import main; main()"
HEAD = """
from dataclasses import dataclass
from flask_noderpc.feature import (
    Api, ApplicationKind, Feature, HitIndex, PageSet, Surface, UrlStore
)
from flask_noderpc.settings import setting
from flask_noderpc.settings.kinds import ADDRESSES, COUNT, SWITCH

KIND = ApplicationKind(make="acme:make")
INDEX = HitIndex(event_types=frozenset({"app"}), hits="acme:hits")
PAGES = PageSet(blueprint="acme:missing", path="/acme/", help="Serve /acme.")

@dataclass(frozen=True)
class Taken:
    max_batch: int = setting("acme", 1, COUNT, "Taken by the core.")

@dataclass(frozen=True)
class Unseen:
    acme_size: int = setting("unseen", 1, COUNT, "In a group that help does not show.")

@dataclass(frozen=True)
class Served:
    acme: bool = setting("acme", False, SWITCH, "True to serve it.")
    acme_address: str = setting("acme", "tcp://127.0.0.1:0", ADDRESSES, "Where it is served.")
    acme_size: int = setting("acme", 1, COUNT, "Its size.")

SURFACE = Surface(
    name="acme", title="Acme", address="acme_address", endpoint="acme"
)
API = Api(setting="acme", layer="acme:layer", surfaces=(SURFACE,))
WITHOUT = Api(setting="acme", layer="acme:missing")

def layer(mounted):
    from flask_noderpc.web.layers import Layer
    return Layer()

@dataclass(frozen=True)
class Plain:
    acme_size: int
"""


def asked(
    folder: Path, feature: str, *words: str, command: tuple[str, ...] = ("-c", MAIN)
) -> subprocess.CompletedProcess[str]:
    """Run a command, by default ``noderpc``, while a distribution brings a feature."""
    info = folder / "acme-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[flask_noderpc.features]\nacme = acme:FEATURE\n")
    (folder / "acme.py").write_text(f"{HEAD}\nFEATURE = {feature}\n")
    return subprocess.run(
        [sys.executable, *command, *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(folder), str(ROOT)))},
    )


@pytest.mark.parametrize(
    ("feature", "error"),
    [
        ("1 / 0", "the feature 'acme' of the distribution acme can't be loaded: ZeroDivision"),
        ("Feature(name='acme', settings=Taken)", "the setting max_batch is declared by Taken"),
        ("Feature(name='acme', settings=Unseen)", "got 'unseen'; a feature's own group"),
        ("Feature(name='acme', page_sets={'home': PAGES})", "the flag --home of noderpc start"),
        (
            "Feature(name='acme', settings=Plain)",
            "whose fields are made by flask_noderpc.settings.",
        ),
        (
            "Feature(name='acme', settings=int)",
            "settings of the feature 'acme': expected a dataclass",
        ),
        (
            "Feature(name='acme', applications={'kvstore': KIND})",
            "the application 'kvstore' is declared by the core and by the feature 'acme': give",
        ),
        ("Feature(name='acme', hit_indexes={'tx': INDEX})", "the index 'tx' is declared by"),
        (
            "Feature(name='acme', hit_indexes={'a-b': INDEX})",
            "with a letter, got 'a-b'; rename it",
        ),
    ],
)
def test_a_broken_feature_is_reported_in_one_line(
    tmp_path: Path, feature: str, error: str
) -> None:
    done = asked(tmp_path, feature, "start", "--help")

    assert done.returncode == os.EX_CONFIG
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("Error: ")
    assert error in line


def test_broken_commands_of_a_feature_are_reported_by_all_commands_but_start(
    tmp_path: Path,
) -> None:
    feature = "Feature(name='acme', commands=('acme.missing',))"

    done = asked(tmp_path, feature, "--help")

    assert (done.returncode, done.stdout) == (os.EX_CONFIG, "")
    assert done.stderr.startswith("Error: the commands acme.missing of the feature 'acme'")


@pytest.mark.features
@pytest.mark.parametrize(
    ("feature", "error"),
    [
        ("Feature(name='ethereum')", "the feature 'ethereum' is declared by"),
        ("Feature(name='acme', applications={'bank': KIND})", "the application 'bank' is decl"),
        ("Feature(name='acme', hit_indexes={'evm': INDEX})", "the index 'evm' is declared by"),
        ("Feature(name='acme', page_sets={'explorer': PAGES})", "the page set 'explorer' is d"),
        (
            "Feature(name='acme', stores={'postgresql': UrlStore(location='', open='',"
            " identity='')})",
            "the store 'postgresql' is declared by the feature 'postgres' and by the feature",
        ),
    ],
)
def test_a_name_that_a_feature_of_the_package_has_is_refused(
    tmp_path: Path, feature: str, error: str
) -> None:
    assert error in asked(tmp_path, feature, "--help").stderr


@pytest.mark.parametrize(
    ("blueprint", "error"),
    [
        ("acme:missing", "acme has no 'missing'"),
        ("acme_pages:pages", "--acme: No module named 'acme_pages'"),
    ],
)
def test_pages_that_are_not_there_are_reported_in_one_line(
    tmp_path: Path, blueprint: str, error: str
) -> None:
    pages = f"PageSet(blueprint={blueprint!r}, path='/acme/', help='Serve /acme.')"
    words = ("start", "--acme", "--home", str(tmp_path / "home"))
    address = ("--rpc.laddr", "tcp://127.0.0.1:0")

    done = asked(
        tmp_path, f"Feature(name='acme', page_sets={{'acme': {pages}}})", *words, *address
    )

    assert done.returncode == os.EX_CONFIG
    assert error in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("flag", "error"),
    [
        ("--acme-address", "Error: --acme-address: expected tcp://"),
        (
            "--acme-size",
            "Error: --acme-size can't be given here, as it is a setting of the app",
        ),
    ],
)
def test_addresses_of_a_feature_can_be_changed_where_an_app_is_started(
    tmp_path: Path, flag: str, error: str
) -> None:
    (tmp_path / "host.py").write_text(
        "from flask import Flask\n"
        "from flask_noderpc import NodeRPC\n"
        "app = Flask(__name__)\n"
        "NodeRPC(app, acme=True, rpc_laddr='tcp://127.0.0.1:0')\n"
    )
    feature = "Feature(name='acme', title='Acme', settings=Served, apis=(API,))"
    command = ("-m", "flask", "--app", "host", "noderpc", "start")

    done = asked(tmp_path, feature, flag, "wrong", command=command)

    assert (done.returncode, done.stderr.startswith(error)) == (2, True), done.stderr


def test_an_api_that_is_not_there_is_reported_in_one_line(tmp_path: Path) -> None:
    feature = "Feature(name='acme', title='Acme', settings=Served, apis=(WITHOUT,))"
    address = ("--rpc.laddr", "tcp://127.0.0.1:0")

    done = asked(
        tmp_path, feature, "start", "--acme", "--home", str(tmp_path / "home"), *address
    )

    assert done.returncode == os.EX_CONFIG
    assert "acme has no 'missing'" in done.stderr
    assert "Traceback" not in done.stderr
