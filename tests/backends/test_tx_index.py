"""Tests that a transaction that was committed more than once is found where it succeeded."""

from __future__ import annotations

from flask_noderpc import SQLiteBackend
from flask_noderpc.protocol.comet.hashes import tx_hash
from flask_noderpc.testing.chains import ChainMaker

from .test_mempool import failing


def test_a_transaction_committed_twice_is_found_at_the_later_height(
    store: SQLiteBackend, maker: ChainMaker
) -> None:
    store.append_block(maker.block(b"a=1"), maker.block(b"b=2", b"a=1"))

    found = store.reads.tx(tx_hash(b"a=1"))

    assert (found.height, found.index) == (2, 1)
    assert store.verify() == 2


def test_a_later_failure_does_not_hide_an_earlier_success(
    store: SQLiteBackend, maker: ChainMaker
) -> None:
    store.append_block(maker.block(b"a=1"), failing(maker.block(b"a=1")))

    assert store.reads.tx(tx_hash(b"a=1")).height == 1


def test_a_later_failure_replaces_an_earlier_failure(
    store: SQLiteBackend, maker: ChainMaker
) -> None:
    failing_tx = b"val=no validator"
    store.append_block(maker.block(failing_tx), maker.block(failing_tx))

    found = store.reads.tx(tx_hash(failing_tx))

    assert (found.height, found.result.code) == (2, 2)
