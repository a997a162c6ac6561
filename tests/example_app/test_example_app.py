"""Tests of the example app, an ordinary host with the node in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from flask import Flask

from example_app import create_app
from flask_noderpc import EmbeddedChain
from flask_noderpc.extension import mounts

from ..helpers.until import PATIENCE


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("FLASK_NODERPC_DATABASE", str(tmp_path / "chain.db"))
    # Blocks are made by hand.
    monkeypatch.setenv("FLASK_NODERPC_PRODUCE", "false")
    return monkeypatch


@pytest.fixture
def app(environment: pytest.MonkeyPatch) -> Iterator[Flask]:
    made = create_app()
    yield made
    chain_of(made).close()


def chain_of(app: Flask) -> EmbeddedChain:
    backend = mounts(app)["noderpc"].backend
    assert isinstance(backend, EmbeddedChain)
    return backend


def grown(app: Flask, *txs: bytes) -> None:
    chain = chain_of(app)
    chain.start()
    for tx in txs:
        chain.mempool.submit(tx)
    chain.produce()


def test_the_node_is_at_the_root_and_makes_empty_blocks(app: Flask) -> None:
    client = app.test_client()

    assert client.get("/health").get_json()["result"] == {}
    assert 'href="/status"' in client.get("/").text
    assert mounts(app)["noderpc"].settings.empty_blocks is True


def test_the_evm_layer_is_switched_on(app: Flask) -> None:
    grown(app)
    call = {"jsonrpc": "2.0", "id": 1, "method": "debug_getRawHeader", "params": ["latest"]}

    assert app.test_client().post("/evm", json=call).get_json()["result"].startswith("0xf9")


def test_the_explorer_shows_the_chain(app: Flask) -> None:
    grown(app, b"name=satoshi")

    page = app.test_client().get("/explorer", follow_redirects=True)

    assert (page.status_code, "name=satoshi" in page.text) == (200, True)
    assert 'href="/explorer/"' in app.test_client().get("/").text


def test_the_environment_sets_the_node(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for key, value in {
        "DATABASE": str(tmp_path / "deep" / "other.db"),
        "DIALECT": "document",
        "BLOCK_INTERVAL": "0.5",
        "EMPTY_BLOCKS": "false",
        "CHAIN_ID": "2026",
        "APPLICATION": "kvstore",
    }.items():
        environment.setenv(f"FLASK_NODERPC_{key}", value)
    app = create_app()

    status = app.test_client().get("/status").get_json()["result"]

    settings = mounts(app)["noderpc"].settings
    chain_of(app).close()
    assert status["node_info"]["network"] == "2026"
    assert (tmp_path / "deep" / "other.db").exists()
    assert (settings.block_interval, settings.empty_blocks) == (0.5, False)


def test_a_configuration_goes_before_the_environment(
    environment: pytest.MonkeyPatch,
) -> None:
    environment.setenv("FLASK_NODERPC_CHAIN_ID", "environment")

    app = create_app({"NODERPC_CHAIN_ID": "given"})

    assert mounts(app)["noderpc"].settings.chain_id == "given"


def test_the_example_app_produces_blocks(
    environment: pytest.MonkeyPatch,
) -> None:
    environment.setenv("FLASK_NODERPC_PRODUCE", "true")
    environment.setenv("FLASK_NODERPC_BLOCK_INTERVAL", "0.05")
    app = create_app()

    answer = app.test_client().get('/broadcast_tx_commit?tx="name=satoshi"').get_json()

    height = int(answer["result"]["height"])
    assert height >= 1
    assert chain_of(app).reads.wait_for_height(height, PATIENCE) > height
    chain_of(app).close()
