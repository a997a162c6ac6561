"""Tests of pending transactions: limits, order, the cache, and several backends on one file."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import pytest

from flask_noderpc import SQLiteBackend
from flask_noderpc.backends.base.application import BlockLimits
from flask_noderpc.backends.base.capabilities import MempoolLimits
from flask_noderpc.backends.base.new_blocks import CommittedBlock
from flask_noderpc.chain.applications.kvstore import KVStore
from flask_noderpc.domain.abci import ExecTxResult
from flask_noderpc.errors import MempoolFull, NotSupported, TxInCache, TxTooLarge
from flask_noderpc.testing.chains import ChainMaker
from tests.helpers.until import PATIENCE

from .conftest import OpenStore


@pytest.fixture
def pool(open_store: OpenStore, maker: ChainMaker) -> SQLiteBackend:
    return limited(open_store, maker)


def limited(open_store: OpenStore, maker: ChainMaker, **limits: int) -> SQLiteBackend:
    backend = open_store(application=KVStore, limits=MempoolLimits(**limits))
    backend.init_chain(maker.genesis, maker.state)
    return backend


def failing(item: CommittedBlock) -> CommittedBlock:
    """Return the block with all its transactions failed."""
    failed = tuple(ExecTxResult(code=4) for _ in item.block.txs)
    return replace(item, results=replace(item.results, tx_results=failed))


def test_transactions_wait_in_the_order_they_came(pool: SQLiteBackend) -> None:
    txs = tuple(b"key%d=value" % number for number in (3, 1, 2))
    for tx in txs:
        assert pool.mempool.submit(tx).code == 0

    waiting = pool.mempool.pending(2)

    assert waiting.txs == txs[:2]
    assert (waiting.total, waiting.total_bytes) == (3, sum(map(len, txs)))
    count = pool.mempool.pending_count()
    assert (count.total, count.total_bytes) == (3, 30)
    assert pool.reap(BlockLimits(-1, -1)) == txs


def test_a_repeated_transaction_is_refused(pool: SQLiteBackend) -> None:
    pool.mempool.submit(b"a=b")

    with pytest.raises(TxInCache, match=r"^tx already exists in cache$"):
        pool.mempool.submit(b"a=b")


def test_a_transaction_over_the_limit_is_refused(
    open_store: OpenStore, maker: ChainMaker
) -> None:
    pool = limited(open_store, maker, max_tx_bytes=5)
    assert pool.mempool.submit(b"a=bcd").code == 0

    with pytest.raises(
        TxTooLarge, match=r"^Tx too large\. Max size is 5, but got 6"
    ) as refusal:
        pool.mempool.submit(b"a=bcde")

    assert (refusal.value.size, refusal.value.limit) == (6, 5)


def test_a_mempool_is_full_by_count(open_store: OpenStore, maker: ChainMaker) -> None:
    pool = limited(open_store, maker, max_txs=2)
    for tx in (b"a=1", b"b=2"):
        pool.mempool.submit(tx)

    with pytest.raises(
        MempoolFull,
        match=r"^mempool is full: number of txs 2 \(max: 2\), total txs bytes 6 \(max: \d+\)",
    ):
        pool.mempool.submit(b"c=3")


def test_a_mempool_is_full_by_bytes(open_store: OpenStore, maker: ChainMaker) -> None:
    pool = limited(open_store, maker, max_bytes=6)
    for tx in (b"a=1", b"b=2"):
        pool.mempool.submit(tx)

    with pytest.raises(MempoolFull, match=r"total txs bytes 6 \(max: 6\)"):
        pool.mempool.submit(b"c=3")


def test_full_comes_before_too_large_and_too_large_before_seen(
    open_store: OpenStore, maker: ChainMaker
) -> None:
    pool = limited(open_store, maker, max_txs=1, max_tx_bytes=3)
    pool.mempool.submit(b"a=1")
    with pytest.raises(MempoolFull):
        pool.mempool.submit(b"a=1")
    with pytest.raises(MempoolFull):
        pool.mempool.submit(b"a=1000")
    pool.append_block(maker.block(b"a=1"))

    with pytest.raises(TxTooLarge):
        pool.mempool.submit(b"a=1000")
    with pytest.raises(TxInCache):
        pool.mempool.submit(b"a=1")


def test_a_committed_transaction_leaves_and_is_remembered(
    pool: SQLiteBackend, maker: ChainMaker
) -> None:
    for tx in (b"a=1", b"b=2"):
        pool.mempool.submit(tx)

    pool.append_block(maker.block(b"a=1"))

    assert pool.mempool.pending(10).txs == (b"b=2",)
    with pytest.raises(TxInCache):
        pool.mempool.submit(b"a=1")


def test_a_transaction_committed_without_having_waited_is_remembered(
    pool: SQLiteBackend, maker: ChainMaker
) -> None:
    pool.append_block(maker.block(b"a=1"))

    with pytest.raises(TxInCache):
        pool.mempool.submit(b"a=1")


def test_a_transaction_that_failed_may_be_sent_again(
    pool: SQLiteBackend, maker: ChainMaker
) -> None:
    pool.mempool.submit(b"a=1")
    pool.append_block(failing(maker.block(b"a=1")))

    assert pool.mempool.submit(b"a=1").code == 0


def test_the_mempool_cache_evicts_the_oldest(open_store: OpenStore, maker: ChainMaker) -> None:
    pool = limited(open_store, maker, cache_size=2)
    pool.append_block(maker.block(b"a=1", b"b=2", b"c=3"))

    assert pool.mempool.submit(b"a=1").code == 0
    for tx in (b"b=2", b"c=3"):
        with pytest.raises(TxInCache):
            pool.mempool.submit(tx)


def test_a_pending_transaction_is_a_duplicate_after_cache_eviction(
    open_store: OpenStore, maker: ChainMaker
) -> None:
    pool = limited(open_store, maker, cache_size=1)
    pool.mempool.submit(b"a=1")
    pool.append_block(maker.block(b"b=2", b"c=3"))

    with pytest.raises(TxInCache):
        pool.mempool.submit(b"a=1")


def test_a_dropped_transaction_can_be_sent_again(pool: SQLiteBackend) -> None:
    pool.mempool.submit(b"a=1")

    pool.drop_pending([b"a=1", b"never=there"])

    assert pool.mempool.pending_count().total == 0
    assert pool.mempool.submit(b"a=1").code == 0


def test_pending_transactions_survive_a_restart(
    pool: SQLiteBackend, open_store: OpenStore
) -> None:
    pool.mempool.submit(b"a=1")
    pool.close()

    again = open_store(application=KVStore)

    assert again.mempool.pending(10).txs == (b"a=1",)
    with pytest.raises(TxInCache):
        again.mempool.submit(b"a=1")


def test_two_backends_share_one_mempool(pool: SQLiteBackend, open_store: OpenStore) -> None:
    other = open_store(application=KVStore)
    pool.mempool.submit(b"a=1")

    assert other.mempool.pending(10).txs == (b"a=1",)
    with pytest.raises(TxInCache):
        other.mempool.submit(b"a=1")
    other.drop_pending([b"a=1"])
    assert pool.mempool.pending_count().total == 0


def test_two_backends_can_t_both_take_the_last_place(
    open_store: OpenStore, maker: ChainMaker
) -> None:
    pools = [limited(open_store, maker, max_txs=10) for _ in range(2)]
    outcomes: list[str] = []

    def send(worker: int) -> None:
        for number in range(10):
            try:
                pools[worker % 2].mempool.submit(b"from%d=%d" % (worker, number))
                outcomes.append("in")
            except MempoolFull:
                outcomes.append("full")

    run_together([partial(send, worker) for worker in range(4)])

    assert (outcomes.count("in"), outcomes.count("full")) == (10, 30)
    assert pools[0].mempool.pending_count().total == 10


def test_many_threads_lose_nothing_and_duplicates_are_refused_exactly(
    pool: SQLiteBackend,
) -> None:
    txs = [b"key%d=value" % number for number in range(40)]
    outcomes: list[tuple[bytes, str]] = []

    def send() -> None:
        for tx in txs:
            try:
                pool.mempool.submit(tx)
                outcomes.append((tx, "in"))
            except TxInCache:
                outcomes.append((tx, "seen"))

    run_together([send] * 6)

    assert len(outcomes) == 240
    assert sorted(tx for tx, outcome in outcomes if outcome == "in") == sorted(txs)
    assert sorted(pool.mempool.pending(100).txs) == sorted(txs)


def run_together(works: Sequence[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)


def test_a_wait_for_transactions_ends_when_one_comes(pool: SQLiteBackend) -> None:
    assert not pool.wait_for_pending(0.01)
    sender = threading.Thread(target=pool.mempool.submit, args=(b"a=1",))
    sender.start()

    assert pool.wait_for_pending(PATIENCE)
    sender.join()


def test_wait_for_height_sees_blocks_of_another_backend(
    pool: SQLiteBackend, open_store: OpenStore, maker: ChainMaker
) -> None:
    other = open_store()
    writer = threading.Thread(target=other.append_block, args=(maker.block(),))
    writer.start()

    assert pool.reads.wait_for_height(0, PATIENCE) == 1
    writer.join()


def test_a_backend_without_an_application_takes_no_transactions(
    store: SQLiteBackend,
) -> None:
    with pytest.raises(NotSupported, match="no application"):
        store.mempool.submit(b"a=1")
    with pytest.raises(NotSupported):
        store.application.info()
    with pytest.raises(NotSupported):
        store.application.query("", b"", 0, False)


def test_a_mempool_cursor_returns_each_transaction_once(pool: SQLiteBackend) -> None:
    assert (pool.mempool.latest_pending(), pool.mempool.wait_for_pending_after(0, 0)) == (
        0,
        False,
    )
    pool.mempool.submit(b"a=1")
    pool.mempool.submit(b"b=2")
    (first, _), (second, tx) = pool.mempool.pending_after(0, 10)

    assert (pool.mempool.pending_after(first, 10), tx) == (((second, b"b=2"),), b"b=2")
    assert pool.mempool.latest_pending() == second
    assert pool.mempool.wait_for_pending_after(first, 0)
    pool.mempool.flush()
    pool.mempool.submit(b"c=3")

    # Numbers are not used twice, so an earlier cursor is still valid.
    assert [tx for _, tx in pool.mempool.arrived_after(second, 10)] == [b"c=3"]
    assert [tx for _, tx in pool.mempool.pending_after(second, 10)] == [b"c=3"]
