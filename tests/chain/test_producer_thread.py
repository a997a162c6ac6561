"""Tests of the producer's thread: its interval, errors and shutdown."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from flask_noderpc.backends.base.application import BlockExecution, BlockRequest
from flask_noderpc.chain.block_scheduler import BlockSchedule
from tests.helpers.until import PATIENCE, until

from .conftest import Open
from .fixtures import Recorder, key, validator_tx, write_home


def test_with_empty_blocks_the_chain_grows_by_itself(open_chain: Open) -> None:
    chain = open_chain(produce=True, schedule=BlockSchedule(0.01, empty_blocks=True))

    assert chain.reads.wait_for_height(4, PATIENCE) >= 5
    assert chain.reads.block(2)[1].txs == ()


def test_without_empty_blocks_a_pending_transaction_triggers_a_block(
    open_chain: Open,
) -> None:
    chain = open_chain(produce=True, schedule=BlockSchedule(0.01, empty_blocks=False))
    for number in range(1, 4):
        chain.mempool.submit(b"key%d=value" % number)

        assert chain.reads.wait_for_height(number - 1, PATIENCE) == number

    assert [len(chain.reads.block(height)[1].txs) for height in (1, 2, 3)] == [1, 1, 1]


def test_without_empty_blocks_an_idle_chain_stands_still(open_chain: Open) -> None:
    chain = open_chain(produce=True, schedule=BlockSchedule(0.001, empty_blocks=False))

    assert chain.reads.wait_for_height(0, 0.3) == 0


def test_each_new_state_is_proved_by_a_block(open_chain: Open) -> None:
    chain = open_chain(produce=True, schedule=BlockSchedule(0.01, proof_blocks=True))
    # In CometBFT, the first block has the app hash of the genesis.
    assert chain.reads.wait_for_height(0, PATIENCE) == 1

    chain.mempool.submit(b"name=satoshi")
    assert chain.reads.wait_for_height(2, PATIENCE) == 3

    assert [len(chain.reads.block(height)[1].txs) for height in (1, 2, 3)] == [0, 1, 0]
    assert chain.reads.block(3)[1].header.app_hash == chain.reads.results(2).app_hash
    assert chain.reads.wait_for_height(3, 0.3) == 3


def test_the_next_block_waits_for_the_interval(open_chain: Open) -> None:
    # Longer than the machine has been running, which is where a monotonic clock may begin.
    chain = open_chain(produce=True, schedule=BlockSchedule(1e9, empty_blocks=True))

    assert chain.reads.wait_for_height(0, PATIENCE) == 1
    assert chain.reads.wait_for_height(1, 0.3) == 1


def test_the_lease_is_renewed_during_a_long_block_interval(
    open_chain: Open, unstarted: Open
) -> None:
    chain = open_chain(produce=True, schedule=BlockSchedule(60, empty_blocks=True, lease_s=0.3))
    chain.reads.wait_for_height(0, PATIENCE)
    rival = unstarted()
    first = rival.store.lease_state()

    for _ in range(3):
        expires = rival.store.lease_state().expires
        until(lambda: rival.store.lease_state().expires > expires, "the lease is renewed")  # noqa: B023

    assert rival.store.lease_state().owner == first.owner
    assert rival.reads.latest_height() == 1


def test_the_thread_and_the_hand_make_blocks_together(open_chain: Open) -> None:
    chain = open_chain(produce=True, schedule=BlockSchedule(0.001, empty_blocks=True))

    made = [chain.produce() for _ in range(30)]

    assert made == sorted(set(made))
    assert chain.store.verify() >= 30


def test_hands_in_several_threads_make_blocks_together(open_chain: Open) -> None:
    chain = open_chain()
    made: list[int] = []
    threads = [
        threading.Thread(target=lambda: made.extend(chain.produce() for _ in range(10)))
        for _ in range(4)
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)

    assert sorted(made) == list(range(1, 41))
    assert chain.store.verify() == 40


class Moody(Recorder):
    """An application that raises in the middle of a block while ``raises`` is true."""

    raises = True

    def finalize_block(self, block: BlockRequest) -> BlockExecution:
        if self.raises:
            raise RuntimeError("not today")
        return super().finalize_block(block)


def test_an_application_that_raises_does_not_end_the_producer(
    open_chain: Open, caplog: pytest.LogCaptureFixture
) -> None:
    moody = Moody()
    chain = open_chain(application=moody, produce=True, schedule=BlockSchedule(0.01))
    chain.mempool.submit(b"7")
    until(lambda: "not today" in caplog.text, "not today")

    moody.raises = False

    assert chain.reads.wait_for_height(0, PATIENCE) == 1
    assert chain.reads.block(1)[1].txs == (b"7",)


def test_a_producer_that_can_not_make_a_block_lets_another_try(
    open_chain: Open, unstarted: Open, caplog: pytest.LogCaptureFixture
) -> None:
    schedule = BlockSchedule(0.01, lease_s=0.3)
    failing = open_chain(application=Moody(), produce=True, schedule=schedule)
    failing.mempool.submit(b"7")
    until(lambda: "not today" in caplog.text, "not today")
    healthy = Moody()
    healthy.raises = False

    other = unstarted(application=healthy, produce=True, schedule=schedule)
    other.start()

    assert other.reads.wait_for_height(0, PATIENCE) == 1


def test_a_halt_is_logged_once(
    open_chain: Open, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_home(tmp_path, {1: 10}, [1])
    chain = open_chain(produce=True, schedule=BlockSchedule(0.001, empty_blocks=True))
    chain.mempool.submit(validator_tx(key(2), 10))
    until(lambda: "more than two thirds" in caplog.text, "more than two thirds")

    chain.reads.wait_for_height(chain.reads.latest_height(), 0.2)

    assert caplog.text.count("more than two thirds") == 1


def test_a_halt_leaves_reads_and_the_mempool_at_work(open_chain: Open, tmp_path: Path) -> None:
    write_home(tmp_path, {1: 10}, [1])
    chain = open_chain(produce=True, schedule=BlockSchedule(0.01, empty_blocks=True))
    chain.mempool.submit(validator_tx(key(2), 10))
    until(lambda: len(chain.store.head().validators.validators) == 2, "the second validator")

    assert chain.mempool.submit(b"a=b").code == 0
    assert chain.mempool.pending(10).txs == (b"a=b",)
    assert len(chain.reads.validators(chain.reads.latest_height() + 1).validators) == 2


def test_a_stop_gives_the_lease_back(open_chain: Open) -> None:
    first = open_chain(
        produce=True, schedule=BlockSchedule(0.01, empty_blocks=True, lease_s=3600)
    )
    first.reads.wait_for_height(0, PATIENCE)
    first.close()

    made = open_chain().produce()

    assert made == first.reads.latest_height()


def test_a_stop_does_not_wait_for_a_long_lease(open_chain: Open) -> None:
    chain = open_chain(produce=True, schedule=BlockSchedule(3600, lease_s=3600))
    closing = threading.Thread(target=chain.close)

    closing.start()

    closing.join(PATIENCE)
    assert not closing.is_alive()


@pytest.mark.sqlite
def test_stop_returns_though_the_store_is_removed(
    open_chain: Open, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    chain = open_chain()
    chain.produce()
    (tmp_path / "chain.db").rename(tmp_path / "elsewhere.db")

    chain.close()

    assert "the lease could not be released" in caplog.text


@pytest.mark.sqlite
def test_a_store_error_is_logged_and_the_thread_continues(
    open_chain: Open, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    chain = open_chain(produce=True, schedule=BlockSchedule(0.01, empty_blocks=True))
    chain.reads.wait_for_height(0, PATIENCE)
    (tmp_path / "chain.db").rename(tmp_path / "elsewhere.db")
    until(lambda: "removed or replaced" in caplog.text, "removed or replaced")
    height = chain.reads.latest_height()

    (tmp_path / "elsewhere.db").rename(tmp_path / "chain.db")

    assert chain.reads.wait_for_height(height, PATIENCE) > height
