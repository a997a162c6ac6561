"""Tests of Ethereum transactions, logs and accounts on the explorer's pages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account
from eth_account.signers.local import LocalAccount
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st

from flask_noderpc import EmbeddedChain, explorer_bp
from flask_noderpc.cosmos.tx_facts import tx_line as cosmos_line
from flask_noderpc.domain.facts import LogFacts, in_unit
from flask_noderpc.ethereum.application.state import EvmRuntime
from flask_noderpc.ethereum.ethermint_double import (
    EmittedLog,
    EthermintDouble,
    log_calldata,
    log_contract,
)
from flask_noderpc.ethereum.facts.lines import tx_line
from flask_noderpc.ethereum.facts.tokens import transfers
from flask_noderpc.ethereum.protocol.crypto import DEV_KEYS
from flask_noderpc.ethereum.protocol.execution import created_address
from flask_noderpc.protocol.secp256k1eth import keccak, to_checksum
from flask_noderpc.testing.node import app_for

from ..ethereum.protocol import signing
from ..ethereum.protocol.cosmos_txs import bank_message, ethermint_message, wrapped
from ..ethereum.protocol.signing import TO, sender, transfer
from .abi_forms import TRANSFER
from .conftest import MakeSite, Site
from .contracts import REVERTING, call, selector, text_error, token
from .html import Html, page

CONTRACT = "0x" + log_contract().hex()
WHO = bytes(range(1, 21))
TOPICS = (keccak(b"Transfer(address,address,uint256)"), bytes(32), WHO.rjust(32, b"\0"))


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedChain]:
    path = tmp_path_factory.mktemp("ethereum") / "chain.db"
    chain = EmbeddedChain(path, application=EthermintDouble, produce=False)
    chain.start()
    yield chain
    chain.close()


@pytest.fixture(scope="module")
def emitting(chain: EmbeddedChain) -> bytes:
    """Return a transaction whose contract emits a log."""
    data = log_calldata(EmittedLog(TOPICS, (1_500).to_bytes(32)))
    raw = transfer(0, to=CONTRACT, data=data, value=15 * 10**17)
    assert chain.mempool.submit(raw).code == 0
    chain.produce()
    return raw


@pytest.fixture(scope="module")
def client(chain: EmbeddedChain) -> FlaskClient:
    app = app_for(chain, json_rpc_enable=True)
    app.register_blueprint(explorer_bp)
    return app.test_client()


def test_a_transaction_has_its_receipt_and_logs(client: FlaskClient, emitting: bytes) -> None:
    found = page(client, f"/tx/{sha256(emitting).hexdigest()}")

    assert f"0x{keccak(emitting).hex()}" in found.text
    assert "Value 1.5 ether" in found.text
    assert "Status Success" in found.text
    assert TOPICS[0].hex() in found.text
    assert f"/explorer/account/0x{sender().hex()}" in [link.lower() for link in found.links]


def test_its_ethereum_hash_finds_it_too(client: FlaskClient, emitting: bytes) -> None:
    by_hash = client.get(f"/explorer/search?q=0x{keccak(emitting).hex()}")

    found = page(client, by_hash.location.removeprefix("/explorer"))
    assert sha256(emitting).hexdigest().upper() in found.text
    assert "Status Success" in found.text


def test_an_abi_decodes_its_logs(client: FlaskClient, emitting: bytes) -> None:
    address = f"/explorer/tx/{sha256(emitting).hexdigest()}"

    decoded = client.post(address, data={"abi": json.dumps([TRANSFER])})
    found = Html(decoded.text)

    assert decoded.status_code == 200
    assert "Transfer(address,address,uint256)" in found.text
    assert re.search(rf"p1 address {to_checksum(WHO)} p2 uint256 1500", found.text)
    assert "No function of the ABI fits." in found.text
    other = client.post(address, data={"abi": "[]"})
    assert "No event of the ABI fits." in Html(other.text).text


def test_many_logs_are_cut(dev: Site) -> None:
    # The code emits a log without topics 150 times.
    asked(dev, "anvil_setCode", CODE, "0x60965b5f5fa06001900380600257")
    address = f"/explorer/tx/{included(dev, to=CODE)}"

    for suffix, count in (("", 100), ("?whole=1", 150)):
        for response in (
            dev.client.get(address + suffix),
            dev.client.post(address + suffix, data={"abi": "[]"}),
        ):
            found = Html(response.text)
            labels = [each.get("aria-label", "") for _, each in found.elements]
            assert sum(label.startswith("Log ") for label in labels) == count
            assert ("50 more logs are on the page" in found.text) == (count == 100)
            forms = [each.get("action", "") for _, each in found.elements]
            assert any(action.endswith(suffix) and "/tx/" in action for action in forms)


@pytest.mark.parametrize(
    ("abi", "text"),
    [("{", "the ABI can&#39;t be read"), ("x" * 600_000, "request body too large")],
)
def test_what_is_no_abi_is_refused(
    client: FlaskClient, emitting: bytes, abi: str, text: str
) -> None:
    refused = client.post(f"/explorer/tx/{sha256(emitting).hexdigest()}", data={"abi": abi})

    assert (refused.status_code, text in refused.text) == (400, True)


def test_an_account_lists_what_it_sent_and_received(
    client: FlaskClient, emitting: bytes
) -> None:
    digest = sha256(emitting).hexdigest().upper()

    sent = page(client, f"/account/0x{sender().hex()}")
    received = page(client, f"/account/{CONTRACT.upper().replace('0X', '0x')}")

    assert f"/explorer/tx/{digest}" in sent.links
    assert f"/explorer/tx/{digest}" in received.links
    assert "The account's state can't be read" in sent.text


def test_a_waiting_transaction_is_found_by_its_ethereum_hash(
    client: FlaskClient, chain: EmbeddedChain, emitting: bytes
) -> None:
    raw = transfer(1, to=TO)
    chain.mempool.submit(raw)

    assert "Pending in the" in page(client, f"/tx/{keccak(raw).hex()}").text
    chain.produce()
    assert "Status Success" in page(client, f"/tx/{keccak(raw).hex()}").text


def test_an_account_of_the_state_has_a_balance(make_site: MakeSite) -> None:
    site = make_site(application="evm", dev=True, json_rpc_enable=True, block_interval=5)
    site.grow()
    address = to_checksum(DEV_KEYS[0].address)

    found = page(site.client, f"/account/{address}")

    assert "Balance 10,000 ether" in found.text
    assert "account of a key" in found.text
    assert 'value="evm" checked' in site.client.get("/explorer/send").text


def test_a_key_of_another_application_is_no_pair(tmp_path: Path, make_site: MakeSite) -> None:
    site = make_site(application="merkle")
    site.grow(b"name=satoshi")

    assert "satoshi" in page(site.client, "/key?data=name").text


def test_lists_show_parties_value_and_failure(make_site: MakeSite) -> None:
    site = make_site(application="evm", dev=True, json_rpc_enable=True)
    own, other = (to_checksum(key.address) for key in DEV_KEYS[:2])
    hashes = []
    for tx in (
        {"from": own, "to": other, "value": hex(15 * 10**17)},
        # PUSH0, PUSH0, REVERT.
        {"from": own, "data": "0x5f5ffd", "gas": "0x20000", "value": "0x5"},
    ):
        body = {"jsonrpc": "2.0", "id": 1, "method": "eth_sendTransaction", "params": [tx]}
        hashes.append(site.client.post("/evm", json=body).get_json()["result"])
        site.chain.produce()

    made = to_checksum(created_address(DEV_KEYS[0].address, 1))
    shown = f"{own[:8]}…{own[-4:]} → {other[:8]}…{other[-4:]}, 1.5 ether"
    reverted = (
        f"{own[:8]}…{own[-4:]} deploys {made[:8]}…{made[-4:]}, 5 wei: execution reverted Failed"
    )
    for path in ("/", "/txs", f"/account/{own}"):
        text = page(site.client, path).text
        assert shown in text, path
        assert reverted in text, path
        # The link has the node's hash.
        assert all(each in text for each in hashes), path
        assert not any(
            each in link for each in hashes for link in page(site.client, path).links
        )
    assert page(site.client, f"/account/{own}").text.count(" sent ") == 1
    assert "sent 1.5 ether" in page(site.client, f"/account/{own}").text
    assert "received 1.5 ether" in page(site.client, f"/account/{other}").text
    exported = site.client.get(f"/explorer/account/{other}/txs.csv").text
    assert f"1.5 ether,{hashes[0]}" in exported


DEVELOPER: LocalAccount = Account.from_key(DEV_KEYS[0].secret)
OWN, OTHER = (to_checksum(key.address) for key in DEV_KEYS[:2])
CODE = "0x" + "c0de" * 10


def asked(site: Site, method: str, *params: object) -> Any:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer = site.client.post("/evm", json=body).get_json()
    assert "result" in answer, answer
    return answer["result"]


def sent(site: Site, **call: str) -> str:
    """Send a transaction of the first account; return its hash."""
    digest: str = asked(site, "eth_sendTransaction", {"from": OWN, "gas": "0x20000", **call})
    return digest


def included(site: Site, **call: str) -> str:
    digest = sent(site, **call)
    site.chain.produce()
    return digest


@pytest.fixture
def dev(make_site: MakeSite) -> Site:
    return make_site(
        application="evm", dev=True, json_rpc_enable=True, evm_api=("eth", "debug")
    )


def test_lists_name_methods_and_creations(dev: Site) -> None:
    included(dev, to=OTHER, data=call("transfer(address,uint256)", OWN, 5))
    included(dev, to=OTHER, data="0x12345678")
    included(dev, data="0x00")
    sent(dev, to=OTHER, value="0x0")

    parties = f"{OWN[:8]}…{OWN[-4:]} → {OTHER[:8]}…{OTHER[-4:]}"
    listed = page(dev.client, "/txs").text
    assert f"{parties}, transfer Success" in listed
    assert f"{parties}, 0x12345678 Success" in listed
    assert re.search(rf"{OWN[:8]}…{OWN[-4:]} deploys 0x\w{{6}}…\w{{4}} Success", listed)
    assert f"{parties}, 0 ether" in page(dev.client, "/mempool").text


def test_a_pending_transaction_has_its_fields(dev: Site) -> None:
    digest = sent(dev, to=OTHER, data=call("approve(address,uint256)", OTHER, 7))

    found = page(dev.client, f"/tx/{digest}")
    assert f"From {OWN} To {OTHER} Value 0 ether Method approve Nonce 0" in found.text
    assert "Maximum gas price" in found.text
    assert f"Call of approve spender address {OTHER} amount uint256 7" in found.text
    assert f"/explorer/account/{OTHER}" in found.links


def test_a_transfer_of_tokens_shows_symbol_fee_and_internal_calls(dev: Site) -> None:
    asked(dev, "anvil_setCode", CODE, token())
    data = call("transfer(address,uint256)", OTHER, 2_500_000)
    digest = included(dev, to=CODE, value="0x5", data=data)
    receipt = asked(dev, "eth_getTransactionReceipt", digest)

    found = page(dev.client, f"/tx/{digest}").text
    token_row = f"{to_checksum(bytes.fromhex(CODE[2:]))} {OWN} {OTHER} 2.5 TKN"
    assert f"Token transfers Token From To Amount or ID {token_row}" in found
    internal = f"call {to_checksum(bytes.fromhex(CODE[2:]))} {OTHER} 5 wei"
    assert f"Internal calls Kind From To Value {internal}" in found
    fee = int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16)
    assert f"Fee {in_unit(fee, 18, 'ether')}" in found
    assert "of the fee" in found
    assert f"Call of transfer to address {OTHER} amount uint256 2500000" in found


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (text_error("too little"), "execution reverted: too little"),
        ("0x00000000" + call("Panic(uint256)", 0x11)[2:], "arithmetic underflow or overflow"),
        ("0x00000000", "execution reverted"),
    ],
)
def test_lists_and_pages_show_why_a_transaction_reverted(
    dev: Site, data: str, reason: str
) -> None:
    asked(dev, "anvil_setCode", CODE, REVERTING)
    digest = included(dev, to=CODE, data=data)

    assert f"{reason} Failed" in page(dev.client, "/txs").text
    found = page(dev.client, f"/tx/{digest}").text
    assert "Result Failed" in found
    assert re.search(rf"Status Failed Reason [\w :]*{reason}", found)
    assert "can't be traced" not in found


def test_an_abi_decodes_the_error_of_a_contract(dev: Site) -> None:
    asked(dev, "anvil_setCode", CODE, REVERTING)
    digest = included(dev, to=CODE, data="0x00000000" + call("Poor(uint256)", 42)[2:])
    error = {"type": "error", "name": "Poor", "inputs": [{"name": "has", "type": "uint256"}]}

    path = f"/explorer/tx/{digest}"
    decoded = Html(dev.client.post(path, data={"abi": json.dumps([error])}).text).text
    assert "Error Poor(uint256) has uint256 42" in decoded
    assert (
        "No error of the ABI fits." in Html(dev.client.post(path, data={"abi": "[]"}).text).text
    )


def test_commands_of_a_development_chain_are_in_words(dev: Site) -> None:
    asked(dev, "anvil_setBalance", OTHER, hex(5 * 10**18))
    asked(dev, "anvil_setNonce", OTHER, "0x9")
    asked(dev, "anvil_setCode", OTHER, "0x00")
    asked(dev, "anvil_setStorageAt", OTHER, "0x1", "0x" + "00" * 31 + "07")
    asked(dev, "anvil_setNextBlockBaseFeePerGas", "0x77359400")

    found = page(dev.client, "/txs")
    short = f"{OTHER[:8]}…{OTHER[-4:]}"
    for words in (
        f"Set balance of {short} to 5 ether",
        f"Set nonce of {short} to 9",
        f"Set code of {short} to 1 bytes",
        f"Set slot 0x1 of {short} to 0x",
        "Set base fee to 2,000,000,000 wei",
    ):
        assert words in found.text
    one = next(link for link in reversed(found.links) if "/tx/" in link)
    shown = page(dev.client, one.removeprefix("/explorer")).text
    assert f"Development command Account {OTHER} New balance 5 ether" in shown


def test_a_command_with_a_number_that_is_too_long_is_not_decoded() -> None:
    found = tx_line(b'\x7fpatch{"chainId":"0x' + b"f" * 5_000 + b'","alloc":{}}', None)
    assert found is not None
    assert found.text == ""


def test_a_wrapped_transaction_is_shown_as_one_of_ethereum() -> None:
    raws = [transfer(nonce, to=TO, value=10**18) for nonce in range(5)]
    line = tx_line(wrapped(*map(ethermint_message, raws)), None)

    assert line is not None
    assert line.text.count("→") == 3
    assert line.text.endswith("1 ether; and more")
    assert line.ethereum_hash == ""
    one = tx_line(wrapped(ethermint_message(raws[0])), None)
    assert one is not None
    assert one.ethereum_hash == f"0x{keccak(raws[0]).hex()}"
    assert tx_line(wrapped(bank_message()), None) is None


def test_a_wrapped_transaction_has_a_page(client: FlaskClient, chain: EmbeddedChain) -> None:
    raw = wrapped(ethermint_message(transfer(0, signing.OTHER, to=TO, value=10**18)))
    assert chain.mempool.submit(raw).code == 0
    assert f"{TO[:8]}…{TO[-4:]}, 1 ether" in page(client, "/mempool").text
    chain.produce()

    found = page(client, f"/tx/{sha256(raw).hexdigest()}").text
    assert f"To {TO} Value 1 ether Nonce 0" in found
    assert "Status Success" in found
    assert "Field 1" not in found


@given(st.binary(max_size=200), st.sampled_from((b"", b"\x7fpatch", b"\n", b"\x02", b"\xf8")))
def test_any_bytes_have_a_line_or_none(data: bytes, begin: bytes) -> None:
    for read in (tx_line, cosmos_line):
        found = read(begin + data, None)
        assert found is None or isinstance(found.text, str)


def test_a_chain_that_records_no_calls_is_traced(
    make_site: MakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flask_noderpc.ethereum.facts.internal_calls.operations", lambda _: [])
    monkeypatch.setattr(EvmRuntime, "calls_recorded_since", lambda _: None)
    for names, words in (
        (("eth", "debug"), "Internal calls Kind From To Value call"),
        (("eth",), "The transaction can't be traced here: the method debug_traceTransaction"),
    ):
        site = make_site(application="evm", dev=True, json_rpc_enable=True, evm_api=names)
        asked(site, "anvil_setCode", CODE, token())
        data = call("transfer(address,uint256)", OTHER, 1)
        digest = included(site, to=CODE, value="0x5", data=data)
        assert words in page(site.client, f"/tx/{digest}").text


def test_without_the_json_rpc_fields_are_decoded(make_site: MakeSite) -> None:
    site = make_site(application="evm", dev=True, json_rpc_enable=False)
    raw = transfer(0, DEVELOPER, chainId=31337)
    site.grow(raw)

    found = page(site.client, f"/tx/{sha256(raw).hexdigest()}").text
    assert f"To {TO}" in found
    assert "Status Success" in found
    assert "Decode with an ABI" not in found


def words_of(*numbers: int) -> bytes:
    return b"".join(each.to_bytes(32) for each in numbers)


def log_of(signature: str, *topics: int, data: bytes = b"") -> LogFacts:
    own = tuple(each.to_bytes(32) for each in topics)
    return LogFacts(0, CODE, (keccak(signature.encode()), *own), data)


SINGLE = "TransferSingle(address,address,address,uint256,uint256)"
BATCH = "TransferBatch(address,address,address,uint256[],uint256[])"


@pytest.mark.parametrize(
    ("log", "shown"),
    [
        (log_of("Transfer(address,address,uint256)", 1, 2, 77), ["ID 77"]),
        (log_of(SINGLE, 9, 1, 2, data=words_of(5, 3)), ["3 × ID 5"]),
        (
            log_of(BATCH, 9, 1, 2, data=words_of(64, 160, 2, 5, 6, 2, 3, 4)),
            ["3 × ID 5", "4 × ID 6"],
        ),
        # Offsets and sizes that lead out of the data.
        (log_of(BATCH, 9, 1, 2, data=words_of(2**255, 0)), []),
        (log_of(BATCH, 9, 1, 2, data=words_of(0, 32)), []),
        (log_of("Transfer(address,address,uint256)", 1, data=words_of(1)), []),
        (LogFacts(0, CODE, (), b""), []),
    ],
)
def test_transfers_of_other_tokens_have_their_ids(log: LogFacts, shown: list[str]) -> None:
    rows = [row for table in transfers([log], None) for row in table.rows]
    assert [row[-1].text for row in rows] == shown


def test_an_early_token_has_its_symbol_as_a_word() -> None:
    calls: list[str] = []

    def ask(method: str, call: dict[str, str], block: str) -> str:
        calls.append(call["to"])
        is_symbol = call["data"] == "0x" + selector("symbol()").hex()
        return "0x" + (b"MKR".ljust(32, b"\0") if is_symbol else words_of(18)).hex()

    log = log_of("Transfer(address,address,uint256)", 1, 2, data=words_of(10**18))
    (table,) = transfers([replace(log, address=f"0x{n:040x}") for n in range(200)], ask)
    assert [row[-1].text for row in table.rows] == ["1 MKR"] * 5 + ["1" + ",000" * 6] * 95
    assert len(calls) == 10
    assert table.note == "The first 100 are shown."
