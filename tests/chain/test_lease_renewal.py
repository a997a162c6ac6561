"""Tests of the lease during long blocks, clock jumps and shutdown."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path

import pytest

from flask_noderpc.backends.base.application import BlockExecution, BlockRequest
from flask_noderpc.chain.applications.kvstore import KVStore
from flask_noderpc.chain.block_scheduler import BlockSchedule
from flask_noderpc.chain.embedded import EmbeddedChain
from flask_noderpc.chain.lease import OwnedLease
from flask_noderpc.domain.abci import ExecTxResult
from flask_noderpc.errors import StoreError
from tests.helpers.until import PATIENCE

from .conftest import Open


class Slow(KVStore):
    """An application that takes longer for a block than its producer's lease lasts."""

    def finalize_block(self, block: BlockRequest) -> BlockExecution:
        threading.Event().wait(0.4)
        return super().finalize_block(block)


def test_the_lease_is_renewed_during_a_long_block(unstarted: Open) -> None:
    schedule = BlockSchedule(0.01, empty_blocks=True, lease_s=0.2)
    for _ in range(2):
        unstarted(application=Slow, produce=True, schedule=schedule).start()
    reader = unstarted()

    assert reader.reads.wait_for_height(2, PATIENCE) >= 3


@pytest.mark.sqlite
def test_a_lease_from_a_clock_that_ran_ahead_lapses(
    open_chain: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = open_chain()
    now = time.time_ns()
    with monkeypatch.context() as ahead:
        ahead.setattr(time, "time_ns", lambda: now + 10**15)
        assert chain.store.acquire_lease("ahead", 3.0) is not None

    assert chain.store.acquire_lease("on time", 3.0) is not None


def test_a_chain_that_was_closed_produces_again_when_it_is_started_again(
    open_chain: Open,
) -> None:
    chain = open_chain(produce=True, schedule=BlockSchedule(0.01, empty_blocks=True))
    seen = chain.reads.wait_for_height(1, PATIENCE)
    chain.close()

    chain.start()

    assert chain.reads.wait_for_height(seen + 1, PATIENCE) > seen + 1


def test_starting_and_closing_at_once_leaves_no_producer_behind(unstarted: Open) -> None:
    chain = unstarted(produce=True, schedule=BlockSchedule(0.01, empty_blocks=True))
    before = set(threading.enumerate())
    for _ in range(20):
        threads = [threading.Thread(target=work) for work in (chain.start, chain.close)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    chain.close()

    names = {thread.name for thread in set(threading.enumerate()) - before}
    assert not names & {"noderpc-producer", "noderpc-lease"}


def test_a_recheck_that_fails_does_not_undo_the_block(
    open_chain: Open, caplog: pytest.LogCaptureFixture
) -> None:
    class Fragile(KVStore):
        rechecks = True
        broken = False

        def check_tx(self, tx: bytes) -> ExecTxResult:
            if self.broken:
                raise OSError("gone")
            return super().check_tx(tx)

        def prepare_proposal(self, txs: object, limits: object) -> tuple[bytes, ...]:
            return ()

    chain = open_chain(application=Fragile)
    chain.mempool.submit(b"a=1")
    assert isinstance(chain.application, Fragile)
    chain.application.broken = True
    with caplog.at_level(logging.ERROR):
        assert chain.produce() == 1

    assert "the block is stored" in caplog.text
    assert chain.mempool.pending_count().total == 1


def test_a_recheck_sees_every_transaction_that_waits(open_chain: Open) -> None:
    class Fickle(KVStore):
        rechecks = True
        tired = False

        def check_tx(self, tx: bytes) -> ExecTxResult:
            return ExecTxResult(code=1 if self.tired else 0)

        def prepare_proposal(self, txs: object, limits: object) -> tuple[bytes, ...]:
            return ()

    chain = open_chain(application=Fickle)
    for number in range(50):
        chain.mempool.submit(b"k%d=v" % number)
    assert isinstance(chain.application, Fickle)
    chain.application.tired = True

    chain.produce()

    assert chain.mempool.pending_count().total == 0


@pytest.mark.sqlite
def test_a_copy_without_keys_serves_and_makes_nothing(open_chain: Open, tmp_path: Path) -> None:
    chain = open_chain()
    chain.mempool.submit(b"name=satoshi")
    chain.produce()
    (tmp_path / "away").mkdir()
    chain.store.backup(tmp_path / "away" / "copy.db")

    copy = EmbeddedChain(tmp_path / "away" / "copy.db", produce=False)
    try:
        copy.start()

        assert copy.application.query("", b"name", 0, False).value == b"satoshi"
        assert copy.network.node_info().network == chain.network.node_info().network
        with pytest.raises(StoreError, match="no keys"):
            copy.produce()
        assert not (tmp_path / "away" / "config").exists()
    finally:
        copy.close()


def test_a_renewal_that_fails_is_logged_and_keeps_the_lease(
    open_chain: Open, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> bool:
        raise StoreError("the disk is full", "node.db")

    store = open_chain().store
    owned = OwnedLease(store, 60.0)
    lease = owned.acquire()
    with monkeypatch.context() as broken:
        broken.setattr(store, "renew_lease", fail)
        owned.renew()

    assert "the lease could not be renewed" in caplog.text
    assert owned.acquire() is lease
    assert store.lease_state().owner == owned.owner
