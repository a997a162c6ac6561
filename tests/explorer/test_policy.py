"""Tests that each page sends a strict policy, and has nothing that this policy refuses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import flask_noderpc.explorer

from .conftest import Site
from .html import Html

PATHS = (
    "/",
    "/blocks",
    "/txs",
    "/block/1",
    "/block/99",
    "/validators",
    "/mempool",
    "/search",
    "/search?q=tx.height=1",
    "/account/0x" + "00" * 20,
    "/key?data=name",
    "/query?data=name",
    "/charts",
    "/metrics",
    "/send",
    "/monitor",
)
FOLDER = Path(flask_noderpc.explorer.__file__).parent
STATIC = sorted(FOLDER.glob("static/*"))


@pytest.mark.parametrize("path", PATHS)
def test_a_page_has_a_policy_and_keeps_to_it(site: Site, path: str) -> None:
    site.grow(b"name=satoshi", b"other=1")

    response = site.client.get(f"/explorer{path}")
    found = Html(response.text)

    policy = dict(
        part.strip().split(" ", 1)
        for part in response.headers["Content-Security-Policy"].split(";")
    )
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' data:",
        "connect-src": "'self' ws://localhost wss://localhost",
        "form-action": "'self'",
        "frame-ancestors": "'none'",
        "base-uri": "'none'",
    }
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Cache-Control"] == "private, no-cache"
    for tag, attributes in found.elements:
        assert tag not in ("style", "iframe", "object", "embed", "base")
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        for name in ("href", "src", "action", "data-rpc", "data-evm"):
            # Links lead neither to another host nor to another scheme.
            assert re.match(r"(?!//)[/#]|$", attributes.get(name, "")), attributes
        assert tag != "script" or attributes["src"]
    assert sum(tag == "h1" for tag, _ in found.elements) == 1
    assert sum(tag == "main" for tag, _ in found.elements) == 1


@pytest.mark.parametrize("path", PATHS)
def test_what_a_page_names_is_there(site: Site, path: str) -> None:
    site.grow(b"name=satoshi", b"other=1")
    found = Html(site.client.get(f"/explorer{path}").text)

    for tag, attributes in found.elements:
        if tag in ("script", "link", "img"):
            address = attributes.get("src") or attributes["href"]
            with site.client.get(address) as response:
                assert response.status_code == 200, address


@pytest.mark.parametrize("file", STATIC, ids=lambda file: file.name)
def test_no_file_names_another_host(file: Path) -> None:
    content = file.read_text().replace('xmlns="http://www.w3.org/2000/svg"', "")

    assert not re.search(r"(https?:)?//\w+\.\w", content)
    assert "innerHTML" not in content
    assert "eval(" not in content


def test_a_strange_host_is_not_in_the_policy(site: Site) -> None:
    response = site.client.get("/explorer/send", headers={"Host": "a;script-src *"})

    assert "script-src *" not in response.headers.get("Content-Security-Policy", "")
