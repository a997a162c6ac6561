"""Tests of each page in a browser: on a phone and a desktop, in light and dark, and with axe.

With ``NODERPC_SCREENSHOTS``, the pictures stay in that folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from flask_noderpc import EmbeddedChain, explorer_bp
from flask_noderpc.ethereum.ethermint_double import (
    EmittedLog,
    EthermintDouble,
    log_calldata,
    log_contract,
)
from flask_noderpc.testing.node import app_for, serve

from ..ethereum.protocol.signing import sender, transfer
from ..helpers.browser import chromium
from ..helpers.http import get
from .browser import SCREENS, Reader, screens
from .test_ethereum import TOPICS

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

pytestmark = pytest.mark.integration

MANY = 2_000
HOSTILE = "name=<script>alert(1)</script>\u202e".encode()


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    with chromium() as driver:
        yield driver


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Yield the URLs of a chain of pairs, and of one with Ethereum transactions."""
    folder = tmp_path_factory.mktemp("chains")
    for name in ("pairs", "ethereum"):
        (folder / name).mkdir()
    # Each chain has separate keys, as a key signs for only one chain.
    pairs = EmbeddedChain(folder / "pairs" / "chain.db", produce=False, moniker="a node")
    ethereum = EmbeddedChain(
        folder / "ethereum" / "chain.db",
        application=EthermintDouble,
        produce=False,
        moniker="evm",
    )
    _grow(pairs, ethereum)
    with ExitStack() as stack:
        served = {}
        for name, chain in (("pairs", pairs), ("ethereum", ethereum)):
            stack.callback(chain.close)
            app = app_for(chain, json_rpc_enable=chain is ethereum, metrics=True)
            app.register_blueprint(explorer_bp)
            served[name] = stack.enter_context(serve(app))
            # This request adds a long name to the metrics.
            get(served[name], "/dump_consensus_state")
        yield served


def _grow(pairs: EmbeddedChain, ethereum: EmbeddedChain) -> None:
    for chain in (pairs, ethereum):
        chain.start()
    for number in range(30):
        for index in range(number * 7 % 5):
            pairs.mempool.submit(b"key%d.%d=value" % (number, index))
        pairs.produce()
    for number in range(MANY):
        pairs.mempool.submit(b"many%d=v" % number)
    pairs.produce()
    for tx in (HOSTILE, b"long=" + b"x" * 100_000):
        pairs.mempool.submit(tx)
    pairs.produce()
    pairs.mempool.submit(b"waits=1")
    ethereum.mempool.submit(EMITTING)
    ethereum.produce()


EMITTING = transfer(
    0,
    to="0x" + log_contract().hex(),
    data=log_calldata(EmittedLog(TOPICS, bytes(64))),
    value=15 * 10**17,
)

PAGES = {
    "overview": ("pairs", "/"),
    "blocks": ("pairs", "/blocks"),
    "transactions": ("pairs", "/txs"),
    "block": ("pairs", "/block/30"),
    "large-block": ("pairs", f"/block/31?page={MANY // 100}"),
    "transaction": ("pairs", f"/tx/{sha256(HOSTILE).hexdigest()}"),
    "validators": ("pairs", "/validators"),
    "mempool": ("pairs", "/mempool"),
    "search": ("pairs", "/search"),
    "results": ("pairs", "/search?q=tx.height=31"),
    "key": ("pairs", "/key?data=long"),
    "query": ("pairs", "/query?data=key1.1"),
    "charts": ("pairs", "/charts"),
    "metrics": ("pairs", "/metrics"),
    "send": ("pairs", "/send"),
    "monitor": ("pairs", "/monitor"),
    "error": ("pairs", "/block/99"),
    "ethereum": ("ethereum", f"/tx/{sha256(EMITTING).hexdigest()}"),
    "account": ("ethereum", f"/account/0x{sender().hex()}"),
    "send-ethereum": ("ethereum", "/send"),
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_whole_on_every_screen(
    browser: Chrome, urls: dict[str, str], tmp_path: Path, name: str
) -> None:
    folder = Path(os.environ.get("NODERPC_SCREENSHOTS", tmp_path))
    server, path = PAGES[name]
    reader = Reader(browser, urls[server])
    reader.complaints()
    for width, scheme in screens():
        with reader.screen(width, scheme):
            reader.open(path)
            if reader.script("return Boolean(document.getElementById('pause'))"):
                reader.until_live()
            reader.screenshot(folder / f"{name}-{width}-{scheme}.png")
            assert (reader.faults(), reader.sticks_out()) == ([], False), (width, scheme)
    expected = "status of 404" if name == "error" else ""
    assert [text for text in reader.complaints() if not expected or expected not in text] == []
    reader.leave()


def test_the_pictures_of_the_docs_are_of_these_pages() -> None:
    docs = Path(__file__).parents[2] / "docs"
    made = {f"{page}-{w}-{scheme}" for page in PAGES for w, scheme in SCREENS}
    shown = re.findall(
        r"screenshots/(\S+)\.png", (docs / "explorer" / "explorer.rst").read_text()
    )
    assert set(shown) <= made
    assert sorted(shown) == sorted(path.stem for path in (docs / "screenshots").iterdir())


def test_a_page_is_used_by_keyboard(browser: Chrome, urls: dict[str, str]) -> None:
    reader = Reader(browser, urls["pairs"])
    reader.open("/blocks")
    keys = browser.switch_to.active_element

    keys.send_keys("\ue004")
    assert browser.switch_to.active_element.text == "Skip to the content"
    browser.switch_to.active_element.send_keys("\ue007")
    browser.switch_to.active_element.send_keys("\ue004")
    # The focus is in the content, and not in the header.
    assert reader.script(
        "return document.querySelector('main').contains(document.activeElement)"
    )
    outline = reader.script("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    reader.leave()


def test_what_is_hostile_is_shown_and_does_nothing(
    browser: Chrome, urls: dict[str, str]
) -> None:
    reader = Reader(browser, urls["pairs"])
    reader.complaints()
    for path in ("/block/32", f"/tx/{sha256(HOSTILE).hexdigest()}"):
        reader.open(path)
        assert f"0x{HOSTILE.hex()}"[:40] in reader.text()
        # Markup in a value would open a dialog.
        assert browser.title
    assert reader.complaints() == []


def test_a_large_block_is_shown(browser: Chrome, urls: dict[str, str]) -> None:
    reader = Reader(browser, urls["pairs"])
    reader.open("/block/31")
    pages = 1
    while links := browser.find_elements("link text", "Next page"):
        links[0].click()
        pages += 1

    assert pages == MANY // 100
    assert f"many{MANY - 1}=v" in reader.text()
