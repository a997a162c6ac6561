"""Forms for each method of the API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from example_app import create_app
from flask_noderpc import EmbeddedChain
from flask_noderpc.extension import mounts
from flask_noderpc.testing.node import serve

from ..helpers.browser import chromium
from ..helpers.until import until
from .browser import Reader

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

pytestmark = pytest.mark.integration

TX = b"name=satoshi"
# They need what the chain does not have, or a state that no test has made.
_REFUSED = {"broadcast_evidence"}


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    with chromium() as driver:
        yield driver


@pytest.fixture
def reader(browser: Chrome, tmp_path: Path) -> Iterator[Reader]:
    database = str(tmp_path / "chain.db")
    settings = {"NODERPC_DATABASE": database, "NODERPC_PRODUCE": False}
    app = create_app({**settings, "NODERPC_JSON_RPC_ENABLE": True})
    chain = mounts(app)["noderpc"].backend
    assert isinstance(chain, EmbeddedChain)
    with closing(chain), serve(app) as url:
        chain.start()
        for tx in (TX, b"other=value"):
            assert chain.mempool.submit(tx).code == 0
            chain.produce()
        reader = Reader(browser, url)
        reader.complaints()
        reader.open("/api")
        yield reader
        reader.leave()


def choose(reader: Reader, by: str, count: str = "methods") -> None:
    """Choose an interface, and wait for its methods."""
    reader.script(
        "const by = document.getElementById('by'); by.value = arguments[0];"
        "by.dispatchEvent(new Event('change'))",
        by,
    )
    reader.until_text(count, "#state")


def methods(reader: Reader) -> list[str]:
    found: list[str] = reader.script(
        "return [...document.querySelectorAll('.method > summary code')]"
        ".map((each) => each.textContent)"
    )
    return found


def send(reader: Reader, method: str, **params: str) -> str:
    """Fill the form of a method, send it, and return the answer with its status."""
    reader.script(
        "const [name, params] = arguments;"
        "const entry = [...document.querySelectorAll('.method')]"
        "  .find((each) => each.querySelector('summary code').textContent === name);"
        "const form = entry.querySelector('form');"
        "for (const [key, value] of Object.entries(params)) form.elements[key].value = value;"
        "entry.open = true; entry.querySelector('.status').textContent = '';"
        "window.answer = entry.querySelector('.answer'); form.requestSubmit()",
        method,
        params,
    )

    def answered() -> bool:
        status = reader.script("return window.answer.querySelector('.status').textContent")
        return bool(status) and status != "Sent"

    until(answered, f"the answer of {method}")
    found: str = reader.script("return window.answer.textContent")
    return found


def test_each_route_is_sent_with_its_example(reader: Reader) -> None:
    choose(reader, "get")
    listed = methods(reader)
    assert len(listed) > 20
    needs_more = [
        method
        for method in listed
        if method not in _REFUSED and "200 OK" not in send(reader, method)
    ]
    # Of what changes state there are no examples.
    assert [each for each in needs_more if not each.startswith(("broadcast_tx", "dial"))] == []


def test_a_value_is_sent_as_it_was_written(reader: Reader) -> None:
    choose(reader, "get")
    answer = send(reader, "tx_search", query='"tx.height=1"', per_page="1")
    assert 'total_count": "1"' in answer
    assert "curl 'http" in answer
    assert "per_page=1" in answer


def test_methods_are_called_by_json_rpc(reader: Reader) -> None:
    choose(reader, "rpc")
    assert "rpc.discover" in methods(reader)
    answer = send(reader, "block", height="2")
    assert '"height": "2"' in answer
    assert (
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "block"}, separators=(",", ":"))[:-1]
        in answer
    )


def test_methods_of_ethereum_are_called_by_position(reader: Reader) -> None:
    choose(reader, "evm")
    answer = send(reader, "eth_getBlockByNumber", block="0x1", full_transactions="false")
    assert '"params":["0x1",false]' in answer
    assert '"number": "0x1"' in answer


def test_methods_are_filtered_by_their_names_and_texts(reader: Reader) -> None:
    choose(reader, "get")
    reader.write("#filter", "validator")
    reader.until_text("methods", "#state")
    shown = reader.script(
        "return [...document.querySelectorAll('.method:not([hidden]) > summary code')]"
        ".map((each) => each.textContent)"
    )
    assert "validators" in shown
    assert "block_search" not in shown


def test_an_answer_is_no_markup(reader: Reader) -> None:
    choose(reader, "get")
    answer = send(reader, "abci_query", data='"<img src=x onerror=alert(1)>"')
    assert "200 OK" in answer
    assert reader.script("return document.querySelectorAll('#methods img').length") == 0
    assert reader.complaints() == []
