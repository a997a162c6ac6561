"""Tests of pages in a browser that call a development node: a page of this machine, and one
that rebinds DNS."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from flask_noderpc.ethereum.protocol.crypto import DEV_KEYS

from ..helpers.browser import chromium
from ..helpers.until import PATIENCE
from ..server.node_process import Node, started

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

FIRST = "0x" + DEV_KEYS[0].address.hex()
PAYS = {"method": "eth_sendTransaction", "params": [{"from": FIRST, "to": FIRST}]}
READS = {"method": "eth_chainId", "params": []}
_ASK = """
const [url, call, done] = arguments;
const body = JSON.stringify({jsonrpc: "2.0", id: 1, ...call});
const headers = {"Content-Type": "application/json"};
fetch(url, {method: "POST", headers, body})
    .then(async answer => done([answer.status, await answer.text()]))
    .catch(error => done([0, String(error)]));
"""


class Empty(BaseHTTPRequestHandler):
    """Serves an empty page."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.send_header("Content-Type", "text/html")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


@pytest.fixture(scope="module")
def pages() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Empty) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    # The name resolves to this machine, as if DNS had changed after the page was loaded.
    with chromium("--host-resolver-rules=MAP evil.example 127.0.0.1") as driver:
        driver.set_script_timeout(PATIENCE)
        yield driver


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with started(tmp_path_factory.mktemp("dev"), "--dev") as node:
        node.until_up()
        yield node


def asked(browser: Chrome, page: str, url: str, call: dict[str, Any]) -> tuple[int, str]:
    """Return the response that a page gets."""
    browser.get(page)
    status, text = browser.execute_async_script(_ASK, url, call)
    return status, text


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_page_of_this_machine_sends(
    browser: Chrome, dev: Node, pages: int, host: str
) -> None:
    url = dev.url("EVM JSON-RPC") + "/"
    for place in (url, url.replace("127.0.0.1", "localhost")):
        status, text = asked(browser, f"http://{host}:{pages}/", place, PAYS)
        assert status == 200
        assert '"result":"0x' in text


def test_a_page_of_another_site_reads_alone(browser: Chrome, dev: Node, pages: int) -> None:
    url, page = dev.url("EVM JSON-RPC") + "/", f"http://evil.example:{pages}/"
    assert '"result":"0x' in asked(browser, page, url, READS)[1]
    assert "NODERPC_WRITE_ORIGINS" in asked(browser, page, url, PAYS)[1]


def test_a_page_that_rebinds_its_name_is_answered_nothing(
    browser: Chrome, dev: Node, pages: int
) -> None:
    url = (dev.url("EVM JSON-RPC") + "/").replace("127.0.0.1", "evil.example")
    status, text = asked(browser, url, url, READS)
    assert (status, "NODERPC_ALLOWED_HOSTS" in text) == (403, True)
