"""Tests of the banner that ``noderpc start`` prints when its node is ready: each line of it
works."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account
from web3 import Web3
from web3.types import RPCEndpoint

from flask_noderpc.cosmos.bank import dev as dev_bank

from ..helpers.banner import rows
from ..helpers.http import get
from ..helpers.until import PATIENCE, until
from .node_process import ANY_PORTS, Node, run_start, started

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "own_message.py"

Rows = dict[str, list[str]]


def banner_of(node: Node) -> Rows:
    node.until_up()
    # The banner is written in one piece.
    until(lambda: "curl" in rows(node.log.read_text()), "the banner")
    return rows(node.log.read_text())


def answered(command: str) -> Any:
    found = subprocess.run(
        [*shlex.split(command), "-sS", "--fail"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)["result"]


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    flags = (
        "--dev",
        "--workers",
        "2",
        "--dialect",
        "comet-0.38",
        "--empty-blocks",
        "--explorer",
    )
    with started(tmp_path_factory.mktemp("dev"), *flags) as node:
        yield node


def test_curl_reads_the_chain_that_is_shown(dev: Node) -> None:
    shown = banner_of(dev)
    (chain,), (curl,) = shown["chain"], shown["curl"]
    chain_id = answered(curl)["node_info"]["network"]
    ethereum = r"EVM chain id 31337, base fee \d+ wei, gas limit 15000000"
    assert re.fullmatch(rf"{chain_id}: evm, {ethereum}, dialect comet-0\.38", chain)
    assert shown["database"] == [str(dev.log.parent / "data" / "noderpc.db")]


def test_accounts_have_ether_and_their_keys(dev: Node) -> None:
    shown = banner_of(dev)
    warning, *accounts = shown["accounts"]
    assert "never send real funds to them" in warning
    (line,) = shown["web3.py"]
    w3: Web3 = eval(line, {"Web3": Web3})
    assert len(accounts) == 10
    Account.enable_unaudited_hdwallet_features()
    (mnemonic,), (paths,) = shown["mnemonic"], shown["derivation"]
    for index, (account, secret) in enumerate(
        zip(accounts, shown["private keys"], strict=True)
    ):
        key = secret.removeprefix(f"({index}) ")
        path = paths.replace("0 to 9", str(index))
        assert Account.from_mnemonic(mnemonic, account_path=path).key.to_0x_hex() == key
        address = Account.from_key(key).address
        assert account == f"({index}) {address} (10000 ETH)"
        assert w3.eth.get_balance(Web3.to_checksum_address(address)) == 10_000 * 10**18
    # anvil's order.
    titles = ["accounts", "private keys", "mnemonic", "chain", "EVM JSON-RPC"]
    assert [title for title in shown if title in titles] == titles


def test_the_chain_id_is_the_one_that_the_chain_records(tmp_path: Path) -> None:
    with started(tmp_path, "--dev") as node:
        banner_of(node)
        w3 = Web3(Web3.HTTPProvider(node.url("EVM JSON-RPC")))
        assert "error" not in w3.provider.make_request(RPCEndpoint("anvil_setChainId"), [4242])
    with started(tmp_path, "--dev", log="again.log") as node:
        (chain,) = banner_of(node)["chain"]
        assert "EVM chain id 4242, base fee" in chain
    flags = ("--dev", "--evm-chain-id", "4242")
    refused = run_start(*flags, "--home", str(tmp_path), *ANY_PORTS)
    assert refused.returncode == os.EX_CONFIG
    assert "NODERPC_EVM_CHAIN_ID: expected 31337, with which the chain began" in refused.stderr


def test_several_processes_show_it_once(dev: Node) -> None:
    banner_of(dev)
    text = dev.log.read_text()
    for line in ("version ", "accounts ", "web3.py "):
        assert len(re.findall(f"^{line}", text, re.MULTILINE)) == 1
    (key,) = {account.split()[1] for account in banner_of(dev)["accounts"][1:2]}
    assert text.count(key) == 1


def test_pages_are_served(dev: Node) -> None:
    pages = [*banner_of(dev)["pages"], *banner_of(dev)["explorer"]]
    paths = [re.sub(r"http://[^/]+", "", page) for page in pages]
    assert paths == ["/", "/try", "/openapi.json", "/explorer/"]
    for page in pages:
        assert get(page).status == 200


def test_the_faucet_of_a_bank_sends_coins(tmp_path: Path) -> None:
    flags = ("--application", "bank", "--dev", "--bank-prefix", "osmo")
    with started(tmp_path, *flags) as node:
        shown = banner_of(node)
        (faucet,) = shown["faucet"]
        assert answered(faucet)["code"] == 0
    assert shown["mnemonic"] == [dev_bank.MNEMONIC]
    assert shown["accounts"][1:] == list(dev_bank.dev_addresses("osmo"))
    assert "NODERPC_BANK_COINS have no effect" not in node.log.read_text()


def test_accounts_are_those_that_the_chain_began_with(tmp_path: Path) -> None:
    flags = ("--application", "bank", "--dev")
    with started(tmp_path, *flags, "--bank-prefix", "osmo", "--bank-coins", "7gold") as node:
        banner_of(node)
    with started(tmp_path, *flags, log="again.log") as node:
        shown = banner_of(node)
        assert answered(shown["faucet"][0])["code"] == 0
    assert shown["accounts"][1:] == list(dev_bank.dev_addresses("osmo"))
    assert "NODERPC_BANK_PREFIX and NODERPC_BANK_COINS have no effect" in (node.log.read_text())


def test_a_bank_that_an_app_made_shows_its_accounts(tmp_path: Path) -> None:
    # The app's chain is a bank with its own message and name.
    app = f"{EXAMPLE}:create_app({str(tmp_path)!r})"
    flags = ("noderpc", "start", "--rpc.laddr", "tcp://127.0.0.1:0")
    command = [sys.executable, "-m", "flask", "--app", app, *flags]
    with started(tmp_path, command=command) as node:
        shown = banner_of(node)
        assert answered(shown["faucet"][0])["code"] == 0
    assert shown["chain"] == ["notes-1: acme-notes, dialect comet-0.38"]
    assert shown["accounts"][1:] == list(dev_bank.dev_addresses())


def test_what_is_missing_is_named_by_its_flag(tmp_path: Path) -> None:
    flags = ("--exclude-routes", "index")
    with started(tmp_path, *flags) as node:
        shown = banner_of(node)
    assert "accounts" not in shown
    assert shown["CosmJS"] == ["needs --dialect comet-0.38, as light clients do"]
    assert shown["Ethereum"] == ["web3.py, ethers and viem need --json-rpc.enable"]
    assert shown["explorer"] == ["needs --explorer"]
    assert [page.rpartition("/")[2] for page in shown["pages"]] == ["try", "openapi.json"]


def test_a_chain_without_ethereum_names_the_commands_for_others(
    dev: Node, tmp_path: Path
) -> None:
    with started(tmp_path, "--json-rpc.enable") as node:
        shown = banner_of(node)
    assert "kvstore, EVM chain id 9000 (no Ethereum transactions)" in shown["chain"][0]
    assert [re.split("  +", line)[0] for line in shown["other chains"]] == [
        "flask --app yourapp run",
        "noderpc start --dev",
        "noderpc start --dev --application bank",
        "noderpc start --upstream URL",
    ]
    assert "other chains" not in banner_of(dev)


def test_a_unix_socket_has_a_line_for_curl(tmp_path: Path) -> None:
    path = tmp_path / "node.sock"
    with started(tmp_path, "--rpc.laddr", f"unix://{path}") as node:
        until(lambda: "curl" in rows(node.log.read_text()), "the banner")
        shown = rows(node.log.read_text())
        assert "pages" not in shown
        assert answered(shown["curl"][0])["node_info"]["moniker"] == "flask-noderpc"


def test_an_app_has_its_own_pages_and_settings(tmp_path: Path) -> None:
    (tmp_path / "hosts.py").write_text(
        "from flask import Flask\n"
        "from flask_noderpc import NodeRPC, explorer_bp\n"
        "app = Flask(__name__)\n"
        f"NodeRPC(app, url_prefix='/node', database={str(tmp_path / 'chain.db')!r},"
        " rpc_laddr='tcp://127.0.0.1:0')\n"
        "app.register_blueprint(explorer_bp, url_prefix='/look')\n"
    )
    app = str(tmp_path / "hosts.py")
    command = [sys.executable, "-m", "flask", "--app", app, "noderpc", "start"]
    with started(tmp_path, command=command) as node:
        until(lambda: "curl" in rows(node.log.read_text()), "the banner")
        shown = rows(node.log.read_text())
        paths = ["/node/", "/node/try", "/node/openapi.json", "/look/"]
        pages = [*shown["pages"], *shown["explorer"]]
        assert [re.sub(r"http://[^/]+", "", page) for page in pages] == paths
        for page in pages:
            assert get(page).status == 200
        assert "NODERPC_DIALECT = 'comet-0.38'" in shown["CosmJS"][0]
        assert answered(shown["curl"][0])["node_info"]


def test_colours_are_for_who_wants_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with started(tmp_path) as node:
        until(lambda: "CosmJS" in node.log.read_text(), "the banner")
        assert "\x1b[36mchain " in node.log.read_text()
