"""Tests of chains whose header times are ahead of the clock, as in Tendermint 0.34."""

from __future__ import annotations

import logging
import time

import pytest

from flask_noderpc import SQLiteBackend
from flask_noderpc.companion.beginning import FetchOptions
from flask_noderpc.companion.trust import TrustOptions
from flask_noderpc.domain.time import SECOND
from flask_noderpc.errors import UpstreamUnavailable
from flask_noderpc.testing import SampleChain
from flask_noderpc.testing.chains import ChainMaker, make_blocks
from flask_noderpc.testing.node import app_for
from tests.helpers.growing import grow
from tests.helpers.until import until

from .conftest import Companion, Serve, import_all, node_of, upstreams_at
from .test_follow import reaches, reason

# Heights of a block with the present time, and of the last block, which is ahead.
NOW, AHEAD = 40, 60


def chain_ahead(seconds: int, now: int) -> SampleChain:
    """Return a chain whose blocks above ``NOW`` are this many seconds after a time."""
    maker = ChainMaker((10, 7, 3))
    maker._now = now - NOW * SECOND
    blocks = [*make_blocks(maker, NOW - 1, 1)]
    maker._now = now + (seconds - 1) * SECOND
    blocks += make_blocks(maker, AHEAD - NOW + 1, 1)
    return SampleChain(maker.genesis, maker.state, tuple(blocks))


class Clock:
    """The companion's clock, which the test sets."""

    def __init__(self) -> None:
        self.now = time.time_ns()

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    """A clock that stands still."""
    return Clock()


@pytest.mark.parametrize("head_delay", [0, 1])
def test_blocks_that_are_a_little_ahead_are_served(
    head_delay: int, clock: Clock, serve_node: Serve, companion: Companion
) -> None:
    """Blocks may be up to ten seconds ahead."""
    chain = chain_ahead(5, clock.now)
    node = node_of(chain, NOW + 2)
    followed = companion(
        serve_node(node, "comet-0.38"), clock=clock, head_delay=head_delay, trust_period=86400.0
    )
    followed.follow()
    reaches(followed, NOW + 2 - head_delay)
    grow(node, *chain.blocks[NOW + 2 : NOW + 5])

    reaches(followed, NOW + 5 - head_delay)
    assert not reason(followed)


@pytest.mark.parametrize("head_delay", [0, 1])
def test_a_companion_begins_below_the_blocks_that_are_ahead(
    head_delay: int,
    clock: Clock,
    serve_node: Serve,
    companion: Companion,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The companion serves stored blocks, reports what it waits for, and continues in time."""
    caplog.set_level(logging.WARNING)
    chain = chain_ahead(30, clock.now)
    node = node_of(chain, AHEAD)
    followed = companion(
        serve_node(node, "comet-0.38"), clock=clock, head_delay=head_delay, trust_period=86400.0
    )
    followed.follow()

    reaches(followed, NOW - head_delay)
    said = f"header {NOW + 1} is 30 s ahead of this machine's clock"
    until(lambda: said in caplog.text, said)
    client = app_for(followed, dialect="comet-0.38").test_client()
    until(lambda: f"block {NOW + 1} is not stored yet" in client.get("/readyz").text, "a note")
    assert client.get("/readyz").status_code == 200
    assert client.get(f"/block?height={NOW - 1}").json["result"]["block_id"]["hash"]  # type: ignore[index]
    assert followed.reads.latest_height() == NOW - head_delay
    assert "failing" not in followed.network.upstreams().values()

    clock.now += 25 * SECOND
    reaches(followed, NOW + 5 - head_delay)
    clock.now += 60 * SECOND
    reaches(followed, AHEAD - head_delay)
    until(lambda: "is not stored yet" not in client.get("/readyz").text, "no note")
    assert "new blocks are not stored" not in caplog.text


def test_a_followed_chain_whose_next_block_is_ahead(
    clock: Clock, serve_node: Serve, companion: Companion
) -> None:
    """Blocks are followed one by one, as the clock allows."""
    chain = chain_ahead(30, clock.now)
    node = node_of(chain, NOW)
    followed = companion(serve_node(node, "comet-0.38"), clock=clock, trust_period=86400.0)
    followed.follow()
    reaches(followed, NOW)
    client = app_for(followed, dialect="comet-0.38").test_client()
    for height in (NOW + 1, NOW + 2):
        grow(node, chain.blocks[height - 1])
        said = f"block {height} is not stored yet"
        until(lambda said=said: said in client.get("/readyz").text, said)  # type: ignore[misc]
        assert followed.reads.latest_height() == height - 1
        clock.now = chain.blocks[height - 1].block.header.time - 9 * SECOND
        reaches(followed, height)


def test_an_import_stores_what_is_not_ahead(
    clock: Clock, serve_node: Serve, store: SQLiteBackend
) -> None:
    """The import ends with the reason after its patience, and a later one continues."""
    url = serve_node(node_of(chain_ahead(30, clock.now), AHEAD), "comet-0.38")
    options = FetchOptions(TrustOptions(clock=clock))
    for height in (NOW, NOW + 5):
        with pytest.raises(UpstreamUnavailable, match=f"header {height + 1} is .* s ahead"):
            import_all(store, upstreams_at(url), 1, AHEAD, options)
        assert store.reads.latest_height() == height
        clock.now += 25 * SECOND
    assert import_all(store, upstreams_at(url), 1, AHEAD, options) == (1, AHEAD)
