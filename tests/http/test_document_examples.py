"""Tests of parameters, and of the order of members, as in the interface document."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from flask_noderpc import EmbeddedChain
from flask_noderpc.chain.applications.merkle_kvstore import MerkleKVStore
from flask_noderpc.protocol.comet.hashes import tx_hash
from flask_noderpc.testing.node import app_for

from . import chain as sample

# document: Peer and Monitor.
PEER = ["node_info", "is_outbound", "remote_ip", "connection_status"]
CONNECTION = ["Duration", "SendMonitor", "RecvMonitor", "Channels"]
MONITOR = ["Active", "Start", "Duration", "Idle", "Bytes", "Samples", "InstRate", "CurRate"]
MONITOR += ["AvgRate", "PeakRate", "BytesRem", "TimeRem", "Progress"]


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[EmbeddedChain]:
    made = EmbeddedChain(tmp_path / "chain.db", application=MerkleKVStore, produce=False)
    made.start()
    for tx in (b"456=a", b"name=satoshi"):
        made.mempool.submit(tx)
    made.produce()
    made.produce()
    yield made
    made.close()


@pytest.fixture
def client(chain: EmbeddedChain) -> FlaskClient:
    return app_for(chain).test_client()


def got(client: FlaskClient, path: str) -> Any:
    return json.loads(client.get(path).data)["result"]


@pytest.mark.parametrize("tx", ["b=456", "b%3D456", '"b=456"', "0x" + b"b=456".hex()])
def test_a_transaction_needs_no_quotes(client: FlaskClient, tx: str) -> None:
    assert got(client, f"/broadcast_tx_sync?tx={tx}")["hash"] == tx_hash(b"b=456").hex().upper()


def test_a_bare_text_is_not_read_as_base64(client: FlaskClient) -> None:
    bare = base64.b64encode(b"b=456").decode()
    found = got(client, f"/broadcast_tx_sync?tx={bare}")

    assert found["hash"] == tx_hash(bare.encode()).hex().upper()


def test_a_path_and_a_key_need_no_quotes(client: FlaskClient) -> None:
    response = got(client, "/abci_query?path=/store/main/key&data=456")["response"]

    assert bytes.fromhex(response["value"]) == b"a"
    assert "/a/b/c" in got(client, "/abci_query?path=/a/b/c&data=456")["response"]["log"]


def test_a_query_and_an_order_need_no_quotes(client: FlaskClient) -> None:
    found = got(client, "/tx_search?query=app.key='name'&order_by=desc")

    assert [tx["height"] for tx in found["txs"]] == ["1"]


@pytest.mark.parametrize(("prove", "steps"), [("true", True), ("false", False)])
def test_a_flag_may_be_a_text(client: FlaskClient, prove: str, steps: bool) -> None:
    params = {"path": "/key", "data": b"name".hex(), "prove": prove}
    call = {"jsonrpc": "2.0", "id": 1, "method": "abci_query", "params": params}
    posted = json.loads(client.post("/", json=call).data)["result"]["response"]

    assert bool(posted["proof"]) is steps
    assert (
        got(client, f'/abci_query?path="/key"&data="name"&prove="{prove}"')["response"]
        == posted
    )


def test_a_proof_comes_with_the_place_of_its_key(client: FlaskClient) -> None:
    places = [
        got(client, f"/abci_query?path=/key&data={key}&prove=true")["response"]["index"]
        for key in ("456", "name")
    ]

    assert places == ["0", "1"]


def test_quotes_are_still_needed_where_a_node_needs_them(chain: EmbeddedChain) -> None:
    client = app_for(chain, dialect="comet-0.38").test_client()

    assert client.get("/broadcast_tx_sync?tx=b=456").status_code == 500


def test_a_peer_has_its_members_in_order(tmp_path: Path) -> None:
    with closing(sample.backend(tmp_path)) as backend:
        (peer,) = got(app_for(backend).test_client(), "/net_info")["peers"]

    connection = peer["connection_status"]
    assert (list(peer), list(connection)) == (PEER, CONNECTION)
    assert list(connection["SendMonitor"]) == list(connection["RecvMonitor"]) == MONITOR
