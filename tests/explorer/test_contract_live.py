"""Tests of a contract's page in a browser: the ABI that it remembers, calls without leaving the
page, and a wallet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from flask_noderpc import explorer_bp
from flask_noderpc.testing.node import serve

from ..ethereum.rpc.dev.fixtures import chain_of, dev_app
from ..helpers.browser import chromium
from ..helpers.until import until
from .browser import Reader
from .conftest import Site
from .test_contract import ABI, ADD, PLUS, Deployed, counter_on

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

pytestmark = pytest.mark.integration

# A wallet that records its requests, and is on the chain in window.walletChain.
_WALLET = """
window.requests = [];
window.walletChain = arguments[0];
window.ethereum = { request: async ({ method, params }) => {
  window.requests.push({ method, params });
  if (method === "eth_requestAccounts") return ["0x" + "11".repeat(20)];
  if (method === "eth_chainId") return window.walletChain;
  return "0x" + "ab".repeat(32);
} };
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    with chromium() as driver:
        yield driver


class ContractReader(Reader):
    """A reader of the page of a contract."""

    def __init__(self, driver: Chrome, url: str, contract: Deployed) -> None:
        super().__init__(driver, url)
        self.contract = contract

    def open_contract(self) -> None:
        self.open(f"/contract/{self.contract.address}")

    def paste(self, abi: str) -> None:
        self.script("document.getElementById('abi').value = arguments[0]", abi)
        self.click("#abi-form button")
        self.until_text("remembers the ABI", "#abi-state")

    def unfold(self, key: str) -> None:
        self.until_text("Read", "#methods")
        self.click(f"#function-{key} summary")

    def until_outcome(self, key: str, text: str) -> None:
        self.until_text(text, f"#outcome-{key}")


@pytest.fixture
def reader(browser: Chrome, tmp_path: Path) -> Iterator[ContractReader]:
    app = dev_app(tmp_path)
    app.register_blueprint(explorer_bp)
    chain = chain_of(app)
    chain.start()
    with serve(app) as url:
        reader = ContractReader(browser, url, counter_on(Site(app, chain)))
        reader.open_contract()
        reader.complaints()
        yield reader
        reader.leave()
    chain.close()


def test_the_abi_is_pasted_once(reader: ContractReader) -> None:
    contract = reader.contract
    sent = contract.call("add(uint256)", 7)
    reader.open_contract()
    reader.paste(ABI)
    reader.until_text("Added(address,uint256,uint256)", "#event-list")

    reader.open_contract()
    reader.until_text("Added(address,uint256,uint256)", "#event-list")
    reader.until_text("add", "#methods")
    reader.open(f"/tx/{sent[2:]}")
    reader.until_text("add(uint256)")
    reader.until_text("Added(address,uint256,uint256)")
    reader.click("#forget-abi")
    until(lambda: "Added(" not in reader.text(), "no ABI")
    reader.open_contract()
    assert "Added(" not in reader.text()
    assert reader.complaints() == []


def test_an_abi_that_another_page_sent_is_not_remembered(reader: ContractReader) -> None:
    reader.script(
        """const form = document.getElementById("abi-form");
        form.elements.abi.value = "[]";
        HTMLFormElement.prototype.submit.call(form);"""
    )
    reader.until_text("no function that only reads")
    reader.open_contract()

    assert reader.script("return localStorage.length") == 0
    assert reader.script("return document.getElementById('abi').value") == ""


def test_what_is_no_abi_is_refused_and_not_remembered(reader: ContractReader) -> None:
    reader.write("#abi", "{")
    reader.click("#abi-form button")
    reader.until_text("the ABI can't be read", "#abi-state")
    assert reader.script("return localStorage.length") == 0


def test_methods_are_called_by_keyboard_without_leaving_the_page(
    reader: ContractReader,
) -> None:
    reader.paste(ABI)
    reader.script("window.isMarked = true")
    reader.unfold(PLUS)
    reader.write(f"[id='{PLUS}.0']", "2\ue007")
    reader.until_outcome(PLUS, "42")
    reader.write(f"[id='{PLUS}.0']", "two\ue007")
    reader.until_outcome(PLUS, "amount: expected an integer")
    reader.unfold(ADD)
    # Enter presses the first button of the function, which sends.
    reader.write(f"[id='{ADD}.0']", "5\ue007")
    reader.until_outcome(ADD, "Sent:")
    reader.write("#height", "1\ue007")
    reader.contract.site.chain.produce()
    assert reader.contract.total() == 45
    reader.write(f"[id='{ADD}.0']", "1001\ue007")
    reader.until_outcome(ADD, "TooMuch(address,uint256,uint256)")
    assert reader.script("return window.isMarked")
    # The browser reports the status 400 of the wrong argument.
    assert [each for each in reader.complaints() if "400" not in each] == []


def test_a_wallet_sends_on_the_right_chain_only(reader: ContractReader) -> None:
    chain_id = reader.contract.evm("eth_chainId")
    reader.paste(ABI)
    reader.script(_WALLET, "0x1")
    reader.unfold(ADD)
    reader.write(f"[id='{ADD}.0']", "5")
    reader.click(f"#function-{ADD} button[name=calldata]")
    reader.until_outcome(ADD, "Send with the wallet")

    reader.click("[data-wallet]")
    reader.until_outcome(ADD, "Not sent: the wallet is connected to the chain 1")
    reader.script("window.walletChain = arguments[0]", chain_id)
    reader.click("[data-wallet]")
    reader.until_outcome(ADD, "Sent: 0xabab")

    sent = [each for each in reader.script("return window.requests") if each["params"]]
    (transaction,) = sent[0]["params"]
    assert len(sent) == 1
    assert transaction == {
        "from": "0x" + "11" * 20,
        "to": reader.contract.address,
        "data": f"0x{ADD}{5:064x}",
        "value": "0x0",
        "chainId": chain_id,
    }


def test_without_a_wallet_its_button_is_hidden(reader: ContractReader) -> None:
    reader.paste(ABI)
    reader.unfold(ADD)
    reader.write(f"[id='{ADD}.0']", "5")
    reader.click(f"#function-{ADD} button[name=calldata]")
    reader.until_outcome(ADD, "Calldata")
    assert "Send with the wallet" not in reader.text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_a_contract_is_whole_on_every_screen(
    reader: ContractReader, width: int, scheme: str
) -> None:
    reader.contract.call("add(uint256)", 7)
    with reader.screen(width, scheme):
        reader.open_contract()
        assert (reader.faults(), reader.sticking_out()) == ([], [])
        reader.paste(ABI)
        reader.unfold(PLUS)
        reader.write(f"[id='{PLUS}.0']", "2\ue007")
        reader.until_outcome(PLUS, "49")
        reader.unfold(ADD)
        reader.write(f"[id='{ADD}.0']", "5")
        reader.click(f"#function-{ADD} button[name=calldata]")
        reader.until_outcome(ADD, "Calldata")
        assert (reader.faults(), reader.sticking_out()) == ([], [])
