"""Tests of the page at ``/try`` in a browser, where each form is sent with its example.

With ``NODERPC_SCREENSHOTS``, the pictures stay in that folder.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from flask import Flask

from flask_noderpc import COMETBFT_ROUTES, NodeRPC
from flask_noderpc import DIALECTS as DIALECTS_BY_NAME
from flask_noderpc.cometbft.routes import UNSAFE_ROUTES
from flask_noderpc.errors import InvalidParams
from flask_noderpc.ethereum.api import NAMESPACES
from flask_noderpc.ethereum.rpc.dev.routes import DEV_ROUTES
from flask_noderpc.ethereum.rpc.routes import EVM_ROUTES
from flask_noderpc.testing.node import app_for, serve

from ..ethereum.protocol.signing import transfer
from ..ethereum.rpc.dev.fixtures import chain_of, dev_app
from ..explorer.browser import Reader, screens
from ..helpers.browser import chromium
from ..helpers.until import PATIENCE, until
from ..http import chain

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

DIALECTS = ("document", "comet-0.38", "comet-1.0")
TAB, ENTER = "\ue004", "\ue007"
CURES = {
    "dial_seeds": "NODERPC_RPC_UNSAFE enables it",
    "status": "NODERPC_ALLOW_METHODS or NODERPC_DENY_METHODS excludes it",
}
HOSTILE = "<img src=x onerror=alert(1)>"

# All forms are sent at once, so that none waits for another.
_SEND_ALL = """
for (const form of document.querySelectorAll("details form")) form.requestSubmit();
"""
_WAITING = """
return [...document.querySelectorAll("details form")].filter((form) =>
  !/^\\d|^No reply/.test(form.querySelector(".status").textContent)).length;
"""
_ANSWERS = """
return [...document.querySelectorAll("details form")].map((form) =>
  [form.dataset.call, form.querySelector(".status").textContent,
   form.querySelector(".reply").textContent]);
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    with chromium() as driver:
        yield driver


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Yield the URLs of one chain in several dialects, and of a development chain."""
    backend = chain.backend(tmp_path_factory.mktemp("chain"))
    app = Flask("many")
    for name in DIALECTS:
        prefix = f"/<host>/{name}" if name == "comet-1.0" else f"/{name}"
        NodeRPC(
            app,
            backend=backend,
            name=name.replace(".", "_"),
            url_prefix=prefix,
            dialect=name,
            rpc_unsafe=True,
            max_waiting_calls=1,
            broadcast_timeout=0.2,
        )
    dev = dev_app(tmp_path_factory.mktemp("dev"), evm_api=",".join(NAMESPACES))
    ethereum = chain_of(dev)
    ethereum.start()
    ethereum.mempool.submit(transfer(0))
    ethereum.produce()
    with ExitStack() as stack:
        stack.callback(backend.close)
        stack.callback(ethereum.close)
        many = stack.enter_context(serve(app))
        found = {name: f"{many}/{name}" for name in DIALECTS}
        found["comet-1.0"] = f"{many}/main/comet-1.0"
        yield found | {"dev": stack.enter_context(serve(dev))}


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the URL of a server that refuses some methods."""
    backend = chain.backend(tmp_path_factory.mktemp("closed"))
    with closing(backend), serve(app_for(backend, deny_methods=["status"])) as url:
        yield url


def reader_of(browser: Chrome, url: str) -> Reader:
    reader = Reader(browser, url, base="")
    reader.complaints()
    return reader


def sent(reader: Reader) -> dict[str, tuple[str, Any]]:
    """Send every form; return status and reply by the names of the calls."""
    reader.script(_SEND_ALL)
    until(lambda: not reader.script(_WAITING), "all forms are answered")
    return {
        name: (status, json.loads(reply)) for name, status, reply in reader.script(_ANSWERS)
    }


# The chain has the example's transaction already, and no validator has signed twice.
REFUSED = {
    "broadcast_evidence",
    "broadcast_tx_async",
    "broadcast_tx_commit",
    "broadcast_tx_sync",
}


@pytest.mark.parametrize("api", ["get", "json-rpc"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_route_is_sent_with_its_example(
    browser: Chrome, urls: dict[str, str], dialect: str, api: str
) -> None:
    reader = reader_of(browser, urls[dialect])
    reader.open(f"/try?api={api}")

    answers = sent(reader)

    failed = {name: reply for name, (_, reply) in answers.items() if reply.get("error")}
    omitted = DIALECTS_BY_NAME[dialect].omits_routes
    served = {route.name for route in COMETBFT_ROUTES + UNSAFE_ROUTES} - omitted
    assert answers.keys() - {"rpc.discover"} == served
    # This call succeeds if the mempool has been flushed before.
    assert failed.keys() <= REFUSED, failed
    for name, (status, reply) in answers.items():
        shown = (
            f"Error {reply['error']['code']}: {reply['error']['message']}" in status
            if name in failed
            else "200 OK" in status
        )
        assert shown, (name, status)
    # The browser itself logs each failed GET.
    assert [text for text in reader.complaints() if "the server responded" not in text] == []


def test_every_method_of_ethereum_is_sent_with_its_example(
    browser: Chrome, urls: dict[str, str]
) -> None:
    reader = reader_of(browser, urls["dev"])
    reader.open("/try?api=evm")

    answers = sent(reader)

    served = {route.name for route in EVM_ROUTES + DEV_ROUTES}
    assert answers.keys() - {"rpc.discover"} == served
    unread = {
        name: reply["error"]["message"]
        for name, (_, reply) in answers.items()
        if reply.get("error", {}).get("code") == InvalidParams.code
    }
    assert unread.keys() == set()
    assert reader.complaints() == []


SHOWN = {
    "get": ("document", "get", "tx_search"),
    "json-rpc": ("comet-1.0", "json-rpc", "abci_query"),
    "evm": ("dev", "evm", "eth_getBlockByNumber"),
}


@pytest.mark.parametrize("name", SHOWN)
def test_the_page_is_whole_on_every_screen(
    browser: Chrome, urls: dict[str, str], tmp_path: Path, name: str
) -> None:
    folder = Path(os.environ.get("NODERPC_SCREENSHOTS", tmp_path))
    server, api, call = SHOWN[name]
    reader = reader_of(browser, urls[server])
    for width, scheme in screens():
        with reader.screen(width, scheme):
            reader.open(f"/try?api={api}#call-{call}")
            reader.click(f"#call-{call} button")
            reader.until_text("200 OK", f"#call-{call} .status")
            reader.screenshot(folder / f"try-{name}-{width}-{scheme}.png")
            assert (reader.faults(), reader.sticking_out()) == ([], []), (width, scheme)
    assert reader.complaints() == []


def test_a_form_is_used_by_keyboard(browser: Chrome, urls: dict[str, str]) -> None:
    reader = reader_of(browser, urls["document"])
    reader.open("/try")
    reader.script("document.querySelector('#call-block summary').focus()")

    browser.switch_to.active_element.send_keys(ENTER)
    browser.switch_to.active_element.send_keys(TAB)
    browser.switch_to.active_element.send_keys("2", ENTER)

    reader.until_text('"height": "2"', "#call-block .reply")
    outline = reader.script("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


@pytest.mark.parametrize("api", ["get", "json-rpc"])
def test_the_command_is_what_was_sent(browser: Chrome, urls: dict[str, str], api: str) -> None:
    reader = reader_of(browser, urls["document"])
    reader.open(f"/try?api={api}#call-tx_search")
    quote = '"' if api == "get" else ""
    reader.write("#of-tx_search-query", f"{quote}app.key='name' AND tx.height<9{quote}")

    reader.click("#call-tx_search button")
    reader.until_text("200 OK", "#call-tx_search .status")
    command = reader.text("#call-tx_search .command")
    answer = subprocess.run(
        f"{command} -s", shell=True, check=True, capture_output=True, timeout=PATIENCE
    ).stdout

    assert json.loads(answer) == json.loads(reader.text("#call-tx_search .reply"))
    assert json.loads(answer)["result"]["txs"]


def test_what_the_node_refuses_is_shown_with_its_cure(browser: Chrome, closed: str) -> None:
    reader = reader_of(browser, closed)
    for api, method in (("json-rpc", "dial_seeds"), ("json-rpc", "status")):
        reader.open(f"/try?api={api}")
        reader.write("#any-method", method)
        reader.click("form.any button")
        reader.until_text(CURES[method], "form.any .status")
    reader.open("/try#call-events")
    reader.write("#of-events-max_results", "many")
    reader.click("#call-events button")
    reader.until_text("max_results", "#call-events .status")


def test_a_reply_is_text(browser: Chrome, urls: dict[str, str]) -> None:
    reader = reader_of(browser, urls["document"])
    reader.open("/try#call-check_tx")
    reader.write("#of-check_tx-tx", HOSTILE)
    reader.click("#call-check_tx button")
    reader.until_text("200 OK", "#call-check_tx .status")
    reader.open("/try?api=json-rpc")
    reader.write("#any-method", "health")
    reader.write("#any-params", f'["{HOSTILE}"]')
    reader.click("form.any button")

    reader.until_text(HOSTILE, "form.any .command")
    reader.until_text("at most 0", "form.any .reply")
    # Markup in a value would open a dialog.
    assert reader.script("return document.querySelectorAll('img').length") == 0
