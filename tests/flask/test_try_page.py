"""Tests of the page at ``/try``: a form for each call that the mount describes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

import flask_noderpc.web
from flask_noderpc import (
    COMETBFT_ROUTES,
    DIALECTS,
    Denied,
    NodeRPC,
    NoParams,
    Route,
    noderpc_bp,
)
from flask_noderpc.testing.node import app_for
from tests.explorer.html import Html
from tests.http import chain

from .conftest import MakeApp

VIEWS = ("", "?api=get", "?api=json-rpc", "?api=evm", "?api=none")
FILES = sorted((Path(flask_noderpc.web.__file__).parent / "static").iterdir())


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chain.PeeredBackend]:
    made = chain.backend(tmp_path_factory.mktemp("chain"))
    yield made
    made.close()


def page(client: FlaskClient, path: str = "/try", **options: Any) -> str:
    answer = client.get(path, **options)
    assert (answer.status_code, answer.mimetype) == (200, "text/html")
    return answer.text


def forms(text: str) -> list[str]:
    """Return the calls that have a form, in their order."""
    return re.findall(r'data-call="([^"]+)"', text)


def example(text: str, call: str, parameter: str) -> str:
    """Return the value of a field."""
    found = re.search(rf'id="of-{call}-{parameter}"[^>]*? value="([^"]*)"', text)
    assert found, (call, parameter)
    return unescape(found[1])


@pytest.mark.parametrize("view", VIEWS)
def test_a_page_has_a_policy_and_keeps_to_it(backend: chain.PeeredBackend, view: str) -> None:
    client = app_for(backend, json_rpc_enable=True).test_client()
    answer = client.get(f"/try{view}")
    found = Html(answer.text.replace("<!doctype html>", ""))

    assert answer.headers["Content-Security-Policy"] == (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';"
        " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cache-Control"] == "private, no-cache"
    ids = [attributes["id"] for _, attributes in found.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for tag, attributes in found.elements:
        assert tag not in ("style", "iframe", "object", "embed", "base")
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        for name in ("href", "src", "action", "data-url"):
            assert re.match(r"(?!//)[/#]|$", attributes.get(name, "")), attributes
        assert tag != "script" or attributes["src"]
        assert tag != "label" or attributes["for"] in ids
        if tag in ("script", "link"):
            with client.get(attributes.get("src") or attributes["href"]) as file:
                assert file.status_code == 200


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_no_file_names_another_host_or_writes_markup(file: Path) -> None:
    content = file.read_text().replace('xmlns="http://www.w3.org/2000/svg"', "")

    assert not re.search(r"(https?:)?//\w+\.\w", content)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|eval\(", content)


@pytest.mark.parametrize("api", ["get", "json-rpc"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_described_call_has_a_form(
    backend: chain.PeeredBackend, dialect: str, api: str
) -> None:
    client = app_for(backend, dialect=dialect).test_client()
    found = forms(page(client, f"/try?api={api}"))

    omitted = DIALECTS[dialect].omits_routes
    served = {route.name for route in COMETBFT_ROUTES if route.name not in omitted}
    assert len(found) == len(set(found))
    assert set(found) - {"rpc.discover"} == served


def test_a_form_has_types_examples_and_errors(backend: chain.PeeredBackend) -> None:
    text = page(app_for(backend).test_client())

    shown = text[text.index('id="call-genesis_chunked"') :].partition("</details>")[0]
    assert "integer, default 0. Index of the chunk, counted from 0." in shown
    assert "<dt>404</dt><dd>The call failed.</dd>" in shown
    assert example(text, "tx_search", "query") == '"tx.height>0"'
    assert "``" not in text


@pytest.mark.parametrize("dialect", ["document", "comet-0.38"])
def test_types_of_json_are_in_words(backend: chain.PeeredBackend, dialect: str) -> None:
    text = page(app_for(backend, dialect=dialect).test_client(), "/try?api=json-rpc")

    about = dict(re.findall(r'id="of-([\w-]+)-about">([^<.,]+)[.,]', text))
    assert about["block-height"] == about["tx_search-page"] == "integer"
    assert about["broadcast_tx_sync-tx"] == "base64"
    # The dialect "document" also accepts a string.
    assert about["tx-prove"].startswith("boolean")
    assert about["events-filter"] == "object"
    codes = re.findall(r"<dt>(-?\d+)</dt>", text)
    assert set(codes) == {"-32602", "-32603"}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("api", ["get", "json-rpc"])
def test_examples_of_hashes_are_on_the_chain(
    backend: chain.PeeredBackend, dialect: str, api: str
) -> None:
    client = app_for(backend, dialect=dialect).test_client()
    text = page(client, f"/try?api={api}")
    for call in ("block_by_hash", "header_by_hash", "tx"):
        if call in DIALECTS[dialect].omits_routes:
            continue
        params = {"hash": example(text, call, "hash")}
        if api == "get":
            answer = client.get(f"/{call}", query_string=params)
        else:
            body = {"jsonrpc": "2.0", "id": 1, "method": call, "params": params}
            answer = client.post("/", json=body)
        result = answer.get_json()["result"]
        assert result.get("block") or result.get("header") or result["height"]


def test_the_index_links_to_the_page_unless_that_is_excluded(
    backend: chain.PeeredBackend,
) -> None:
    client = app_for(backend).test_client()
    without = app_for(backend, exclude_routes=["try"]).test_client()

    assert '<a href="/try">' in client.get("/").text
    assert "/try" not in without.get("/").text
    for path in ("/try", "/pages.css", "/try.css", "/try.js", "/try.svg"):
        with client.get(path) as answer:
            assert answer.status_code == 200
        assert without.get(path).status_code == 404


def test_a_mount_has_the_page_below_its_prefix(backend: chain.PeeredBackend) -> None:
    app = Flask("host")
    NodeRPC(app, backend=backend, url_prefix="/<chain>/node", dialect="comet-1.0")
    behind = {"SCRIPT_NAME": "/host"}
    for api in ("get", "json-rpc"):
        path = f"/main/node/try?api={api}"
        text = page(app.test_client(), path, environ_overrides=behind)
        assert 'data-url="/host/main/node/"' in text
        assert 'src="/host/main/node/try.js"' in text
        assert 'href="/host/main/node/try?api=json-rpc"' in text


def test_the_host_s_own_page_is_served_and_not_linked(make_app: MakeApp) -> None:
    app = make_app()
    app.register_blueprint(noderpc_bp)
    app.add_url_rule("/try", "own", lambda: "the host's")

    assert app.test_client().get("/try").text == "the host's"
    assert "/try" not in app.test_client().get("/").text


def test_a_form_is_there_for_what_the_reader_may_call(backend: chain.PeeredBackend) -> None:
    client = app_for(backend, deny_methods=["status"]).test_client()
    for api in ("get", "json-rpc"):
        found = forms(page(client, f"/try?api={api}"))
        assert "health" in found
        assert "status" not in found

    refuses = Denied(message="sign in first")
    app = Flask("guarded")
    NodeRPC(app, backend=backend, authorize=lambda request, method: refuses)
    answer = app.test_client().get("/try?api=json-rpc")
    assert (answer.status_code, answer.text) == (403, "sign in first\n")


def test_ethereum_s_methods_are_there_where_they_are_served(
    backend: chain.PeeredBackend,
) -> None:
    without = page(app_for(backend).test_client(), "/try?api=evm")
    text = page(app_for(backend, json_rpc_enable=True).test_client(), "/try?api=evm")

    assert "api=evm" not in without
    assert forms(without)[0] == "health"
    assert 'data-url="/evm"' in text
    assert "eth_getBlockByNumber" in forms(text)
    assert example(text, "eth_getBlockByNumber", "block") == "latest"


def test_a_route_of_the_host_s_own_has_its_group(backend: chain.PeeredBackend) -> None:
    def answer(ctx: Any, params: NoParams) -> dict[str, str]:
        """Greeting of <b>this</b> app."""
        return {}

    app = Flask("host")
    routes: list[Route[Any]] = [
        Route("bare", answer, NoParams, dict),
        Route("grouped", answer, NoParams, dict, tag="My <group>"),
    ]
    NodeRPC(app, backend=backend, routes=routes)
    client = app.test_client()

    assert client.get("/openapi.json").get_json()["paths"]["/grouped"]["get"]["tags"] == [
        "My <group>"
    ]
    for api in ("get", "json-rpc"):
        text = page(client, f"/try?api={api}")
        assert ">Others</h2>" in text
        assert ">My &lt;group&gt;</h2>" in text
        assert "Greeting of &lt;b&gt;this&lt;/b&gt; app." in text


def test_the_page_reports_an_unusable_store(make_app: MakeApp) -> None:
    app = make_app(NODERPC_DATABASE="/proc/nowhere/chain.db")
    app.register_blueprint(noderpc_bp)
    for api in ("get", "json-rpc"):
        text = page(app.test_client(), f"/try?api={api}")
        assert "No such file or directory" in text
        assert "/proc" not in text
    assert "health" in forms(page(app.test_client()))
