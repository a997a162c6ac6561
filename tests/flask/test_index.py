"""Tests of the page at ``/``: every endpoint, each a link that works."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import unescape
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from flask_noderpc import (
    COMETBFT_ROUTES,
    DIALECTS,
    EmbeddedChain,
    NodeRPC,
    Route,
    explorer_bp,
    get_backend,
    noderpc_bp,
)
from flask_noderpc.jsonrpc.context import Context
from flask_noderpc.jsonrpc.params import NoParams

from .conftest import MakeApp

CHANGING = {
    "broadcast_tx_sync",
    "broadcast_tx_async",
    "broadcast_tx_commit",
    "broadcast_evidence",
}


def links(client: FlaskClient, path: str = "/") -> dict[str, str]:
    """Return the target of each route's link."""
    page = client.get(path)
    assert (page.status_code, page.mimetype) == (200, "text/html")
    found = re.findall(r'<td><a href="([^"]+)">(\w+)</a></td>', page.text)
    return {name: unescape(href) for href, name in found}


@pytest.fixture
def app(make_app: MakeApp) -> Flask:
    host = make_app()
    host.register_blueprint(noderpc_bp)
    return host


def grown(app: Flask, *txs: bytes, blocks: int = 1) -> None:
    with app.app_context():
        chain = get_backend()
    assert isinstance(chain, EmbeddedChain)
    for tx in txs:
        chain.mempool.submit(tx)
    for _ in range(blocks):
        chain.produce()


def assert_links_work(client: FlaskClient, found: dict[str, str]) -> None:
    for href in found.values():
        answer = client.get(href)
        assert answer.status_code == 200, (href, answer.data)


def test_every_route_has_its_line_with_parameters_and_a_sentence(app: Flask) -> None:
    page = app.test_client().get("/").text

    assert page.count("<tr>") == len(COMETBFT_ROUTES)
    for route in COMETBFT_ROUTES:
        assert f">{route.name}<" in page
    assert "<code>minHeight, maxHeight</code>" in page
    assert "The genesis document, if it fits one chunk." in page


def test_an_empty_chain_links_no_block_routes(app: Flask) -> None:
    found = links(app.test_client())

    missing = {route.name for route in COMETBFT_ROUTES} - found.keys()
    assert (
        missing
        == {
            "blockchain",
            "block",
            "block_by_hash",
            "block_results",
            "commit",
            "tx",
            "header",
            "header_by_hash",
        }
        | CHANGING
    )
    page = app.test_client().get("/").text
    assert page.count("nothing to show") == len(missing - CHANGING)
    assert page.count("changes state") == len(CHANGING)


# CometBFT's page, which is copied, links to unsafe_flush_mempool if that is served.
@pytest.mark.parametrize(("dialect", "unsafe"), [("document", True), ("comet-0.38", False)])
def test_a_crawler_that_follows_every_link_changes_nothing(
    make_app: MakeApp, dialect: str, *, unsafe: bool
) -> None:
    app = make_app(NODERPC_RPC_UNSAFE=unsafe, NODERPC_DIALECT=dialect)
    app.register_blueprint(noderpc_bp)
    client = app.test_client()
    grown(app, b"name=satoshi")
    client.get('/broadcast_tx_sync?tx="waits=1"')

    found = re.findall(r'href="([^"]+)"', client.get("/").text)
    for href in found:
        client.get(unescape(href).removeprefix("//localhost"))

    waiting = client.get("/num_unconfirmed_txs").get_json()["result"]
    assert waiting["total"] == "1"
    assert any("/status" in href for href in found)


def test_a_custom_route_without_required_parameters_is_a_link(make_app: MakeApp) -> None:
    @dataclass
    class Named:
        name: str

    def answer(ctx: Context, params: Any) -> dict[str, str]:
        return {}

    app = make_app()
    rows: list[Route[Any]] = [
        Route("own", answer, NoParams, dict),
        Route("named", answer, Named, dict),
        Route("changes", answer, NoParams, dict, writes=True),
    ]
    NodeRPC(app, routes=rows)

    assert links(app.test_client()).keys() & {"own", "named", "changes"} == {"own"}


def test_on_a_new_chain_every_link_works(app: Flask) -> None:
    client = app.test_client()

    assert_links_work(client, links(client))


def test_on_a_chain_with_transactions_all_that_reads_is_a_link_that_works(app: Flask) -> None:
    grown(app, b"name=satoshi", blocks=3)
    client = app.test_client()

    found = links(client)

    assert found.keys() == {route.name for route in COMETBFT_ROUTES} - CHANGING
    assert_links_work(client, found)
    assert client.get(found["tx"]).get_json()["result"]["proof"]


def test_the_latest_transaction_is_linked_however_many_blocks_ago_it_was(app: Flask) -> None:
    grown(app, b"name=satoshi", blocks=50)
    client = app.test_client()

    assert client.get(links(client)["tx"]).get_json()["result"]["height"] == "1"


def test_the_index_reports_an_unusable_store(make_app: MakeApp) -> None:
    app = make_app(NODERPC_DATABASE="/proc/nowhere/chain.db")
    app.register_blueprint(noderpc_bp)

    page = app.test_client().get("/")

    assert page.status_code == 200
    assert "No such file or directory" in page.text
    assert "/proc" not in page.text
    assert links(app.test_client()) == {}


def test_variables_of_a_prefix_are_the_host_s_and_stay_in_the_links(make_app: MakeApp) -> None:
    app = make_app()
    app.register_blueprint(noderpc_bp, url_prefix="/<tenant>/node")
    client = app.test_client()

    found = links(client, "/me/node/")

    assert found["health"] == "/me/node/health"
    assert client.get("/me/node/health").status_code == 200
    assert client.post("/you/node", data=b'{"id":1,"method":"health"}').status_code == 200


def test_links_stay_below_their_mount(make_app: MakeApp) -> None:
    app = make_app()
    app.register_blueprint(noderpc_bp, url_prefix="/node")
    client = app.test_client()

    for path in ("/node", "/node/"):
        found = links(client, path)
        assert all(href.startswith("/node/") for href in found.values())
    assert client.get(found["status"]).status_code == 200


def test_links_include_the_script_name(app: Flask) -> None:
    page = app.test_client().get("/", base_url="http://x/app/")

    assert 'href="/app/health"' in page.text


BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_browser_gets_the_table_in_every_dialect(make_app: MakeApp, dialect: str) -> None:
    app = make_app(NODERPC_DIALECT=dialect)
    app.register_blueprint(noderpc_bp)
    app.register_blueprint(explorer_bp)
    client = app.test_client()

    page = client.get("/", headers=BROWSER)

    assert (page.status_code, page.mimetype) == (200, "text/html")
    for link in ("/try", "/explorer/", "/health"):
        assert f'href="{link}"' in page.text
    assert "Accept" in page.headers["Vary"]


@pytest.mark.parametrize("accept", [None, "*/*", "application/json", "text/html;q=0.1,*/*;q=1"])
def test_a_program_gets_the_list_of_cometbft(make_app: MakeApp, accept: str | None) -> None:
    app = make_app(NODERPC_DIALECT="comet-0.38")
    app.register_blueprint(noderpc_bp)

    page = app.test_client().get("/", headers={"Accept": accept} if accept else {})

    assert page.text.startswith("<html><body><br>Available endpoints:<br>")
    assert "Vary" not in page.headers


def test_a_call_in_the_body_of_a_browser_s_get_is_executed(make_app: MakeApp) -> None:
    app = make_app(NODERPC_DIALECT="comet-0.38")
    app.register_blueprint(noderpc_bp)

    answer = app.test_client().get("/", data='{"id":1,"method":"health"}', headers=BROWSER)

    assert answer.get_json()["result"] == {}
