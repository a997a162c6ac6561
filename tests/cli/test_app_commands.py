"""Tests of ``flask noderpc …``, in the process of the app."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import Result
from flask import Flask

from flask_noderpc import COMETBFT_ROUTES, EmbeddedChain, MemoryChain, noderpc_bp
from flask_noderpc.backends.base.backend import ChainBackend
from flask_noderpc.cli import cli
from flask_noderpc.extension import mounts
from flask_noderpc.settings import all_settings
from flask_noderpc.testing import make_chain


def run(app: Flask, *words: str) -> Result:
    # Flask's own command loads the group by its entry point, which the next module tests.
    return app.test_cli_runner().invoke(cli, words)


def chain_of(app: Flask, name: str = "noderpc") -> EmbeddedChain:
    backend = mounts(app)[name].backend
    assert isinstance(backend, EmbeddedChain)
    return backend


def test_routes_lists_every_route_with_path_parameters_and_sentence(app: Flask) -> None:
    app.register_blueprint(noderpc_bp)

    found = run(app, "routes")

    first, *lines = found.output.splitlines()
    assert found.exit_code == 0
    assert first == "noderpc: dialect document, POST /"
    assert [line.split()[0] for line in lines] == [
        f"/{route.name}" for route in COMETBFT_ROUTES
    ]
    (blockchain,) = (line for line in lines if "/blockchain" in line)
    assert "minHeight, maxHeight" in blockchain
    assert blockchain.endswith("Headers and sizes of at most 20 blocks, highest first.")


def test_routes_lists_every_mount_and_the_paths_of_the_host(app: Flask) -> None:
    app.register_blueprint(noderpc_bp, exclude_routes=["status"])
    app.register_blueprint(noderpc_bp, name="second", url_prefix="/second")

    output = run(app, "routes").output

    assert "noderpc: dialect document, POST /\n" in output
    assert "second: dialect document, POST /second/\n" in output
    assert "/second/status" in output
    assert output.count("(JSON-RPC only)") == 1


def test_routes_marks_paths_served_by_the_app(app: Flask) -> None:
    app.register_blueprint(noderpc_bp)
    for path, methods in {"/status": ["GET"], "/health": ["GET"], "/": ["POST"]}.items():
        app.add_url_rule(path, f"own{path}", lambda: "mine", methods=methods)

    found = run(app, "routes")

    assert found.exit_code == 0
    assert found.output.startswith("noderpc: dialect document, POST is served by the app\n")
    assert found.output.count("(JSON-RPC only)") == 2
    for asked in ("GET /status", "GET /health", "POST /"):
        assert f"{asked} is served by the app's own 'own{asked.split()[1]}'" in found.output
    assert found.output.count("mount the node under a url_prefix") == 2


def test_routes_does_not_warn_of_an_app_with_index_and_health(app: Flask) -> None:
    app.register_blueprint(noderpc_bp)
    app.add_url_rule("/", "home", lambda: "mine")
    app.add_url_rule("/health", "alive", lambda: "mine")

    found = run(app, "routes")

    assert found.output.splitlines()[-2:] == [
        "GET / is served by the app's own 'home'",
        "GET /health is served by the app's own 'alive'",
    ]


@pytest.mark.parametrize("command", ["routes", "config"])
def test_to_look_starts_nothing(app: Flask, tmp_path: Path, command: str) -> None:
    app.register_blueprint(noderpc_bp)

    assert run(app, command).exit_code == 0

    assert list(tmp_path.iterdir()) == []


def test_config_lists_every_setting_and_marks_those_that_were_set(app: Flask) -> None:
    app.config["NODERPC_MAX_BATCH"] = 3
    app.register_blueprint(noderpc_bp)

    lines = run(app, "config").output.splitlines()

    assert lines[0] == "noderpc:"
    assert [line[2:].split(" = ")[0] for line in lines[1:]] == [
        row.key for row in all_settings()
    ]
    assert "* NODERPC_MAX_BATCH = 3" in lines
    assert "  NODERPC_MONIKER = 'flask-noderpc'" in lines
    marked = [line for line in lines if line.startswith("*")]
    assert len(marked) == 3


def test_init_writes_a_home_once(app: Flask, tmp_path: Path) -> None:
    app.register_blueprint(noderpc_bp, chain_id="mine")
    config = tmp_path / "data" / "config"

    first = run(app, "init")
    written = {path.name: path.read_bytes() for path in config.iterdir()}
    second = run(app, "init")

    assert first.output == second.output == f"chain mine in {tmp_path / 'data'}\n"
    assert written.keys() == {"genesis.json", "node_key.json", "priv_validator_key.json"}
    assert {path.name: path.read_bytes() for path in config.iterdir()} == written
    assert json.loads(written["genesis.json"])["chain_id"] == "mine"


def test_init_reports_errors_in_one_line(app: Flask, tmp_path: Path) -> None:
    app.register_blueprint(noderpc_bp, chain_id="one")
    app.register_blueprint(
        noderpc_bp, name="other", url_prefix="/o", database=tmp_path / "data" / "2.db"
    )
    run(app, "init")
    again = Flask("again")
    again.config.update(app.config)
    again.register_blueprint(noderpc_bp, chain_id="two")

    found = run(again, "init")

    chain_of(again).close()
    assert found.exit_code == os.EX_CONFIG
    assert found.output.startswith(
        "Error: NODERPC_CHAIN_ID: expected 'one', the chain ID of the genesis"
    )


def test_verify_checks_each_store_once(app: Flask) -> None:
    app.register_blueprint(noderpc_bp)
    app.register_blueprint(noderpc_bp, name="second", url_prefix="/second")
    chain = chain_of(app)
    for index in range(3):
        chain.start()
        chain.mempool.submit(b"k%d=v" % index)
        chain.produce()

    found = run(app, "verify")

    assert found.exit_code == 0, found.output
    assert found.output.count("3 blocks verified") == 1


@pytest.fixture
def long_app(app: Flask) -> Flask:
    """The app's chain has 30 blocks, and keeps 10 of the following ones."""
    app.register_blueprint(noderpc_bp, retain_blocks=10)
    chain = chain_of(app)
    chain.retain_blocks = None
    for index in range(30):
        chain.start()
        chain.mempool.submit(b"k%d=v" % index)
        chain.produce()
    chain.close()
    chain.retain_blocks = 10
    return app


@pytest.mark.parametrize(("words", "kept"), [((), 10), (("--retain", "4"), 4)])
def test_prune_retains_the_blocks_of_the_setting_or_option(
    long_app: Flask, words: tuple[str, ...], kept: int
) -> None:
    found = run(long_app, "prune", *words)

    assert found.exit_code == 0, found.output
    assert f"{30 - kept} blocks removed; the lowest is now {31 - kept}\n" in found.output
    status = long_app.test_client().get("/status").get_json()["result"]["sync_info"]
    assert status["latest_block_height"] == "30"
    assert chain_of(long_app).reads.base_height() == 31 - kept


def test_prune_without_a_number_asks_for_one(app: Flask) -> None:
    app.register_blueprint(noderpc_bp)
    found = run(app, "prune")
    assert found.exit_code == 2
    assert "--retain or NODERPC_RETAIN_BLOCKS" in found.output


def test_backup_copies_the_app_s_chain(long_app: Flask, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"

    found = run(long_app, "backup", str(target))

    assert found.exit_code == 0, found.output
    assert found.output.endswith(f"30 blocks verified\n{target} is a verified backup\n")
    again = run(long_app, "backup", str(target))
    assert (again.exit_code, "exists already" in again.output) == (os.EX_CONFIG, True)


def test_verify_reports_a_missing_chain(app: Flask) -> None:
    app.register_blueprint(noderpc_bp)

    found = run(app, "verify")

    assert found.exit_code == os.EX_CONFIG
    assert found.output.endswith("has no chain; start the node, or name another store\n")


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("init", "an embedded chain; this app's backend needs no genesis"),
        ("verify", "a store; this app's backend has none"),
        ("prune", "a store; this app's backend has none"),
        ("backup copy.db", "a store; this app's backend has none"),
    ],
)
def test_commands_refuse_a_backend_of_the_host(app: Flask, command: str, text: str) -> None:
    chain = make_chain(5)
    app.register_blueprint(noderpc_bp, backend=ChainBackend(MemoryChain(chain.genesis)))

    found = run(app, *command.split())

    assert (found.exit_code, found.output) == (
        os.EX_CONFIG,
        f"Error: expected an app with {text}\n",
    )


@pytest.mark.parametrize("command", ["routes", "config", "init", "verify", "prune"])
def test_an_app_without_a_mount_gets_a_hint(app: Flask, command: str) -> None:
    found = run(app, command)

    assert found.exit_code == os.EX_CONFIG
    assert "register noderpc_bp on it" in found.output


def test_start_names_the_mounts_where_the_one_that_is_meant_is_not_there(app: Flask) -> None:
    app.register_blueprint(noderpc_bp)
    found = run(app, "start", "--mount", "other")
    assert found.exit_code == 2
    assert "--mount: expected one of noderpc, got 'other'" in found.output
