"""Tests of a contract's page: creation, code, methods by a pasted ABI, and events."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from flask_noderpc import explorer_bp
from flask_noderpc.ethereum.protocol.crypto import DEV_KEYS
from flask_noderpc.feature import application_kinds
from flask_noderpc.protocol.secp256k1eth import keccak, to_checksum
from flask_noderpc.testing.node import app_for, serve

from ..ethereum.rpc.contract import CODE as FACTORY
from ..ethereum.rpc.contract import calling
from ..ethereum.rpc.contracts import ECHO
from ..ethereum.rpc.dev.fixtures import chain_of, dev_app
from ..ethereum.rpc.evm_node import Running
from .abi_forms import entry
from .conftest import MakeSite, Site
from .html import Html, page

COUNTER = json.loads(
    (Path(__file__).parents[1] / "clients" / "ethereum" / "evm" / "Counter.json").read_text()
)
ABI = json.dumps(COUNTER["abi"])
OWNER = to_checksum(DEV_KEYS[0].address)
FIRST = 40
"""First total of the contract."""


def selector(signature: str) -> str:
    return keccak(signature.encode())[:4].hex()


ADD, PLUS, TOTAL = (selector(each) for each in ("add(uint256)", "plus(uint256)", "total()"))


@dataclass(frozen=True)
class Deployed:
    """A contract on a development chain, and its page."""

    site: Site
    address: str

    def evm(self, method: str, *params: Any) -> Any:
        return evm(self.site, method, *params)

    def post(self, form: Mapping[str, str] = MappingProxyType({}), status: int = 200) -> Html:
        """Return the page after its form with the ABI was sent."""
        fields = {"abi": ABI, **form}
        response = self.site.client.post(f"/explorer/contract/{self.address}", data=fields)
        assert response.status_code == status, Html(response.text).text[-600:]
        return Html(response.text)

    def call(self, signature: str, argument: int) -> str:
        """Store a block with a call that changes the contract; return the Ethereum hash."""
        data = f"0x{selector(signature)}{argument:064x}"
        call = {"from": OWNER, "to": self.address, "data": data}
        sent: str = self.evm("eth_sendTransaction", call)
        self.site.chain.produce()
        return sent

    def total(self) -> int:
        call = {"to": self.address, "data": f"0x{TOTAL}"}
        return int(self.evm("eth_call", call, "latest"), 16)


def evm(site: Site, method: str, *params: Any) -> Any:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer = site.client.post("/evm", json=body).get_json()
    assert "result" in answer, answer
    return answer["result"]


def deploy(site: Site, code: bytes) -> str:
    """Return the address of a contract, by the code that deploys it."""
    sent = evm(site, "eth_sendTransaction", {"from": OWNER, "data": f"0x{code.hex()}"})
    site.chain.produce()
    address: str = evm(site, "eth_getTransactionReceipt", sent)["contractAddress"]
    return address


@pytest.fixture(scope="module")
def development(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A development chain, as each one starts processes."""
    app = dev_app(tmp_path_factory.mktemp("development"))
    app.register_blueprint(explorer_bp)
    chain = chain_of(app)
    chain.start()
    yield Site(app, chain)
    chain.close()


@pytest.fixture
def counter(development: Site) -> Deployed:
    return counter_on(development)


def counter_on(site: Site) -> Deployed:
    code = bytes.fromhex(COUNTER["bytecode"][2:]) + FIRST.to_bytes(32)
    return Deployed(site, deploy(site, code))


def test_a_contract_has_its_creation_and_its_code(counter: Deployed) -> None:
    found = page(counter.site.client, f"/contract/{counter.address}")
    code = counter.evm("eth_getCode", counter.address, "latest")

    assert f"Creator {OWNER}" in found.text
    assert f"/explorer/account/{OWNER}" in found.links
    assert f"Block {counter.site.chain.reads.latest_height()} Code 512 bytes" in found.text
    assert f"0x{keccak(bytes.fromhex(code[2:])).hex()}" in found.text
    assert code in found.text
    deployment = next(link for link in found.links if "/tx/" in link)
    assert counter.address in counter.site.client.get(deployment).text.lower()
    account = page(counter.site.client, f"/account/{counter.address}")
    assert f"/explorer/contract/{counter.address}" in account.links


def test_the_creator_of_a_contract_may_be_a_contract(development: Site) -> None:
    site = development
    factory = deploy(site, FACTORY)
    data = calling("spawn", bytes.fromhex(factory[2:]))
    call = {"from": OWNER, "to": factory, "data": f"0x{data.hex()}"}
    created = "0x" + evm(site, "eth_call", call, "latest")[-40:]
    evm(site, "eth_sendTransaction", call)
    site.chain.produce()

    assert (
        f"Creator {to_checksum(bytes.fromhex(factory[2:]))}"
        in page(site.client, f"/contract/{created}").text
    )


@pytest.fixture
def echo(tmp_path: Path) -> Iterator[Deployed]:
    """A contract of the genesis of a chain without development accounts; it returns its
    calldata."""
    node = Running(tmp_path)
    app = app_for(node.chain, json_rpc_enable=True)
    app.register_blueprint(explorer_bp)
    node.chain.produce()
    yield Deployed(Site(app, node.chain), ECHO)
    node.close()


def test_a_contract_of_the_genesis_has_no_transaction(echo: Deployed) -> None:
    assert "Creation in the genesis" in page(echo.site.client, f"/contract/{ECHO}").text


def test_a_contract_from_a_pruned_block_is_not_of_the_genesis(make_site: MakeSite) -> None:
    counter = counter_on(make_site(application="evm", dev=True, json_rpc_enable=True))
    chain = counter.site.chain
    retained = application_kinds()["evm"].blocks_needed
    for _ in range(retained + 1):
        chain.produce()
    chain.store.prune(retained)

    assert chain.reads.base_height() > 1
    assert (
        "Creation not known" in page(counter.site.client, f"/contract/{counter.address}").text
    )


def test_an_account_that_delegates_names_the_contract(counter: Deployed) -> None:
    account = "0x" + "77" * 20
    counter.evm("anvil_setCode", account, f"0xef0100{counter.address[2:]}")
    found = page(counter.site.client, f"/contract/{account}")

    assert f"Delegates to {to_checksum(bytes.fromhex(counter.address[2:]))}" in found.text
    assert "Creation not known" in found.text


def test_a_contract_from_before_a_fork_has_only_later_events(
    counter: Deployed, make_site: MakeSite
) -> None:
    sent = counter.call("add(uint256)", 7)
    height = counter.site.chain.reads.latest_height()
    with serve(counter.site.app) as url:
        site = make_site(
            application="evm", dev=True, json_rpc_enable=True, fork_url=(f"{url}/evm",)
        )
        fork = Deployed(site, counter.address)
        assert "No events found." in page(site.client, f"/contract/{counter.address}").text
        assert "may not be stored here" in page(site.client, f"/tx/{sent[2:]}", 404).text
        fork.call("add(uint256)", 8)
        found = fork.post({"read": PLUS, f"{PLUS}.0": "1"})

    assert "Creation not known" in found.text
    assert f"blocks from {height + 1} to {height + 1}" in found.text
    assert amounts(found) == [8]
    assert "uint256 56" in found.text


def test_what_is_no_contract_has_no_page(counter: Deployed) -> None:
    client = counter.site.client
    assert "has no code" in page(client, f"/contract/{OWNER}", 404).text
    assert "expected 0x and 40 hex digits" in page(client, "/contract/0x12", 400).text


def test_without_ethereum_there_is_no_contract(site: Site) -> None:
    site.grow(b"name=satoshi")
    found = page(site.client, f"/contract/{OWNER}", 404)
    assert "does not serve Ethereum's JSON-RPC" in found.text
    assert "contract" not in page(site.client, f"/account/{OWNER}").text


def test_a_method_is_read_at_a_height(counter: Deployed) -> None:
    created = counter.site.chain.reads.latest_height()
    counter.call("add(uint256)", 5)

    assert (
        "plus(uint256) (no name) uint256 47"
        in counter.post({"read": PLUS, f"{PLUS}.0": "2"}).text
    )
    before = counter.post({"read": PLUS, "height": str(created), f"{PLUS}.0": "0x2"})
    assert "plus(uint256) (no name) uint256 42" in before.text
    # The form keeps what was written, and stays open.
    assert [
        each["id"] for tag, each in before.elements if tag == "details" and "open" in each
    ] == [f"function-{PLUS}"]
    assert ("input", "0x2") in [(tag, each.get("value")) for tag, each in before.elements]


def test_line_breaks_of_an_argument_are_kept(echo: Deployed) -> None:
    function = entry("function", "f", "uint8[]", "string")
    key = selector("f(uint8[],string)")
    texts = {f"{key}.0": "[1,\r\n2]", f"{key}.1": "a\r\nb"}
    found = echo.post({"abi": json.dumps([function]), "calldata": key, **texts})

    assert "[1,\n2]" in found.whole_text
    assert "a\nb" in found.whole_text
    assert "u{d}" not in found.text


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ({"read": PLUS, f"{PLUS}.0": "two"}, "amount: expected an integer from 0 to 2^256 - 1"),
        ({"read": PLUS, f"{PLUS}.0": "1", "height": "-1"}, "height: expected a number"),
        ({"abi": "{"}, "the ABI can't be read"),
    ],
)
def test_a_wrong_form_is_refused(counter: Deployed, form: dict[str, str], text: str) -> None:
    assert text in counter.post(form, 400).text


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ({"read": PLUS, f"{PLUS}.0": str(2**256 - 1)}, "arithmetic underflow or overflow"),
        ({"send": ADD, f"{ADD}.0": "0"}, "execution reverted: nothing to add"),
        (
            {"send": ADD, f"{ADD}.0": "1001"},
            "TooMuch(address,uint256,uint256) by address"
            f" {OWNER} asked uint256 1001 most uint256 1000",
        ),
        ({"read": PLUS, f"{PLUS}.0": "1", "height": "9999"}, "header not found"),
        ({"send": ADD, f"{ADD}.0": "1", "from": "0x" + "77" * 20}, "unknown account"),
    ],
    ids=["panic", "text", "error", "height", "sender"],
)
def test_the_reason_of_a_failure_is_shown(
    counter: Deployed, form: dict[str, str], text: str
) -> None:
    assert text in counter.post({"from": OWNER, **form}).text
    counter.site.chain.produce()
    assert counter.total() == FIRST


def test_a_function_that_the_contract_lacks_returns_nothing(counter: Deployed) -> None:
    other = entry("function", "other") | {
        "stateMutability": "view",
        "outputs": [{"name": "", "type": "uint256"}],
    }
    sink = deploy(counter.site, bytes.fromhex("60015f8160095f39f300"))
    form = {"abi": json.dumps([other]), "read": selector("other()")}
    found = Deployed(counter.site, sink).post(form)
    assert "the contract may not have this function" in found.text


def test_a_development_account_sends(counter: Deployed) -> None:
    sent = counter.post({"send": ADD, f"{ADD}.0": "7", "from": OWNER})
    counter.site.chain.produce()

    assert counter.total() == FIRST + 7
    assert "Sent: " in sent.text
    # The first link to a transaction is of the creation.
    link = [link for link in sent.links if "/explorer/tx/" in link][1]
    decoded = counter.site.client.post(link, data={"abi": ABI})
    assert "add(uint256) amount uint256 7" in Html(decoded.text).text


def test_ether_is_sent_with_a_payable_function(counter: Deployed) -> None:
    give = entry("function", "give") | {"stateMutability": "payable"}
    sink = deploy(counter.site, bytes.fromhex("60015f8160095f39f300"))
    key, purse = selector("give()"), Deployed(counter.site, sink)

    for amount, status in (("1.25", 200), ("1.2.3", 400), ("-1", 400)):
        form = {"abi": json.dumps([give]), "send": key, f"{key}.value": amount, "from": OWNER}
        found = purse.post(form, status)
        assert status == 200 or "value: expected an amount of ether" in found.text
    counter.site.chain.produce()
    assert int(counter.evm("eth_getBalance", sink, "latest"), 16) == 125 * 10**16


def test_without_accounts_the_calldata_is_shown(echo: Deployed) -> None:
    found = echo.post({"calldata": ADD, f"{ADD}.0": "7"})

    assert f"0x{ADD}{7:064x}" in found.text
    buttons = [each.get("name") for tag, each in found.elements if tag == "button"]
    assert "calldata" in buttons
    assert "send" not in buttons
    (wallet,) = (each["data-wallet"] for _, each in found.elements if "data-wallet" in each)
    assert json.loads(wallet) == {
        "chainId": echo.evm("eth_chainId"),
        "to": ECHO,
        "data": f"0x{ADD}{7:064x}",
        "value": "0x0",
    }


FOREIGN: tuple[dict[str, str], ...] = (
    {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Sec-Fetch-Site": "same-site", "Origin": "http://evil.localhost"},
    {"Referer": "https://evil.example/page"},
    {"Host": "rebound.example", "Sec-Fetch-Site": "same-origin"},
    {"X-Forwarded-For": "203.0.113.7"},
)


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_pages_of_other_sites_can_not_send(counter: Deployed, headers: dict[str, str]) -> None:
    form = {"abi": ABI, "send": ADD, f"{ADD}.0": "7", "from": OWNER}
    address = f"/explorer/contract/{counter.address}"

    refused = counter.site.client.post(address, data=form, headers=headers)
    counter.site.chain.produce()

    assert counter.total() == FIRST
    assert "Sent: " not in refused.text
    names = [each.get("name") for tag, each in Html(refused.text).elements if tag == "button"]
    assert "send" not in names


def test_a_link_sends_nothing(counter: Deployed) -> None:
    form = {"abi": ABI, "send": ADD, f"{ADD}.0": "7", "from": OWNER}
    address = f"/explorer/contract/{counter.address}"

    for method in ("get", "post"):
        opened = counter.site.client.open(address, method=method, query_string=form)
        assert "Sent: " not in opened.text
    counter.site.chain.produce()
    assert counter.total() == FIRST


def test_denied_methods_are_not_called(make_site: MakeSite) -> None:
    denied: set[str] = set()
    site = make_site(
        application="evm",
        dev=True,
        json_rpc_enable=True,
        authorize=lambda request, method: method not in denied,
    )
    counter = counter_on(site)
    denied |= {"eth_sendTransaction", "eth_call", "eth_getLogs", "tx_search"}

    reading = counter.post({"read": PLUS, f"{PLUS}.0": "2"})
    sending = counter.post({"send": ADD, f"{ADD}.0": "7", "from": OWNER})
    denied.clear()
    site.chain.produce()

    assert counter.total() == FIRST
    for found in (reading, sending):
        assert "Sent: " not in found.text
        assert " 42 " not in found.text
        assert "not authorized" in found.text.lower()
        assert f"Creator {OWNER}" not in found.text
    denied.add("eth_getCode")
    page(site.client, f"/contract/{counter.address}", 403)
    assert site.client.post(f"/explorer/contract/{counter.address}").status_code == 403


def test_methods_that_the_node_excludes_are_not_called(make_site: MakeSite) -> None:
    site = make_site(
        application="evm",
        dev=True,
        json_rpc_enable=True,
        deny_methods=("eth_getLogs", "eth_accounts"),
    )
    found = counter_on(site).post()

    assert "eth_getLogs" in found.text
    assert "Send from" not in found.text


def test_events_are_decoded_and_paged(counter: Deployed) -> None:
    for number in range(1, 31):
        counter.call("add(uint256)", number)

    raw = page(counter.site.client, f"/contract/{counter.address}")
    newest = counter.post()

    assert amounts(newest) == list(range(30, 5, -1))
    assert "Topic 0" in raw.text
    (older,) = (link for link in raw.links if "cursor=" in link)
    client = counter.site.client
    assert amounts(Html(client.post(older, data={"abi": ABI}).text)) == [5, 4, 3, 2, 1]
    actions = [each.get("formaction") for tag, each in newest.elements if tag == "button"]
    assert older in actions
    found = page(client, f"/contract/{counter.address}?to=3")
    assert "from 1 to 3" in found.text
    assert "expected a number" in page(client, f"/contract/{counter.address}?to=x").text


def amounts(found: Html) -> list[int]:
    return [int(n) for n in re.findall(r"amount uint256 (\d+) total", found.text)]


def test_hostile_names_and_values_are_text(echo: Deployed) -> None:
    name = "<script>alert(1)</script>\u202e\"'"
    # The result is the calldata: its selector is before the offset of a string.
    hostile = {
        **entry("function", name, "string"),
        "stateMutability": "view",
        "outputs": [{"name": name, "type": "bytes4"}],
    }
    hostile["inputs"][0]["name"] = name
    key = selector(f"{name}(string)")
    form = {"abi": json.dumps([hostile]), "read": key, f"{key}.0": name}

    response = echo.site.client.post(f"/explorer/contract/{ECHO}", data=form)
    found = Html(response.text)

    assert response.status_code == 200
    assert "\u202e" not in response.text
    assert "<script>alert(1)</script>\\u{202e}" in found.whole_text
    assert [
        each for tag, each in found.elements if tag == "script" and not each.get("src")
    ] == []


def test_many_functions_are_cut(counter: Deployed) -> None:
    many = [entry("function", f"f{n}", "uint8", "uint8") for n in range(400)]
    assert "134 more functions are not shown" in counter.post({"abi": json.dumps(many)}).text
