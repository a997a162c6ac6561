"""Tests that an application with its own store is replayed to the chain's height."""

from __future__ import annotations

from pathlib import Path

import pytest

from flask_noderpc.backends.base.application import BlockExecution, BlockRequest
from flask_noderpc.chain.embedded import EmbeddedChain
from flask_noderpc.domain.abci import AppInfo
from flask_noderpc.errors import LeaseLost, StoreError

from .conftest import Open
from .fixtures import Recorder


def grow(chain: EmbeddedChain, *txs: bytes) -> None:
    for tx in txs:
        chain.mempool.submit(tx)
        chain.produce()


def test_an_application_without_a_memory_executes_all_blocks_again(open_chain: Open) -> None:
    first = Recorder()
    chain = open_chain(application=first)
    grow(chain, b"1", b"2", b"3")
    chain.close()

    second = Recorder()
    open_chain(application=second)

    assert second.kept == first.kept == [["1"], ["2"], ["3"]]
    assert second.inits == 1


def test_replay_executes_only_blocks_the_application_missed(
    open_chain: Open, tmp_path: Path
) -> None:
    file = tmp_path / "app.json"
    chain = open_chain(application=Recorder(file))
    grow(chain, b"1", b"2", b"3")
    chain.close()
    file.write_text('[["1"], ["2"]]')
    asked: list[int] = []

    class Watched(Recorder):
        def finalize_block(self, block: BlockRequest) -> BlockExecution:
            asked.append(block.height)
            return super().finalize_block(block)

    open_chain(application=Watched(file))

    assert asked == [3]
    assert file.read_text() == '[["1"], ["2"], ["3"]]'


def test_an_application_that_remembers_is_not_initialised_again(
    open_chain: Open, tmp_path: Path
) -> None:
    file = tmp_path / "app.json"
    chain = open_chain(application=Recorder(file))
    grow(chain, b"1")
    chain.close()
    app = Recorder(file)

    open_chain(application=app)

    assert app.inits == 0


def test_an_application_ahead_of_its_store_is_refused(open_chain: Open, tmp_path: Path) -> None:
    file = tmp_path / "app.json"
    file.write_text('[["1"], ["2"]]')

    with pytest.raises(StoreError, match=r"the application is at height 2, .* height 0"):
        open_chain(application=Recorder(file))


def test_an_application_that_comes_to_another_state_is_refused(open_chain: Open) -> None:
    chain = open_chain(application=Recorder())
    grow(chain, b"1")
    chain.close()

    class Another(Recorder):
        def finalize_block(self, block: BlockRequest) -> BlockExecution:
            made = super().finalize_block(block)
            return BlockExecution(made.tx_results, b"another")

    with pytest.raises(StoreError, match="app hash at height 1 differs"):
        open_chain(application=Another())


def test_a_new_producer_replays_the_blocks_of_the_previous_one(
    open_chain: Open,
) -> None:
    one, two = Recorder(), Recorder()
    first, second = open_chain(application=one), open_chain(application=two)
    grow(first, b"1", b"2")
    with pytest.raises(LeaseLost):
        second.produce()
    first.close()

    grow(second, b"3")

    assert two.kept == [["1"], ["2"], ["3"]]
    assert second.store.verify() == 3


def test_a_block_whose_commit_failed_is_executed_again(
    open_chain: Open,
) -> None:
    class Forgetful(Recorder):
        fails = True

        def commit(self, height: int) -> None:
            if self.fails:
                raise OSError("no room")
            super().commit(height)

    app = Forgetful()
    chain = open_chain(application=app)
    chain.mempool.submit(b"1")
    with pytest.raises(OSError, match="no room"):
        chain.produce()
    app.fails = False

    grow(chain, b"2")

    assert app.kept == [["1"], ["2"]]
    assert chain.store.verify() == 2


def test_an_application_that_does_not_count_is_started_from_the_first_block(
    open_chain: Open,
) -> None:
    class Uncounted(Recorder):
        def info(self) -> AppInfo:
            return AppInfo()

        def finalize_block(self, block: BlockRequest) -> BlockExecution:
            return BlockExecution((), b"same")

    chain = open_chain(application=Uncounted())
    chain.produce()
    chain.close()

    assert open_chain(application=Uncounted()).produce() == 2
