"""Tests of Ethereum transactions, logs and accounts on the explorer's pages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from flask_noderpc import EmbeddedChain, explorer_bp
from flask_noderpc.ethereum.ethermint_double import (
    EmittedLog,
    EthermintDouble,
    log_calldata,
    log_contract,
)
from flask_noderpc.ethereum.protocol.crypto import DEV_KEYS
from flask_noderpc.protocol.secp256k1eth import keccak, to_checksum
from flask_noderpc.testing.node import app_for

from ..ethereum.protocol.signing import TO, sender, transfer
from .abi_forms import TRANSFER
from .conftest import MakeSite
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
    for call in (
        {"from": own, "to": other, "value": hex(15 * 10**17)},
        # PUSH0, PUSH0, REVERT.
        {"from": own, "data": "0x5f5ffd", "gas": "0x20000", "value": "0x5"},
    ):
        body = {"jsonrpc": "2.0", "id": 1, "method": "eth_sendTransaction", "params": [call]}
        assert "result" in site.client.post("/evm", json=body).get_json()
        site.chain.produce()

    shown = f"{own[:8]}…{own[-4:]} → {other[:8]}…{other[-4:]}, 1.5 ether"
    reverted = (
        f"{own[:8]}…{own[-4:]} → new contract, 0.000000000000000005 ether: execution reverted"
    )
    for path in ("/", "/txs", f"/account/{own}"):
        text = page(site.client, path).text
        assert shown in text, path
        assert reverted in text, path
    assert page(site.client, f"/account/{own}").text.count(" sent ") == 1
    assert "sent 1.5 ether" in page(site.client, f"/account/{own}").text
    assert "received 1.5 ether" in page(site.client, f"/account/{other}").text
    assert "1.5 ether" in site.client.get(f"/explorer/account/{other}/txs.csv").text
