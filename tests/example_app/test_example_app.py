"""The example app: an ordinary host with the node in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account
from flask import Flask

from example_app import create_app
from flask_noderpc import EmbeddedChain
from flask_noderpc.extension import mounts
from flask_noderpc.protocol.ethereum.crypto import DEV_KEYS

from ..ethereum.signing import transfer
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


def rows(app: Flask, table: str) -> list[str]:
    page = app.test_client().get("/explorer").text
    found = re.search(f'<table id="{table}">(.*?)</table>', page, re.DOTALL)
    assert found is not None
    # The first row names the columns.
    return found[1].split("<tr>")[2:]


def test_the_node_is_at_the_root_and_makes_empty_blocks(app: Flask) -> None:
    client = app.test_client()

    assert client.get("/health").get_json()["result"] == {}
    assert 'href="/status"' in client.get("/").text
    assert mounts(app)["noderpc"].settings.empty_blocks is True


def test_the_evm_layer_is_switched_on(app: Flask) -> None:
    grown(app)
    call = {"jsonrpc": "2.0", "id": 1, "method": "debug_getRawHeader", "params": ["latest"]}

    assert app.test_client().post("/evm", json=call).get_json()["result"].startswith("0xf9")


def test_a_new_chain_has_an_empty_explorer(app: Flask) -> None:
    assert app.test_client().get("/explorer").status_code == 200
    assert (rows(app, "blocks"), rows(app, "txs")) == ([], [])


def test_the_explorer_lists_blocks_and_transactions_newest_first(app: Flask) -> None:
    grown(app, b"name=satoshi", b"a=1")
    grown(app)
    grown(app, b"b=<2>")

    blocks, txs = rows(app, "blocks"), rows(app, "txs")

    assert [re.findall(r"height=(\d+)", row) for row in blocks] == [["3"], ["2"], ["1"]]
    assert [re.findall(r"<td>(\d+)</td>\n?<td><code>", row) for row in blocks] == [
        ["1"],
        ["0"],
        ["2"],
    ]
    assert "b=&lt;2&gt;" in txs[0]
    assert "a=1" in txs[1]
    assert "name=satoshi" in txs[2]
    (link,) = re.findall(r'href="([^"]+)"', blocks[0])
    assert app.test_client().get(link).get_json()["result"]["block"]["header"]["height"] == "3"


def test_the_explorer_shows_the_latest_twenty_blocks(app: Flask) -> None:
    for _ in range(22):
        grown(app)

    blocks = rows(app, "blocks")

    assert len(blocks) == 20
    assert "height=22" in blocks[0]
    assert "height=3" in blocks[-1]


def send(app: Flask, **form: str) -> str:
    return app.test_client().post("/explorer", data=form).text


def test_the_form_sends_a_pair(app: Flask) -> None:
    page = send(app, name="name", value="satoshi")
    grown(app)

    assert "sent name=satoshi" in page
    answer = app.test_client().get('/abci_query?data="name"').get_json()
    assert bytes.fromhex(answer["result"]["response"]["value"]) == b"satoshi"


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ({"name": "a", "value": ""}, "not a name and a value"),
        ({"name": "a=b", "value": "c"}, "not a name and a value"),
        ({}, "not a name and a value"),
        ({"name": "a", "value": "x" * 2_000_000}, "Tx too large"),
    ],
)
def test_the_form_shows_invalid_input(app: Flask, form: dict[str, Any], text: str) -> None:
    # Werkzeug's own limit on a form field is lower than the mempool's on a transaction.
    app.config["MAX_FORM_MEMORY_SIZE"] = 5_000_000

    assert text in send(app, **form)


def test_the_form_reports_a_duplicate_transaction(app: Flask) -> None:
    send(app, name="a", value="1")

    assert "tx already exists in cache" in send(app, name="a", value="1")


def test_the_form_of_another_site_sends_nothing(app: Flask) -> None:
    answer = app.test_client().post(
        "/explorer",
        data={"name": "evil", "value": "1"},
        headers={"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"},
    )

    assert answer.status_code == 403
    assert chain_of(app).mempool.pending_count().total == 0


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
    assert chain_of(app).wait_for_height(height, PATIENCE) > height
    chain_of(app).close()


@pytest.mark.parametrize("path", ["/", "/explorer", "/explorer/ethereum"])
def test_every_page_is_as_wide_as_the_screen(app: Flask, path: str) -> None:
    page = app.test_client().get(path)

    assert page.status_code == 200
    assert '<meta name="viewport" content="width=device-width' in page.text


def test_binary_values_are_shown_as_hex(app: Flask) -> None:
    grown(app, b"raw=\x02\xf8\x70", b"line=\n", b"text=\xc3\xa9")

    shown = [code for row in rows(app, "txs") for code in re.findall("<code>(.*?)<", row)]

    assert shown == ["text=\u00e9", "0x" + b"line=\n".hex(), "0x" + b"raw=\x02\xf8\x70".hex()]


def test_a_chain_of_ethereum_has_no_form_for_pairs(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("FLASK_NODERPC_APPLICATION", "evm")
    environment.setenv("FLASK_NODERPC_DEV", "true")
    made = create_app()
    client = made.test_client()
    try:
        page = client.get("/explorer").text
        raw = transfer(0, Account.from_key(DEV_KEYS[0].secret))
        chain_of(made).mempool.submit(raw)
        chain_of(made).produce()

        assert "<form" not in page
        assert client.post("/explorer", data={"name": "a", "value": "b"}).status_code == 404
        assert f"0x{raw.hex()}"[:90] in client.get("/explorer").text
    finally:
        chain_of(made).close()
