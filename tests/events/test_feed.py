"""The feed hands on every height once and in order, whatever its backend does meanwhile."""

from __future__ import annotations

import logging
import threading

import pytest

from flask_noderpc import MemoryBackend
from flask_noderpc.domain.block import Block, BlockID
from flask_noderpc.errors import StoreError
from flask_noderpc.events.feed import Feed, Heights
from flask_noderpc.events.messages import messages_at
from flask_noderpc.testing.chains import ChainMaker


class Faulty(MemoryBackend):
    """Fails now and then where blocks are read."""

    faults: list[Exception]

    def block(self, height: int) -> tuple[BlockID, Block]:
        if height % 2 and self.faults:
            raise self.faults.pop()
        return super().block(height)


@pytest.mark.parametrize("initial_height", [1, 50])
def test_faults_lose_nothing_and_repeat_nothing(
    initial_height: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    maker = ChainMaker(initial_height=initial_height)
    backend = Faulty(maker.genesis, state=maker.state)
    backend.faults = [StoreError("locked"), ValueError("unforeseen"), StoreError("locked")]
    told: list[int] = []
    enough = threading.Event()

    def publish(height: int) -> None:
        told.append(next(messages_at(backend, height)).height)
        if len(told) == 6:
            enough.set()

    feed = Feed(Heights(backend, publish), wanted=lambda: True)
    feed.follow()
    backend.append_block(*(maker.block(b"k%d=v" % number) for number in range(6)))
    assert enough.wait(20)
    feed.stop()

    assert told == list(range(initial_height, initial_height + 6))
