"""Tests of an explorer in front of a companion, which shows its store and what only the node
has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from flask_noderpc import explorer_bp
from flask_noderpc.companion.from_settings import companion_from_settings
from flask_noderpc.protocol.comet.hashes import tx_hash
from flask_noderpc.settings import read_settings
from flask_noderpc.testing.node import Node, app_for, run_node

from ..clients.sdk_chain import ALICE, RECORDING, followed_backend
from ..companion.recording import Recording, played
from ..helpers.until import PATIENCE, until
from .html import page

HEAD, BASE = 30, 20


@dataclass(frozen=True)
class Followed:
    """A node, and the explorer of its companion."""

    node: Node
    client: FlaskClient
    stop: Callable[[], None]
    """Stops the node."""


@pytest.fixture
def followed(tmp_path: Path) -> Iterator[Followed]:
    with ExitStack() as nodes:
        node = nodes.enter_context(run_node(dialect="comet-0.38"))
        for number in range(HEAD):
            node.chain.mempool.submit(b"key%d=value" % number)
            node.produce()
        given = {
            "upstream": (node.url,),
            "upstream_poll": 0.05,
            "upstream_timeout": PATIENCE,
            "trust_period": 10**9,
            "backfill_from": BASE,
        }
        backend = companion_from_settings(read_settings({}, given), tmp_path / "companion.db")
        try:
            backend.follow()
            until(
                lambda: (
                    backend.reads.latest_height() >= HEAD
                    and backend.reads.base_height() == BASE
                ),
                "the store",
            )
            app = app_for(backend, dialect="comet-0.38")
            app.register_blueprint(explorer_bp)
            yield Followed(node, app.test_client(), nodes.close)
        finally:
            backend.close()


def test_what_the_store_has_is_shown(followed: Followed) -> None:
    client = followed.client

    assert f"key{HEAD - 1}=value" in page(client, "/").text
    assert f"key{BASE}=value" in page(client, f"/block/{BASE + 1}").text
    tx_hash = sha256(b"key25=value").hexdigest()
    assert "Cosmoshi Netowoko" in page(client, f"/tx/{tx_hash}").text
    assert page(client, "/charts")


def test_heights_below_the_store_are_asked_of_the_node(followed: Followed) -> None:
    client = followed.client

    assert "key4=value" in page(client, "/block/5").text
    assert "Success" in page(client, f"/tx/{sha256(b'key4=value').hexdigest()}").text
    older = page(client, f"/blocks?to={BASE - 5}")
    assert f"/explorer/block/{BASE - 5}" in older.links
    assert "/explorer/block/1" in page(client, "/blocks?to=3").links
    assert page(client, "/validators?height=3")


def test_mempool_and_state_are_the_nodes(followed: Followed) -> None:
    followed.node.chain.mempool.submit(b"soon=1")

    assert "soon=1" in page(followed.client, "/mempool").text
    assert "Value value" in page(followed.client, "/key?data=key3").text


def test_without_its_node_the_store_is_shown(followed: Followed) -> None:
    followed.stop()

    assert f"key{BASE}=value" in page(followed.client, f"/block/{BASE + 1}").text
    assert f"key{HEAD - 1}=value" in page(followed.client, "/").text
    assert "upstream" in page(followed.client, "/mempool", 502).text
    account = page(followed.client, f"/account/{ALICE}").text
    assert "The account's state can't be read: upstream" in account


def test_a_companion_of_the_sdk_shows_messages_in_words(tmp_path: Path) -> None:
    recording = Recording.read(RECORDING)
    # The node was not asked for the state of accounts when it was recorded.
    with (
        played(recording, is_complete=False) as node,
        followed_backend(node, tmp_path / "chain.db", 14) as backend,
    ):
        app = app_for(backend, dialect="comet-0.38")
        app.register_blueprint(explorer_bp)
        client = app.test_client()
        account = page(client, f"/account/{ALICE}")
        sent = {
            row.height: page(client, f"/tx/{tx_hash(row.tx).hex()}").text
            for row in backend.reads.latest_txs(20)
        }

    assert "Send, 1000token to cosmos1avgy…zn4p sent 1000token Success" in account.text
    assert "Delegate, 3000000stake to cosmosvaloper19rl4…egnx" in account.text
    assert "spendable balance 999998993token" in account.text
    assert f"Send /cosmos.bank.v1beta1.MsgSend From address {ALICE}" in sent[7]
    assert "Memo héllo & <you>" in sent[7]
    assert "Delegate /cosmos.staking.v1beta1.MsgDelegate" in sent[11]
