"""Tests of pages that follow the chain, and of pages that use the node, in a browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from example_app import create_app
from flask_noderpc import EmbeddedChain
from flask_noderpc.extension import mounts
from flask_noderpc.testing.node import serve

from ..cosmos.bank.bank_txs import BOB
from ..ethereum.protocol.signing import CHAIN_ID, transfer
from ..helpers.browser import chromium
from ..helpers.http import get
from ..helpers.until import until
from ..helpers.websocket import WebSocketClient
from .browser import Reader

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    with chromium() as driver:
        yield driver


class Live(Reader):
    """A reader of a chain whose blocks the test makes."""

    def __init__(self, driver: Chrome, url: str, chain: EmbeddedChain) -> None:
        super().__init__(driver, url)
        self.url, self.chain = url, chain

    def grow(self, *txs: bytes) -> None:
        """Produce a block."""
        for tx in txs:
            assert self.chain.mempool.submit(tx).code == 0
        self.chain.produce()

    def blocks(self) -> list[int]:
        """Return the heights in the first table."""
        return [
            int(text.replace(",", ""))
            for text in self.script(
                "return [...document.querySelectorAll('table')[0].tBodies[0].rows]"
                ".map((row) => row.cells[0].innerText)"
            )
            if text[0].isdigit()
        ]

    def mark(self) -> None:
        """Mark the page; a new document would not have the mark."""
        self.script("window.isMarked = true")

    def is_marked(self) -> bool:
        """Return true if the page is still the marked one."""
        return bool(self.script("return Boolean(window.isMarked)"))


@contextmanager
def served(folder: Path, port: int = 0, **settings: Any) -> Iterator[tuple[str, EmbeddedChain]]:
    database = str(folder / "chain.db")
    app = create_app({"NODERPC_DATABASE": database, "NODERPC_PRODUCE": False, **settings})
    chain = mounts(app)["noderpc"].backend
    assert isinstance(chain, EmbeddedChain)
    with serve(app, port) as url:
        chain.start()
        yield url, chain
    chain.close()


@pytest.fixture
def live(browser: Chrome, tmp_path: Path) -> Iterator[Live]:
    with served(tmp_path, NODERPC_METRICS=True) as (url, chain):
        reader = Live(browser, url, chain)
        yield reader
        reader.leave()


@pytest.mark.parametrize("dialect", ["comet-0.38", "comet-1.0"])
def test_pages_follow_a_node_of_any_dialect(
    browser: Chrome, tmp_path: Path, dialect: str
) -> None:
    with served(tmp_path, NODERPC_DIALECT=dialect) as (url, chain):
        reader = Live(browser, url, chain)
        reader.open("/send")
        reader.write("#tx", "name=satoshi")
        reader.click("#send-form button")
        reader.until_text("Sent:", "#sent")
        reader.open("/")
        reader.until_live()
        chain.produce()
        reader.until_text("name=satoshi")
        reader.open("/monitor")
        reader.click("#monitor-form button")
        reader.until_live()
        chain.produce()
        reader.until_text("NewBlockHeader block 2", "#log")
        reader.leave()


def test_new_blocks_and_transactions_appear(live: Live) -> None:
    live.open("/")
    live.until_live()
    live.mark()

    live.grow(b"name=satoshi")
    until(lambda: live.blocks() == [1], "the first block")
    live.grow()
    until(lambda: live.blocks() == [2, 1], "the second block")
    live.until_text("name=satoshi")

    assert live.is_marked()
    live.until_text("2", ".figures")


def test_live_rows_are_those_of_a_reload(live: Live) -> None:
    live.open("/")
    live.until_live()
    odd = [b"<b id\"&amp;'>=", b"\xef\xbb\xbf\xff=\xf0\x80\xe2\x82", "é=\u05d0".encode()]
    live.grow(*(tx + b"1" for tx in odd))
    until(lambda: live.blocks() == [1], "the block")
    rows = "return [...document.querySelectorAll('td.text')].map((cell) => cell.innerHTML)"
    shown = live.script(rows)

    live.open("/")

    assert live.script(rows) == shown
    assert len(shown) == 3


def test_a_page_can_be_paused(live: Live) -> None:
    live.grow()
    live.open("/blocks")
    live.until_live()
    live.click("#pause")
    live.until_text("Paused", "#state")
    live.grow()
    live.click("#pause")

    until(lambda: live.blocks() == [2, 1], "the block meanwhile")
    assert live.text("#pause") == "Pause"


def test_a_page_is_live_again_after_the_server_was_restarted(
    browser: Chrome, tmp_path: Path
) -> None:
    with served(tmp_path) as (url, chain):
        reader = Live(browser, url, chain)
        reader.open("/blocks")
        reader.until_live()
        reader.mark()
        reader.grow()
        until(lambda: reader.blocks() == [1], "the first block")
    reader.until_text("Reconnecting", "#state")

    with served(tmp_path, int(url.rpartition(":")[2])) as (_, chain):
        chain.produce()
        reader.until_live()
        until(lambda: reader.blocks() == [2, 1], "the block meanwhile")
        chain.produce()
        until(lambda: reader.blocks() == [3, 2, 1], "a block after it")
        assert reader.is_marked()
        reader.leave()


def test_a_page_asks_where_no_more_may_subscribe(browser: Chrome, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"NODERPC_MAX_SUBSCRIPTION_CLIENTS": 1}
    with (
        served(tmp_path, **settings) as (url, chain),
        closing(WebSocketClient(url)) as other,
    ):
        other.call("subscribe", {"query": "tm.event='Tx'"})
        assert other.json()["result"] == {}
        reader = Live(browser, url, chain)
        reader.open("/blocks")
        reader.until_live()
        reader.grow()
        until(lambda: reader.blocks() == [1], "the block")
        reader.leave()


def test_the_mempool_is_followed(live: Live) -> None:
    live.open("/mempool")
    live.until_text("No transaction waits for a block.")

    live.chain.mempool.submit(b"soon=1")

    live.until_text("soon=1")


def test_a_transaction_is_sent_and_found(live: Live) -> None:
    live.open("/send")
    live.write("#tx", "name=satoshi")
    live.click("#send-form button")
    live.until_text("Sent:", "#sent")

    live.click("#sent a")

    live.until_text("Pending in the")
    assert sha256(b"name=satoshi").hexdigest().upper() in live.text()


def test_a_transaction_may_be_hex(live: Live) -> None:
    live.open("/send")
    live.write("#tx", "0x" + b"a=\xff\x00".hex())
    live.click("#send-form button")
    live.until_text("Sent:", "#sent")

    assert live.chain.mempool.pending(1).txs == (b"a=\xff\x00",)


def test_a_refusal_is_shown(live: Live) -> None:
    live.open("/send")
    live.write("#tx", "no pair")
    live.click("#send-form button")
    reason = "the application refused the transaction with code 2: it takes key=value"
    live.until_text(f"Not sent: {reason}", "#sent")
    live.write("#tx", "a=1")
    live.click("#send-form button")
    live.until_text("Sent:", "#sent")
    live.write("#tx", "a=1")
    live.click("#send-form button")

    live.until_text("tx already exists in cache", "#sent")


def test_an_ethereum_transaction_goes_to_its_own_api(browser: Chrome, tmp_path: Path) -> None:
    settings = {"NODERPC_DEV": True, "NODERPC_EVM_CHAIN_ID": CHAIN_ID}
    with served(tmp_path, NODERPC_APPLICATION="evm", **settings) as (url, chain):
        reader = Live(browser, url, chain)
        reader.open("/send")
        assert "Transaction: hex after 0x; the application evm takes" in reader.text()
        reader.write("#tx", "0x" + transfer(0).hex())
        reader.click("#send-form button")
        # The sender has no funds.
        reader.until_text("insufficient funds", "#sent")
        reader.leave()


@pytest.mark.parametrize(
    ("application", "address", "coins", "shown", "refused"),
    [
        ("bank", BOB, "7stake", "7stake", ("Invalid params: address", "Invalid params:")),
        (
            "evm",
            "0x" + "77" * 20,
            "0.25",
            "0.25 ether",
            (
                "the address: expected 0x and 40 hex digits, got '0x77'",
                "the amount: expected a number of ether such as 1.5, got 'x1'",
            ),
        ),
    ],
)
def test_the_faucet_funds_an_account(
    browser: Chrome,
    tmp_path: Path,
    application: str,
    address: str,
    coins: str,
    shown: str,
    refused: tuple[str, str],
) -> None:
    own: dict[str, Any] = {"NODERPC_APPLICATION": application, "NODERPC_DEV": True}
    with served(tmp_path, NODERPC_JSON_RPC_ENABLE=application == "evm", **own) as (url, chain):
        chain.produce()
        reader = Live(browser, url, chain)
        reader.open("/send")
        assert "the application " + application + " takes a signed" in reader.text()
        reader.write("#coins", coins)
        reader.write("#to", "0x77")
        reader.click("#faucet-form button")
        reader.until_text(f"Not sent: {refused[0]}", "#funded")
        reader.write("#to", f" {address} ")
        reader.write("#coins", "x1")
        reader.click("#faucet-form button")
        reader.until_text(f"Not sent: {refused[1]}", "#funded")
        reader.write("#coins", coins)
        reader.click("#faucet-form button")
        reader.until_text("Sent:", "#funded")
        chain.produce()
        reader.open(f"/account/{address}")
        reader.until_text("received")
        reader.until_text(shown)
        reader.leave()


def test_the_monitor_shows_events(live: Live) -> None:
    live.open("/monitor")
    live.write("#events", "tm.event='Tx'")
    live.click("#monitor-form button")
    live.until_live()
    hostile = "<img src=x onerror=alert(1)>"
    live.grow(f"name1{hostile.replace('=', '')}=1".encode())
    live.until_text("block 1", "#log")
    live.click("#log summary")

    assert '"TxResult"' in live.text("#log")
    assert live.script("return document.querySelectorAll('#log img').length") == 0
    live.click("#stop")
    live.until_text("Stopped after 1 events", "#state")
    live.click("#clear")
    assert live.text("#log") == ""


def test_the_monitor_shows_why_a_query_is_refused(live: Live) -> None:
    live.open("/monitor")
    live.write("#events", "tm.event=")
    live.click("#monitor-form button")

    live.until_text("Refused:", "#state")


def test_rates_are_drawn_from_the_metrics(live: Live) -> None:
    live.open("/metrics")
    live.until_live()
    line = (
        "return document.getElementById('answers-line')"
        ".getAttribute('points').split(' ').length"
    )
    for _ in range(5):
        get(live.url, "/health")

    until(lambda: live.script(line) >= 3, "three samples")

    live.until_text("now,", "#answers")
    live.until_text("health")
    most = live.script("return document.getElementById('answers').textContent").split()
    assert float(most[2]) > 0


def test_an_abi_is_remembered_for_its_contract(browser: Chrome, tmp_path: Path) -> None:
    with served(tmp_path, NODERPC_APPLICATION="evm", NODERPC_DEV=True) as (url, chain):
        reader = Live(browser, url, chain)
        call = {"from": chain_account(url), "to": "0x" + "77" * 20, "value": "0x1"}
        digest = rpc(url, "eth_sendTransaction", [call])
        chain.produce()
        reader.open(f"/tx/{digest}")
        reader.write("#abi", "[]")
        reader.click("#abi-form button")
        reader.until_text("Ethereum transaction")
        reader.open(f"/tx/{digest}")
        value = "return document.getElementById('abi').value"

        until(lambda: reader.script(value) == "[]", "the ABI")
        reader.click("#forget-abi")
        until(lambda: reader.script(value) == "", "no ABI")
        reader.leave()


def chain_account(url: str) -> str:
    account: str = rpc(url, "eth_accounts", [])[0]
    return account


def rpc(url: str, method: str, params: list[Any]) -> Any:
    from urllib.request import Request, urlopen

    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    request = Request(f"{url}/evm", body.encode(), {"Content-Type": "application/json"})
    with urlopen(request) as response:
        found = json.load(response)
    assert "result" in found, found
    return found["result"]
