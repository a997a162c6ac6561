"""The explorer's page of Ethereum transactions, in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from example_app import create_app
from flask_noderpc import EmbeddedChain
from flask_noderpc.extension import NodeRPC, mounts
from flask_noderpc.testing.ethermint import (
    EmittedLog,
    EthermintDouble,
    log_calldata,
    log_contract,
)
from flask_noderpc.testing.node import serve

from ..ethereum.signing import sender, transfer
from ..helpers.until import until
from .browser import chromium

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

pytestmark = pytest.mark.integration

TOPIC, DATA = b"\xab" * 32, b"a log's data"


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    with chromium() as driver:
        yield driver


@dataclass(frozen=True)
class Shown:
    """The running app, and its page."""

    chain: EmbeddedChain
    driver: Chrome

    def rows(self) -> list[str]:
        found = self.driver.find_elements("css selector", "#transactions > tbody > tr")
        return [row.text for row in found]

    def until_rows(self, count: int) -> list[str]:
        until(lambda: len(self.rows()) == count, f"{count} rows")
        return self.rows()


@pytest.fixture
def shown(browser: Chrome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shown]:
    chain = EmbeddedChain(tmp_path / "chain.db", application=EthermintDouble, produce=False)
    # The example app as it is, over a chain whose blocks the test makes.
    monkeypatch.setattr("example_app.noderpc_bp", NodeRPC(backend=chain).blueprint())
    app = create_app()
    chain.start()
    assert chain.mempool.submit(transfer(0, value=15 * 10**17)).code == 0
    chain.produce()
    with serve(app) as url:
        browser.get(url + "/explorer/ethereum")
        yield Shown(chain, browser)
        browser.get("about:blank")
    assert mounts(app)["noderpc"].backend is chain
    chain.close()


def test_transactions_their_receipts_and_logs_are_shown(shown: Shown) -> None:
    (row,) = shown.until_rows(1)
    assert "1.5" in row
    assert "21000" in row
    assert "success" in row
    assert sender().hex() in row.lower()

    log = log_calldata(EmittedLog((TOPIC,), DATA))
    address = "0x" + log_contract().hex()
    shown.chain.mempool.submit(transfer(1, to=address, data=log, value=0))
    shown.chain.produce()

    newest, _ = shown.until_rows(2)
    assert "success" in newest
    shown.driver.find_element("css selector", "#transactions summary").click()
    details = shown.driver.find_element("css selector", "#transactions details").text
    assert TOPIC.hex() in details
    assert DATA.hex() in details
    assert address in details


# Whether the page scrolls sideways, what is wider than its cell, how wide each column is, and
# how high the row.
_LAYOUT = """
const row = document.querySelector("#transactions > tbody > tr");
const cells = [...row.cells];
return {
  overflows: document.documentElement.scrollWidth > document.documentElement.clientWidth,
  spilling: cells.map((cell) => cell.scrollWidth > cell.clientWidth),
  columns: cells.map((cell) => Math.round(cell.getBoundingClientRect().width)),
  high: row.getBoundingClientRect().height > 3 * innerHeight,
};
"""


@pytest.mark.parametrize("width", [375, 1280])
def test_long_calldata_leaves_the_layout_as_it_is(shown: Shown, width: int) -> None:
    log = log_calldata(EmittedLog((TOPIC, TOPIC), b"data" * 2_000))
    to = "0x" + log_contract().hex()
    raw = transfer(1, to=to, data=log, value=0, gas=2_000_000)
    assert shown.chain.mempool.submit(raw).code == 0
    shown.chain.produce()
    shown.until_rows(2)
    driver = shown.driver
    screen = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    try:
        before = driver.execute_script(_LAYOUT)
        driver.find_element("css selector", "#transactions summary").click()
        after = driver.execute_script(_LAYOUT)
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    assert after == before
    assert (after["overflows"], any(after["spilling"]), after["high"]) == (False, False, False)
    # A phone shows the page in its own width.
    assert "width=device-width" in driver.page_source
