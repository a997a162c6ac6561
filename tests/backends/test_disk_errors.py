"""Tests that a full disk or a removed file causes a clear error and no loss."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from flask_noderpc import SQLiteBackend
from flask_noderpc.chain.applications.kvstore import KVStore
from flask_noderpc.errors import StoreError
from flask_noderpc.protocol.comet.hashes import tx_hash
from flask_noderpc.testing.chains import ChainMaker
from tests.helpers.until import PATIENCE

from .conftest import OpenStore

pytestmark = pytest.mark.sqlite


def test_a_full_disk_refuses_writes_and_serves_reads(
    open_store: OpenStore, maker: ChainMaker
) -> None:
    backend = open_store(application=KVStore, max_pages=70)
    backend.init_chain(maker.genesis, maker.state)
    backend.append_block(maker.block(b"first=1"))
    with pytest.raises(StoreError, match="full, nothing was written"):
        backend.append_block(maker.block(b"big=" + b"x" * 400_000))

    assert backend.reads.latest_height() == 1
    assert backend.reads.tx(tx_hash(b"first=1")).height == 1
    assert backend.verify() == 1
    assert backend.mempool.submit(b"small=1").code == 0


def test_writes_resume_when_the_disk_has_space_again(
    open_store: OpenStore, maker: ChainMaker
) -> None:
    backend = open_store(max_pages=70)
    backend.init_chain(maker.genesis, maker.state)
    large = maker.block(b"big=" + b"x" * 400_000)
    with pytest.raises(StoreError, match="full"):
        backend.append_block(large)
    backend.close()

    roomy = open_store()
    roomy.append_block(large, maker.block(b"next=1"))

    assert roomy.verify() == 2


def test_a_full_store_answers_each_of_many_writers(
    open_store: OpenStore, maker: ChainMaker
) -> None:
    backend = open_store(application=KVStore, max_pages=90)
    backend.init_chain(maker.genesis, maker.state)
    taken: list[bytes] = []
    refused: list[bytes] = []

    def send(worker: int) -> None:
        for number in range(10):
            tx = b"%d.%d=" % (worker, number) + b"x" * 9000
            try:
                backend.mempool.submit(tx)
                taken.append(tx)
            except StoreError:
                refused.append(tx)

    senders = [threading.Thread(target=send, args=(worker,)) for worker in range(6)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join(PATIENCE)

    assert len(taken) + len(refused) == 60
    assert taken
    assert refused
    assert sorted(backend.mempool.pending(100).txs) == sorted(taken)


def test_a_file_that_was_removed_takes_no_more_writes(
    store: SQLiteBackend, maker: ChainMaker, path: Path
) -> None:
    store.append_block(maker.block())
    path.unlink()

    with pytest.raises(StoreError, match="removed or replaced"):
        store.append_block(maker.block())

    assert not path.exists()


def test_a_file_that_was_replaced_takes_no_more_writes(
    store: SQLiteBackend, open_store: OpenStore, maker: ChainMaker, path: Path
) -> None:
    store.append_block(maker.block())
    store.backup(path.with_suffix(".copy"))
    os.replace(path.with_suffix(".copy"), path)

    with pytest.raises(StoreError, match="removed or replaced"):
        store.append_block(maker.block())


def test_a_removed_file_is_not_recreated_by_a_reader(full: SQLiteBackend, path: Path) -> None:
    full.reads.latest_height()
    path.unlink()

    # The only connection for reads is in use, so another one must be opened.
    with full._open().readers.snapshot(), pytest.raises(StoreError, match="opened"):
        full.reads.latest_height()

    assert not path.exists()
