"""Tests of a chain whose genesis_time is in the future: it makes no block before then, but
serves."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from flask_noderpc.chain import home
from flask_noderpc.chain.block_scheduler import BlockSchedule
from flask_noderpc.chain.clock import ManualClock
from flask_noderpc.chain.embedded import EmbeddedChain
from flask_noderpc.domain.time import SECOND
from flask_noderpc.errors import NotReady
from flask_noderpc.ethereum.testing import run_evm_node
from flask_noderpc.testing.node import app_for, serve

from ..helpers.http import call, get
from ..helpers.until import until
from .conftest import Open

HOUR = 3600


@pytest.fixture
def later(tmp_path: Path, clock: ManualClock) -> int:
    """Write a home whose chain begins in an hour; return that time."""
    begins = clock.now() + HOUR * SECOND
    home.create(tmp_path, None, begins)
    return begins


def test_no_block_is_made_before_the_genesis_time(
    open_chain: Open, clock: ManualClock, later: int
) -> None:
    chain = open_chain()

    with pytest.raises(NotReady, match=r"begins at .* in 3600 seconds"):
        chain.produce()
    clock.advance(HOUR - 0.001)
    with pytest.raises(NotReady, match="in 1 seconds"):
        chain.produce()
    clock.advance(0.001)

    assert chain.produce() == 1
    assert chain.reads.block_meta(1).header.time == later


def test_the_node_answers_meanwhile(open_chain: Open, clock: ManualClock, later: int) -> None:
    chain = open_chain()
    with serve(app_for(chain, dialect="comet-0.38")) as url:
        assert get(url, "/status").result["sync_info"]["latest_block_height"] == "0"
        assert get(url, "/health").status == 200
        clock.advance(60.5)
        waiting = get(url, "/readyz")
        sent = get(url, '/broadcast_tx_sync?tx="a=b"').result
        clock.advance(HOUR)
        chain.produce()
        ready = get(url, "/readyz")

    assert waiting.status == 503
    assert "the chain begins at its genesis_time 2023-11-14T23:13:20Z" in waiting.text
    assert "in 3540 seconds" in waiting.text
    assert sent["code"] == 0
    assert ready.status == 200
    assert chain.reads.block(1)[1].txs == (b"a=b",)


@pytest.mark.parametrize("step", [HOUR, 10 * HOUR])
def test_the_thread_waits_for_the_clock_and_says_so_once(
    unstarted: Open,
    clock: ManualClock,
    later: int,
    step: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    schedule = BlockSchedule(interval_s=0.01, empty_blocks=True, lease_s=0.3)
    chain = unstarted(produce=True, schedule=schedule)
    with caplog.at_level(logging.WARNING, "flask_noderpc.producer"):
        chain.start()
        until(lambda: len(caplog.messages) > 0, "the log says that the chain waits")
        # If the clock is set back, the chain only waits longer.
        clock.advance(-HOUR)
        until(lambda: chain.store.lease_state().owner != "", "the lease is held")
        assert chain.reads.latest_height() == 0
        clock.advance(HOUR + step)
        until(lambda: chain.reads.latest_height() > 1, "blocks are made")

    assert [text for text in caplog.messages if "genesis_time" in text] == [
        "no block is produced yet: the chain begins at its genesis_time 2023-11-14T23:13:20Z,"
        " in 3600 seconds"
    ]


def test_a_chain_that_waits_stops_at_once(unstarted: Open, later: int) -> None:
    chain = unstarted(produce=True, schedule=BlockSchedule(lease_s=3600, empty_blocks=True))
    chain.start()

    chain.close()

    assert chain.reads.latest_height() == 0


def test_a_development_chain_goes_ahead_to_its_genesis_time(tmp_path: Path) -> None:
    probe = EmbeddedChain(tmp_path / "probe.db", home=tmp_path, development_keys=True)
    begins = probe.clock.now() + HOUR * SECOND
    home.create(tmp_path, None, begins, b"{}", development=True)
    with run_evm_node(tmp_path) as node:
        error = call(node.url, "evm_mine", []).json["error"]
        assert "genesis_time" in str(error)
        call(node.url, "evm_increaseTime", [HOUR + 60])
        assert call(node.url, "evm_mine", []).json["result"] == "0x0"

        assert node.chain.reads.latest_height() == 1
        assert node.chain.reads.block_meta(1).header.time == begins
