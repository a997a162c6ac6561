"""Tests of the matches of a subscription: each rule of CometBFT 0.38, on blocks that KVStore
made.

KVStore gives each transaction two events of type ``app``. The first has the creator «Cosmoshi
Netowoko» and the transaction's key as ``key``, the second the creator «Cosmoshi» and the
transaction's value as ``key``.
"""

from __future__ import annotations

import base64

import pytest

from flask_noderpc.protocol.comet.hashes import tx_hash
from flask_noderpc.testing import Node

from .conftest import Connect

TXS = (b"name=satoshi", b"n1=10", b"n2=8atom", b"n3=6.5stake", b"day=2020-05-06")
ALL = [tx.partition(b"=")[0].decode() for tx in TXS]
HASH = tx_hash(b"n1=10").hex()


@pytest.mark.parametrize(
    ("query", "matched"),
    [
        ("tm.event = 'Tx'", ALL),
        ("tm.event = 'tx'", []),
        # Any value of the key may match, and each condition may match another event.
        ("app.key = 'name'", ["name"]),
        ("app.key = 'satoshi'", ["name"]),
        ("app.creator = 'Cosmoshi' AND app.key = 'name'", ["name"]),
        ("app.key = 'name' AND app.key = 'satoshi'", ["name"]),
        ("app.key = 'name' AND app.key = 'n1'", []),
        # Attributes that are not indexed match, too.
        ("app.noindex_key = 'index is working'", ALL),
        ("app.noindex_key CONTAINS 'working'", ALL),
        ("app.key CONTAINS 'atos'", ["name"]),
        ("app.key CONTAINS 'ATOS'", []),
        # EXISTS takes a key, or the type of an event.
        ("app.key EXISTS", ALL),
        ("app EXISTS", ALL),
        ("ap EXISTS", []),
        ("app.missing EXISTS", []),
        # A value is the number that it begins with; other values do not match.
        ("app.key = 8", ["n2"]),
        ("app.key > 6 AND app.key < 7", ["n3"]),
        ("app.key >= 10", ["n1", "day"]),
        ("app.key < 8", ["n3"]),
        ("app.key <= 8.0", ["n2", "n3"]),
        # Dates are compared with dates.
        ("app.key = DATE 2020-05-06", ["day"]),
        ("app.key > DATE 2020-05-05", ["day"]),
        ("app.key > TIME 2020-05-05T00:00:00Z", []),
        # Hashes are in upper case.
        (f"tx.hash = '{HASH.upper()}'", ["n1"]),
        (f"tx.hash = '{HASH}'", []),
        ("tx.height = 1", ALL),
        ("tx.height > 1", []),
        ("block.height = 1", []),
    ],
)
def test_subscriptions_match_transactions_by_query(
    node: Node, connect: Connect, query: str, matched: list[str]
) -> None:
    client = connect()
    assert client.asked("subscribe", {"query": query})["result"] == {}
    # All notifications of the transactions arrive before the change of the second block.
    client.asked("subscribe", {"query": "tm.event = 'ValidatorSetUpdates'"}, "end")
    for tx in TXS:
        node.chain.mempool.submit(tx)
    node.produce()
    key = base64.b64encode(bytes(32)).decode()
    node.chain.mempool.submit(f"val=ed25519!{key}!1".encode())
    node.produce()

    received = []
    while (message := client.json())["id"] != "end":
        data = message["result"]["data"]
        assert data["type"] == "tendermint/event/Tx" or "tm.event" not in query
        if "TxResult" in data["value"]:
            tx = base64.b64decode(data["value"]["TxResult"]["tx"])
            received.append(tx.partition(b"=")[0].decode())
    assert [key for key in received if key != "val"] == matched


@pytest.mark.parametrize("method", ["subscribe", "unsubscribe", "tx_search", "block_search"])
def test_ten_thousand_conditions_are_refused_at_once(connect: Connect, method: str) -> None:
    query = " AND ".join(["a.b = 'c'"] * 10_000)

    error = connect().asked(method, {"query": query})["error"]

    assert "expected at most 512 bytes" in error["data"]
