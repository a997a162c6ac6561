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
from typing import TYPE_CHECKING, Any

import pytest
from eth_account import Account
from eth_account.signers.local import LocalAccount
from flask import Flask

from flask_noderpc import EmbeddedChain, NodeRPC, explorer_bp
from flask_noderpc.cosmos.bank.dev import accounts_of
from flask_noderpc.cosmos.bank.faucet import send
from flask_noderpc.ethereum.ethermint_double import (
    EmittedLog,
    EthermintDouble,
    log_calldata,
    log_contract,
)
from flask_noderpc.ethereum.protocol.crypto import DEV_KEYS
from flask_noderpc.protocol.secp256k1eth import to_checksum
from flask_noderpc.testing.node import app_for, serve

from ..ethereum.protocol.signing import TO, sender, transfer
from ..ethereum.rpc.dev.fixtures import chain_of
from ..helpers.browser import chromium
from ..helpers.http import get
from .browser import SCREENS, Reader, screens
from .contracts import call, token
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
    """Yield the URLs of a chain of pairs, of one with Ethereum transactions, and of
    development chains of bank and of the EVM."""
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
        for name in ("bank", "evm"):
            app = Flask(name, instance_path=str(folder / name))
            layer = {"rest": True} if name == "bank" else {"json_rpc_enable": True}
            settings: dict[str, Any] = {
                "application": name,
                "dev": True,
                "produce": False,
                **layer,
            }
            NodeRPC(app, dialect="comet-0.38", **settings)
            app.register_blueprint(explorer_bp)
            development = chain_of(app)
            stack.callback(development.close)
            development.start()
            _send(name, app, development)
            served[name] = stack.enter_context(serve(app))
        yield served


def _send(name: str, app: Flask, chain: EmbeddedChain) -> None:
    """Store a block with a transfer, and on the EVM one with a transfer of tokens."""
    if name == "bank":
        chain.produce()
        first = next(iter(accounts_of(chain.reads.genesis())))
        assert send(chain, first, "5stake,7token")[1].code == 0
    else:
        params = [TOKEN, token()]
        body = {"jsonrpc": "2.0", "id": 1, "method": "anvil_setCode", "params": params}
        assert "result" in app.test_client().post("/evm", json=body).get_json()
        assert chain.mempool.submit(PAYING).code == 0
        assert chain.mempool.submit(CALLING).code == 0
    chain.produce()


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

DEVELOPER: LocalAccount = Account.from_key(DEV_KEYS[0].secret)
PAYING = transfer(0, DEVELOPER, chainId=31337)
TOKEN = to_checksum(b"\xc0\xde" * 10)
CALLING = transfer(
    1, DEVELOPER, chainId=31337, to=TOKEN, data=call("transfer(address,uint256)", TO, 10**7)
)
_OF_EVERY_CHAIN = {
    "overview": "/",
    "blocks": "/blocks",
    "transactions": "/txs",
    "block": "/block/1",
    "results": "/search?q=tx.height>0",
    "validators": "/validators",
    "mempool": "/mempool",
    "charts": "/charts",
    "send": "/send",
    "monitor": "/monitor",
}
PAGES = {
    "overview": ("pairs", "/explorer/"),
    "blocks": ("pairs", "/explorer/blocks"),
    "transactions": ("pairs", "/explorer/txs"),
    "block": ("pairs", "/explorer/block/30"),
    "large-block": ("pairs", f"/explorer/block/31?page={MANY // 100}"),
    "transaction": ("pairs", f"/explorer/tx/{sha256(HOSTILE).hexdigest()}"),
    "validators": ("pairs", "/explorer/validators"),
    "mempool": ("pairs", "/explorer/mempool"),
    "search": ("pairs", "/explorer/search"),
    "results": ("pairs", "/explorer/search?q=tx.height=31"),
    "key": ("pairs", "/explorer/key?data=long"),
    "query": ("pairs", "/explorer/query?data=key1.1"),
    "charts": ("pairs", "/explorer/charts"),
    "metrics": ("pairs", "/explorer/metrics"),
    "send": ("pairs", "/explorer/send"),
    "monitor": ("pairs", "/explorer/monitor"),
    "error": ("pairs", "/explorer/block/99"),
    "ethereum": ("ethereum", f"/explorer/tx/{sha256(EMITTING).hexdigest()}"),
    "account": ("ethereum", f"/explorer/account/0x{sender().hex()}"),
    "send-ethereum": ("ethereum", "/explorer/send"),
    "index": ("pairs", "/"),
    "index-comet": ("bank", "/"),
    "page-evm": ("evm", "/evm"),
    "transaction-evm": ("evm", f"/explorer/tx/{sha256(PAYING).hexdigest()}"),
    "token-evm": ("evm", f"/explorer/tx/{sha256(CALLING).hexdigest()}"),
    "contract-evm": ("evm", f"/explorer/contract/{TOKEN}"),
    "account-evm": ("evm", f"/explorer/account/{DEVELOPER.address.lower()}"),
    **{
        f"{name}-{chain}": (chain, f"/explorer{path}")
        for name, path in _OF_EVERY_CHAIN.items()
        for chain in ("bank", "evm")
    },
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_whole_on_every_screen(
    browser: Chrome, urls: dict[str, str], tmp_path: Path, name: str
) -> None:
    folder = Path(os.environ.get("NODERPC_SCREENSHOTS", tmp_path))
    server, path = PAGES[name]
    reader = Reader(browser, urls[server], base="")
    reader.complaints()
    for width, scheme in screens():
        with reader.screen(width, scheme):
            reader.open(path)
            if reader.script("return Boolean(document.getElementById('pause'))"):
                reader.until_live()
            reader.screenshot(folder / f"{name}-{width}-{scheme}.png")
            assert (reader.faults(), reader.sticking_out()) == ([], []), (width, scheme)
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


def test_the_transaction_of_bank_is_whole(browser: Chrome, urls: dict[str, str]) -> None:
    reader = Reader(browser, urls["bank"])
    with reader.screen(390, "dark"):
        reader.open("/txs")
        # The script replaces the links while it follows the chain, so a click may miss.
        link = "return document.querySelector(\"main a[href*='/tx/']\").getAttribute('href')"
        reader.open(reader.script(link).removeprefix("/explorer"))
        reader.until_text("MsgSend")
        assert (reader.faults(), reader.sticking_out()) == ([], [])
    reader.leave()


def test_the_navigation_collapses_on_a_phone(browser: Chrome, urls: dict[str, str]) -> None:
    reader = Reader(browser, urls["pairs"])

    def shown() -> tuple[bool, bool]:
        menu, pages = ".menu summary", "header nav a"
        found = [browser.find_element("css selector", each) for each in (menu, pages)]
        return found[0].is_displayed(), found[1].is_displayed()

    with reader.screen(1280):
        reader.open("/blocks")
        assert shown() == (False, True)
    with reader.screen(390):
        reader.open("/blocks")
        assert shown() == (True, False)
        reader.click(".menu summary")
        assert shown() == (True, True)
        assert (reader.faults(), reader.sticking_out()) == ([], [])
    reader.leave()


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
