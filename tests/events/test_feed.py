"""The feed tells every height once, whatever goes wrong in between."""

from __future__ import annotations

import queue
from collections.abc import Iterable

import pytest

from flask_noderpc import MemoryBackend
from flask_noderpc.domain.abci import BlockResults
from flask_noderpc.errors import StoreError
from flask_noderpc.events.feed import Feed
from flask_noderpc.events.messages import Message
from flask_noderpc.testing.chains import ChainMaker


class Faulty(MemoryBackend):
    """Fails once at height 3."""

    fault: Exception | None = None

    def results(self, height: int) -> BlockResults:
        fault = self.fault if height == 3 else None
        if fault is not None:
            self.fault = None
            raise fault
        return super().results(height)


@pytest.mark.parametrize("fault", [StoreError("locked"), RuntimeError("a slip")])
def test_a_fault_neither_ends_the_feed_nor_doubles_a_height(fault: Exception) -> None:
    maker = ChainMaker()
    backend = Faulty(maker.genesis, state=maker.state)
    backend.fault = fault
    told: queue.Queue[int] = queue.Queue()

    def publish(messages: Iterable[Message]) -> None:
        told.put(next(iter(messages)).height)
        if backend.latest_height() == 1:
            # The feed reads both in one go.
            backend.append_block(maker.block(), maker.block())

    feed = Feed(backend, publish, wanted=lambda: True)
    feed.follow()
    backend.append_block(maker.block())
    try:
        assert [told.get(timeout=10) for _ in range(3)] == [1, 2, 3]
    finally:
        feed.stop()
