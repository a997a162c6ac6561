"""Tests of the page that a browser gets at the URL of Ethereum's JSON-RPC."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from html import unescape
from pathlib import Path
from shlex import quote
from typing import Any

import pytest
from flask import Flask

from flask_noderpc import EmbeddedChain, NodeRPC
from flask_noderpc.web.html import NODE_ADDRESS

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[EmbeddedChain]:
    with closing(EmbeddedChain(tmp_path / "chain.db", produce=False)) as made:
        yield made


def app_of(chain: EmbeddedChain, **options: Any) -> Flask:
    app = Flask("host")
    settings = {"json_rpc_enable": True, "evm_chain_id": 4711, **options}
    NodeRPC(app, backend=chain, **settings)
    return app


def test_the_page_has_chain_id_first_request_and_link(chain: EmbeddedChain) -> None:
    page = app_of(chain).test_client().get("/evm", headers=BROWSER)

    assert (page.status_code, page.mimetype) == (200, "text/html")
    assert "4711 (0x1267)" in page.text
    assert "curl http://localhost/evm -H" in page.text
    assert "eth_blockNumber" in page.text
    assert '<a href="/">' in page.text
    assert "Accept" in page.headers["Vary"]


@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("/evm", {}),
        ("/evm", {"headers": {"Accept": "*/*"}}),
        ("/evm?query", {"headers": BROWSER, "content_type": "application/json"}),
        ("/evm", {"method": "POST", "headers": BROWSER, "content_type": "application/json"}),
    ],
)
def test_other_requests_get_what_they_did(
    chain: EmbeddedChain, path: str, options: dict[str, Any]
) -> None:
    answer = app_of(chain).test_client().open(path, **options)

    assert (answer.status_code, answer.data) == (200, b"")


def test_a_body_is_executed(chain: EmbeddedChain) -> None:
    answer = (
        app_of(chain)
        .test_client()
        .get(
            "/evm",
            headers=BROWSER,
            json={"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": []},
        )
    )

    assert answer.get_json()["result"] == "0x1267"


def test_a_reader_who_may_not_call_sees_no_chain_id(chain: EmbeddedChain) -> None:
    app = app_of(chain, authorize=lambda _, method: method != "eth_chainId")

    page = app.test_client().get("/evm", headers=BROWSER)

    assert page.status_code == 200
    assert "4711" not in page.text


def test_without_an_index_nothing_is_linked(chain: EmbeddedChain) -> None:
    app = app_of(chain, exclude_routes=["index"])

    assert "<a " not in app.test_client().get("/evm", headers=BROWSER).text


@pytest.mark.parametrize(
    ("host", "link"),
    [
        ("localhost:8545", 'href="https://localhost:26657/"'),
        ("[::1]:8545", 'href="https://[::1]:26657/"'),
        ("evm.example", ""),
        ("evm.example:8443", ""),
    ],
)
def test_at_an_address_of_its_own(chain: EmbeddedChain, host: str, link: str) -> None:
    """Behind a proxy the port of the node is unknown."""
    page = (
        app_of(chain)
        .test_client()
        .get(
            "/evm",
            headers={"Host": host, **BROWSER},
            environ_overrides={NODE_ADDRESS: ("https", 26657, 8545)},
        )
    )

    # A shell would take the brackets of an IPv6 address for a pattern.
    assert f"curl {quote(f'http://{host}/')} " in unescape(page.text)
    assert ("<a " in page.text) == bool(link)
    assert link in page.text
