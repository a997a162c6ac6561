"""Tests of a companion whose nodes are down, whose clock is wrong, or whose nodes prune
blocks."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from flask_noderpc import ChainBackend
from flask_noderpc.companion import follower, from_settings, head_appender
from flask_noderpc.companion.backend import CompanionBackend
from flask_noderpc.domain.block import Block, BlockID, BlockMeta
from flask_noderpc.domain.time import SECOND
from flask_noderpc.errors import HeightNotAvailable, UpstreamUnavailable
from flask_noderpc.protocol.comet.hashes import header_hash
from flask_noderpc.testing import SampleChain
from flask_noderpc.testing.node import app_for, serve
from tests.helpers.growing import View, grow
from tests.helpers.until import until

from .conftest import HEIGHTS, Companion, Serve, node_of
from .test_follow import reaches, reason

DAY = 86_400


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a second count as a long outage."""
    monkeypatch.setattr(from_settings, "_FOLLOW_PATIENCE_S", 0.1)
    monkeypatch.setattr(follower, "_MAX_PAUSE_S", 0.2)
    monkeypatch.setattr(head_appender, "_STANDSTILL_S", 0.2)


def test_all_nodes_are_down_for_long(
    chain: SampleChain, companion: Companion, caplog: pytest.LogCaptureFixture
) -> None:
    """The state says so, stored blocks are served, and following continues when a node is
    back."""
    caplog.set_level(logging.DEBUG, logger="flask_noderpc.companion")
    inner = node_of(chain, 30)
    with serve(app_for(inner, dialect="comet-0.38")) as url:
        followed = companion(url)
        followed.follow()
        reaches(followed, 30)
        # The identity of the node is served meanwhile.
        assert followed.network.node_info().network == "sample-chain"
    until(lambda: "can't be reached" in reason(followed), "the reason")
    until(lambda: caplog.text.count("it can't be reached; check that") > 3, "some attempts")
    errors = [each.getMessage() for each in caplog.records if each.levelname == "ERROR"]
    (error,) = (each for each in errors if "it can't be reached" in each)
    assert error.endswith("check that the node runs, and --upstream (NODERPC_UPSTREAM)")
    network = followed.network

    def shows_it() -> bool:
        network.upstream_height()
        return set(network.upstreams().values()) == {"failing"}

    until(shows_it, "the state")
    assert followed.reads.block(30)[1] == chain.blocks[29].block
    with pytest.raises(UpstreamUnavailable):
        followed.mempool.submit(b"a=1")
    client = app_for(followed, dialect="comet-0.38").test_client()
    assert client.get("/readyz").status_code == 503
    assert '"latest_block_height":"30"' in client.get("/status").text

    grow(inner, *chain.blocks[30:40])
    with serve(app_for(inner, dialect="comet-0.38"), int(url.rpartition(":")[2])):
        reaches(followed, 40)
        until(lambda: not reason(followed), "readiness")
    assert followed.store.verify() == 40


def _set_clock(backend: CompanionBackend, now: list[int]) -> None:
    options = backend._options
    trust = replace(
        options.fetch.trust, period=14 * DAY * SECOND, clock=lambda: now[0] * SECOND
    )
    backend._options = replace(options, fetch=replace(options.fetch, trust=trust))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-3600, "ahead of this machine's clock"), (15 * DAY, "at most 14 days old")],
)
def test_a_clock_that_is_wrong(
    seconds: int, text: str, chain: SampleChain, serve_node: Serve, companion: Companion
) -> None:
    """No node is refused, the state names the clock, and following goes on when the clock is
    right."""
    inner = node_of(chain, 30)
    # Without a trusted header, a companion whose clock is far ahead would assume a halted
    # chain.
    trusted = header_hash(chain.blocks[19].block.header)
    followed = companion(serve_node(inner), trust=f"20:{trusted.hex()}")
    right = chain.blocks[29].block.header.time // SECOND
    now = [right]
    _set_clock(followed, now)
    followed.follow()
    reaches(followed, 30)

    now[0] = right + seconds
    grow(inner, *chain.blocks[30:32])
    until(lambda: text in reason(followed), "the reason")
    assert followed.reads.latest_height() == 30
    assert set(followed.network.upstreams().values()) == {"up"}

    now[0] = right
    reaches(followed, 32)
    until(lambda: not reason(followed), "readiness")


class Pruned(View):
    """Reads of a node that prunes its blocks below 25 as soon as one below 50 is read."""

    lowest = 1

    def base_height(self) -> int:
        return self.lowest

    def base_meta(self) -> BlockMeta:
        return self.block_meta(self.lowest)

    def block(self, height: int) -> tuple[BlockID, Block]:
        if height < 50:
            self.lowest = 25
        if height < self.lowest:
            raise HeightNotAvailable(height, self.lowest, self.latest_height())
        return super().block(height)


def test_a_node_prunes_while_the_history_is_fetched(
    chain: SampleChain, serve_node: Serve, companion: Companion
) -> None:
    """All blocks that the node still has are stored, and the head is followed."""
    inner = node_of(chain, 65)
    followed = companion(serve_node(ChainBackend(Pruned(inner))))
    followed.follow()
    reaches(followed, 65, 25)
    grow(inner, *chain.blocks[65:])
    reaches(followed, HEIGHTS, 25)
    assert followed.store.verify() == HEIGHTS - 24
    assert not reason(followed)
