"""Tests that the feed delivers every height once and in order, for all faults of its backend.
Tests that the feed delivers every height once and in order, for all faults of its backend."""

from __future__ import annotations

import logging
import threading

import pytest

from flask_noderpc import MemoryChain
from flask_noderpc.domain.block import Block, BlockID
from flask_noderpc.errors import StoreError
from flask_noderpc.events.feed import Feed, HeightSource
from flask_noderpc.events.messages import messages_at
from flask_noderpc.testing.chains import ChainMaker
from tests.helpers.until import PATIENCE


class Faulty(MemoryChain):
    """A chain that fails sometimes when blocks are read."""

    faults: list[Exception]

    def block(self, height: int) -> tuple[BlockID, Block]:
        if height % 2 and self.faults:
            raise self.faults.pop()
        return super().block(height)


class Numbers:
    """A source that grows with each read; the first read lasts until it may end."""

    def __init__(self) -> None:
        self.looking, self.may_end = threading.Event(), threading.Event()
        self.threads: list[int] = []

    def now(self) -> int:
        return 0

    def poll(self, after: int, timeout_s: float) -> int:
        self.threads.append(threading.get_ident())
        self.looking.set()
        assert self.may_end.wait(PATIENCE)
        return after + 1


def test_follow_during_stop_starts_no_second_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = Numbers()
    feed = Feed(source, is_followed=lambda: True)
    feed.follow()
    assert source.looking.wait(PATIENCE)
    (first,) = [t for t in threading.enumerate() if t.ident == source.threads[0]]
    waits, join = threading.Event(), first.join

    def announced(timeout: float | None = None) -> None:
        waits.set()
        join(timeout)

    monkeypatch.setattr(first, "join", announced)
    stopping = threading.Thread(target=feed.stop, daemon=True)
    stopping.start()
    assert waits.wait(PATIENCE)
    feed.follow()
    source.may_end.set()

    stopping.join(PATIENCE)
    assert not stopping.is_alive()
    join(PATIENCE)
    assert not first.is_alive()
    feed.follow()
    assert len(source.threads) == 1


@pytest.mark.parametrize("initial_height", [1, 50])
def test_faults_lose_nothing_and_repeat_nothing(
    initial_height: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    maker = ChainMaker(initial_height=initial_height)
    chain = Faulty(maker.genesis, state=maker.state)
    chain.faults = [StoreError("locked"), ValueError("unforeseen"), StoreError("locked")]
    received: list[int] = []
    enough = threading.Event()

    def publish(height: int) -> None:
        received.append(next(messages_at(chain, height)).height)
        if len(received) == 6:
            enough.set()

    feed = Feed(HeightSource(chain, publish), is_followed=lambda: True)
    feed.follow()
    chain.append_block(*(maker.block(b"k%d=v" % number) for number in range(6)))
    assert enough.wait(PATIENCE)
    feed.stop()

    assert received == list(range(initial_height, initial_height + 6))
