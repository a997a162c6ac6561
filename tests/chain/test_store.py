"""Tests that an embedded chain works with any ``ChainStore``, passed or opened."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from flask_noderpc import EmbeddedChain, SQLiteBackend
from flask_noderpc.backends.base.capabilities import Mempool
from flask_noderpc.chain.applications.kvstore import KVStore
from flask_noderpc.domain.block import Block, BlockID
from flask_noderpc.errors import NotSupported
from flask_noderpc.signals import block_committed
from flask_noderpc.testing.node import app_for
from tests.helpers.stores import make_store


def test_a_chain_serves_and_writes_the_store_given_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, counted = SQLiteBackend(tmp_path / "chain.db"), list[int]()
    read = store.reads.block

    def block(height: int) -> tuple[BlockID, Block]:
        counted.append(height)
        return read(height)

    monkeypatch.setattr(store.reads, "block", block)
    with closing(EmbeddedChain(store, produce=False)) as chain:
        client = app_for(chain).test_client()
        assert client.get('/broadcast_tx_sync?tx="a=1"').status_code == 200
        assert store.mempool.pending_count().total == 1
        assert chain.produce() == 1
        found = client.get("/block?height=1").get_json()["result"]

    assert found["block"]["header"]["height"] == "1"
    assert counted == [1]
    # A closed store opens again by itself.
    with closing(store):
        assert store.reads.latest_height() == 1
        assert found["block_id"]["hash"].lower() == store.reads.hash_at(1).hex()


def test_a_chain_uses_the_application_of_its_store(tmp_path: Path) -> None:
    store = make_store(tmp_path / "chain.db", application=KVStore)
    with closing(EmbeddedChain(store, produce=False)) as chain:
        assert chain.application is store.abci


def test_the_home_of_a_chain_is_the_folder_of_its_store(tmp_path: Path) -> None:
    with closing(EmbeddedChain(make_store(tmp_path / "chain.db"), produce=False)) as chain:
        chain.start()

    assert (tmp_path / "config" / "genesis.json").exists()


def test_a_capability_of_a_chain_is_replaced_and_not_its_store_s(tmp_path: Path) -> None:
    with closing(EmbeddedChain(tmp_path / "chain.db", produce=False)) as chain:
        chain.mempool = Mempool()
        chain.start()
        with pytest.raises(NotSupported):
            chain.mempool.submit(b"a=1")
        assert chain.store.mempool.submit(b"a=1").code == 0
        assert chain.produce() == 1


def test_the_chain_is_the_sender_of_block_committed(tmp_path: Path) -> None:
    senders: list[object] = []

    def receive(sender: object, **values: object) -> None:
        senders.append(sender)

    with closing(EmbeddedChain(make_store(tmp_path / "chain.db"), produce=False)) as chain:
        with block_committed.connected_to(receive):
            chain.produce()
        assert senders == [chain]
