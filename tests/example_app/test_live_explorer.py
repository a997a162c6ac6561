"""The explorer in a browser: the page follows the chain."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from example_app import create_app
from flask_noderpc import EmbeddedChain
from flask_noderpc.extension import mounts
from flask_noderpc.mount import Mount
from flask_noderpc.testing.node import serve

from ..helpers.http import get
from .browser import Page, chromium

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    with chromium() as driver:
        yield driver


@dataclass(frozen=True)
class Explorer:
    """The running app, and its page in the browser, live."""

    url: str
    chain: EmbeddedChain
    page: Page


@contextmanager
def served(folder: Path, port: int = 0, **settings: Any) -> Iterator[tuple[str, Mount]]:
    database = str(folder / "chain.db")
    app = create_app({"NODERPC_DATABASE": database, "NODERPC_BLOCK_INTERVAL": 0.2, **settings})
    mount = mounts(app)["noderpc"]
    with serve(app, port) as url:
        yield url, mount
    mount.backend.close()


@contextmanager
def opened(browser: Chrome, folder: Path, **settings: Any) -> Iterator[Explorer]:
    with served(folder, **settings) as (url, mount):
        assert isinstance(mount.backend, EmbeddedChain)
        page = Page(browser, url)
        page.until_live()
        yield Explorer(url, mount.backend, page)
        # Or it would connect anew while the server goes away.
        page.leave()


@pytest.fixture
def explorer(browser: Chrome, tmp_path: Path) -> Iterator[Explorer]:
    with opened(browser, tmp_path) as running:
        yield running


@pytest.fixture
def by_hand(browser: Chrome, tmp_path: Path) -> Iterator[Explorer]:
    """Blocks are made when the test says so."""
    with opened(browser, tmp_path, NODERPC_PRODUCE=False) as running:
        yield running


def until_shown(page: Page, tx: str) -> None:
    page.until(lambda: any(f"<code>{tx}</code>" in row for row in page.rows("txs")), tx)


def test_a_new_block_appears(explorer: Explorer) -> None:
    page = explorer.page
    known = max(page.heights(), default=0)

    page.until(lambda: max(page.heights(), default=0) > known, "a new block")

    heights = page.heights()
    assert heights == list(range(heights[0], heights[-1] - 1, -1))
    assert not page.is_reloaded()


def test_the_form_reports_the_result_and_the_transaction_appears(explorer: Explorer) -> None:
    page = explorer.page
    page.send("a=b", "c")
    page.until(lambda: page.text("message") == "not a name and a value", "a refusal")
    page.send("name", "satoshi")
    page.until(lambda: page.text("message") == "sent name=satoshi", "a receipt")

    until_shown(page, "name=satoshi")

    assert not page.is_reloaded()


def test_a_transaction_of_another_client_appears(explorer: Explorer) -> None:
    sent = get(explorer.url, "/broadcast_tx_sync", {"tx": '"name=hal"'})
    assert sent.json["result"]["code"] == "0"

    until_shown(explorer.page, "name=hal")

    assert not explorer.page.is_reloaded()


def test_live_rows_are_those_of_a_reload(by_hand: Explorer) -> None:
    page = by_hand.page
    odd = [
        b"<b id=\"&amp;'>",
        b"\xef\xbb\xbf\xff=\xf0\x80\xe2\x82",
        b"just=" + "\N{PILE OF POO}".encode() * 95,
        b"long=" + "\N{PILE OF POO}".encode() * 96,
    ]
    for tx in odd:
        by_hand.chain.mempool.submit(tx)
    by_hand.chain.produce()
    by_hand.chain.produce()
    page.until(lambda: page.heights() == [2, 1], "both blocks")
    page.until(lambda: len(page.rows("txs")) == len(odd), "all transactions")
    live = page.rows("blocks"), page.rows("txs")
    assert not page.is_reloaded()

    page.reload()

    assert (page.rows("blocks"), page.rows("txs")) == live


def test_live_rows_are_limited_as_after_a_reload(by_hand: Explorer) -> None:
    for number in range(23):
        by_hand.chain.mempool.submit(b"k%d=v" % number)
        by_hand.chain.produce()

    until_shown(by_hand.page, "k22=v")

    by_hand.page.until(lambda: by_hand.page.heights() == list(range(23, 3, -1)), "20 blocks")
    assert len(by_hand.page.rows("txs")) == 20


def test_the_page_is_live_again_after_the_server_was_restarted(
    browser: Chrome, tmp_path: Path
) -> None:
    with served(tmp_path, NODERPC_PRODUCE=False) as (url, mount):
        page = Page(browser, url)
        page.until_live()
        assert isinstance(mount.backend, EmbeddedChain)
        mount.backend.produce()
        page.until(lambda: page.heights() == [1], "the first block")
    page.until(lambda: page.states()[-1] == "reconnecting", "the end of the connection")

    port = int(url.rpartition(":")[2])
    with served(tmp_path, port, NODERPC_PRODUCE=False) as (_, mount):
        assert isinstance(mount.backend, EmbeddedChain)
        mount.backend.mempool.submit(b"meanwhile=1")
        mount.backend.produce()

        page.until(lambda: page.states()[-2:] == ["reconnecting", "live"], "live again")
        until_shown(page, "meanwhile=1")
        assert page.heights() == [2, 1]
        mount.backend.produce()
        page.until(lambda: page.heights() == [3, 2, 1], "a block after it")
        assert not page.is_reloaded()
        page.leave()
