"""Tests that features are found by their folders, and loaded when they are used."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from flask import Blueprint, Flask

import flask_noderpc
from flask_noderpc import NodeRPC
from flask_noderpc.chain.applications.kvstore import KVStore
from flask_noderpc.chain.source import DevAccounts, accounts_log
from flask_noderpc.cli import cli, main
from flask_noderpc.cometbft import info, routes
from flask_noderpc.domain.abci import QueryResult
from flask_noderpc.domain.genesis import Genesis
from flask_noderpc.errors import InvalidSetting
from flask_noderpc.extension import mounts
from flask_noderpc.feature import ApplicationKind, Feature, PageSet, application_kinds, features
from flask_noderpc.jsonrpc.context import Context
from flask_noderpc.jsonrpc.params import Params, param
from flask_noderpc.jsonrpc.route import Route
from flask_noderpc.lru import CacheMemory
from flask_noderpc.server import banner
from flask_noderpc.server.addresses import NODE, Address
from flask_noderpc.server.app import node_app
from flask_noderpc.server.flags import defaults_of
from flask_noderpc.settings import Settings, read_settings
from flask_noderpc.wire.params import Text
from tests.helpers.banner import rows
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


_OF_OTHERS = """
import sys
from importlib import import_module

import_module("flask_noderpc.{module}")
own, features = "{module}".split(".")[0], {features!r}
parts = (name.split(".") for name in sys.modules if name.startswith("flask_noderpc."))
wrong = (p for p in parts if p[2:] and (p[-1] == "feature" or p[1] in features - {{own}}))
print(*map(".".join, wrong))
"""


@pytest.mark.parametrize("module", ["ethereum.application.executor", "companion.decoding"])
def test_an_executor_process_loads_no_other_feature(module: str) -> None:
    names = {each.parent.name for each in PACKAGE.glob("*/feature.py")}
    words = [sys.executable, "-c", _OF_OTHERS.format(module=module, features=names)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.stdout.strip(), done.stderr) == ("", "")


def installed(folder: Path, value: str) -> list[str]:
    """Return the result of features() in a process that finds a distribution in a folder."""
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
        ("acme:OTHER", "expected a Feature of flask_noderpc.feature at acme:OTHER, got 1"),
    ],
)
def test_a_feature_that_is_none_is_refused_with_its_distribution(
    tmp_path: Path, value: str, error: str
) -> None:
    (line,) = installed(tmp_path, value)
    assert "the feature 'acme' of the distribution acme-feature" in line
    assert error in line


class Mine(KVStore):
    name = "mine"


class MyAccounts(DevAccounts):
    def app_state(self, settings: Settings) -> bytes:
        return json.dumps({"rich": settings.moniker}).encode()

    def log(self, settings: Settings, genesis: Genesis) -> None:
        accounts_log.warning("begun with %s", json.loads(genesis.app_state))

    def banner(self, settings: Settings, home: Path, curl: str) -> Iterator[tuple[str, str]]:
        yield "riches", curl


def mine(settings: Settings, path: str, memory: CacheMemory) -> type[Mine]:
    return Mine


@pytest.fixture
def with_mine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    kind = ApplicationKind(
        make=f"{__name__}:mine",
        dev_accounts=f"{__name__}:MyAccounts",
        genesis_members=frozenset({"rich"}),
        defaults={"dialect": "comet-1.0"},
        dev_defaults={"moniker": "dev"},
    )
    found = (*features(), Feature(name="mine", applications={"mine": kind}))
    monkeypatch.setattr("flask_noderpc.feature.features", lambda: found)
    application_kinds.cache_clear()
    yield
    application_kinds.cache_clear()


@pytest.mark.usefixtures("with_mine")
def test_a_feature_brings_an_application_with_its_accounts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = Flask(__name__, instance_path=str(tmp_path))
    NodeRPC(app, application="mine", dev=True, moniker="me")

    genesis = app.test_client().get("/genesis").get_json()["result"]["genesis"]
    mounts(app)["noderpc"].backend.close()

    assert genesis["app_state"] == {"rich": "me"}
    assert "begun with {'rich': 'me'}" in caplog.text


@pytest.mark.usefixtures("with_mine")
def test_the_banner_shows_the_accounts_of_a_feature(tmp_path: Path) -> None:
    settings = Settings(application="mine", dev=True)
    kind = application_kinds()["mine"]
    with closing(socket.create_server(("127.0.0.1", 0))) as sock:
        place = banner.ServedAddress(NODE, Address("127.0.0.1", 0), "", "")
        bound = [(place, sock)]
        shown = banner.Banner(settings, bound, "", banner.Pages(), home=tmp_path, kind=kind)
        port = sock.getsockname()[1]

        assert rows(click.unstyle(shown.text()))["riches"] == [f"curl http://localhost:{port}/"]


@pytest.mark.usefixtures("with_mine")
def test_the_commands_know_the_application_of_a_feature(tmp_path: Path) -> None:
    assert defaults_of("mine", dev=True).items() >= {
        ("application", "mine"),
        ("dialect", "comet-1.0"),
        ("moniker", "dev"),
    }
    with pytest.raises(InvalidSetting, match=r"expected one of kvstore, merkle, .*mine$"):
        read_settings({}, {"application": "yours"})
    document = tmp_path / "genesis.json"
    document.write_text(json.dumps({"chain_id": "c", "app_state": {"rich": "me"}}))
    shown = CliRunner().invoke(main, ["genesis", "check", str(document)])
    assert "application       mine" in shown.output


@dataclass(frozen=True, slots=True)
class Name(Params):
    name: str = param(Text(), doc="A name.")


def greet(ctx: Context, params: Name) -> str:
    """Greet somebody."""
    return f"hello {params.name}"


ROUTES = (Route("greet", greet, Name, str),)
DEV_ROUTES = (Route("dev_greet", greet, Name, str),)


def answer(ctx: Context, path: str, data: bytes, height: int) -> QueryResult | None:
    return QueryResult(log=f"{path} {height}") if path == "/mine" else None


@pytest.fixture
def with_routes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    own = Feature(
        name="mine",
        routes=f"{__name__}:ROUTES",
        dev_routes=f"{__name__}:DEV_ROUTES",
        abci_query=f"{__name__}:answer",
    )
    caches = (routes.dev_routes, info.feature_answers)
    found = (*features(), own)
    for module in (routes, info):
        monkeypatch.setattr(module, "features", lambda: found)
    for each in caches:
        each.cache_clear()
    yield
    for each in caches:
        each.cache_clear()


@pytest.mark.usefixtures("with_routes")
def test_a_feature_brings_routes_and_answers_to_queries(tmp_path: Path) -> None:
    app = Flask(__name__, instance_path=str(tmp_path))
    NodeRPC(app, application="bank", dev=True)
    (tmp_path / "other").mkdir()
    NodeRPC(
        app, name="other", url_prefix="/other", database=str(tmp_path / "other" / "chain.db")
    )
    client = app.test_client()

    def result(path: str) -> Any:
        return client.get(path).get_json()["result"]

    def error(method: str) -> str:
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"name": "you"}}
        return str(client.post("/other/", json=call).get_json()["error"])

    assert result("/greet?name=you") == result("/dev_greet?name=you") == "hello you"
    assert result("/other/greet?name=you") == "hello you"
    assert "NODERPC_DEV enables it" in error("dev_greet")
    assert "/greet" in client.get("/openapi.json").get_json()["paths"]
    shown = app.test_cli_runner().invoke(cli, ["routes"]).output
    assert "/dev_greet" in shown
    assert "Greet somebody." in shown
    assert result("/abci_query?path=/mine&height=3")["response"]["log"] == "/mine 3"
    for mount in mounts(app).values():
        mount.backend.close()


my_pages = Blueprint("my_pages", __name__)


@my_pages.get("/")
def overview() -> str:
    return "a page"


@pytest.fixture
def with_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = PageSet(blueprint=f"{__name__}:my_pages", path="/mine/", help="Serve my pages.")
    found = (Feature(name="mine", page_sets={"mine": pages}),)
    monkeypatch.setattr("flask_noderpc.feature.features", lambda: found)


@pytest.mark.usefixtures("with_pages")
@pytest.mark.parametrize(("chosen", "status"), [(["mine"], 200), ([], 404)])
def test_a_feature_brings_pages_if_they_are_chosen(
    tmp_path: Path, chosen: list[str], status: int
) -> None:
    settings = {"database": str(tmp_path / "chain.db")}
    app = node_app(tmp_path, settings, pages=chosen)

    assert banner.pages_of(Settings(), chosen).of_features == dict.fromkeys(chosen, ("/mine/",))
    assert app.test_client().get("/mine/").status_code == status
    mounts(app)["noderpc"].backend.close()


_COMMANDS = """
import sys
import flask_noderpc.feature as feature
feature.features = lambda: (feature.Feature(name="mine", commands=("my_commands",)),)
from flask_noderpc.cli import cli, main
print(*sorted(main.commands), "|", *sorted(cli.commands))
"""
_MINE = """
from flask_noderpc.cli.app import cli
from flask_noderpc.cli.node import main

@main.command("shout")
def shout() -> None:
    "Shout."

@cli.command("whisper")
def whisper() -> None:
    "Whisper."
"""


def test_commands_are_those_of_the_core_and_of_the_features_that_are_there(
    tmp_path: Path,
) -> None:
    (tmp_path / "my_commands.py").write_text(_MINE)
    done = subprocess.run(
        [sys.executable, "-c", _COMMANDS],
        env={"PYTHONPATH": f"{tmp_path}:{PACKAGE.parent}"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.stderr == ""
    of_node, _, of_app = done.stdout.partition("|")
    assert {"shout", "start"} <= set(of_node.split())
    assert {"whisper", "start"} <= set(of_app.split())
    assert not {"conform", "follow", "import"} & {*of_node.split(), *of_app.split()}
