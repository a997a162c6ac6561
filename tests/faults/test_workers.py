"""Tests of workers on one store, one of which is killed: each subscriber gets every event once,
in order."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import chain as chain_of
from pathlib import Path

import pytest

from flask_noderpc.chain.embedded import EmbeddedChain
from tests.helpers.until import until

from .followers import Follower, Place, Poller, Returner, Subscriber
from .processes import is_long
from .servers import Server, serving

KINDS = ("gthread", "gevent", "gthread")
BLOCKS = 10_000 if is_long() else 500
SUBSCRIBERS = 20
CATEGORIES = ("Tx", "Vote")
# Blocks that the slowest reader may be behind; the events of this many blocks fit into the
# default buffer.
MOST_BEHIND = 50


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[EmbeddedChain]:
    with closing(EmbeddedChain(tmp_path / "chain.db", produce=False)) as made:
        made.start()
        yield made


@pytest.fixture
def servers(chain: EmbeddedChain) -> Iterator[list[Server]]:
    """Yield servers with one worker each, so that the test knows which worker serves a
    client."""
    with ExitStack() as stack:
        running = [
            stack.enter_context(serving(kind, Path(chain.store.location.path), produce=False))
            for kind in KINDS
        ]
        yield running
        for server in running:
            assert "Traceback" not in server.log()


def txs_at(height: int) -> int:
    return 1 + height % 2


def wanted(category: str, last: int) -> list[Place]:
    per_block = txs_at if category == "Tx" else lambda _: 1
    return [(height, i) for height in range(1, last + 1) for i in range(per_block(height))]


def make_blocks(chain: EmbeddedChain, last: int, followers: Iterable[Follower]) -> None:
    """Make blocks as fast as the present followers can follow."""

    def all_follow() -> bool:
        return all(f.is_away or f.height >= height - MOST_BEHIND for f in followers)

    for height in range(chain.reads.latest_height() + 1, last + 1):
        for index in range(txs_at(height)):
            chain.mempool.submit(b"key%d.%d=value" % (height, index))
        assert chain.produce() == height
        until(all_follow, f"all are told of height {height - MOST_BEHIND}")


@dataclass(frozen=True, slots=True)
class Crowd:
    """All followers, grouped by what they do when a worker is killed."""

    stayers: list[Subscriber]
    leavers: list[Subscriber]
    returners: list[Returner]
    pollers: list[Poller]

    def __iter__(self) -> Iterator[Follower]:
        return chain_of(self.stayers, self.leavers, self.returners, self.pollers)


def gathered(servers: list[Server], deserted: Server) -> Crowd:
    others = [server for server in servers if server is not deserted]
    half = CATEGORIES * (SUBSCRIBERS // 4)
    return Crowd(
        [Subscriber(server.url, category) for server in others for category in half * 2],
        [Subscriber(deserted.url, category) for category in half],
        [Returner(deserted.url, category) for category in half],
        [Poller(servers, category, BLOCKS) for category in CATEGORIES],
    )


def follow_through_a_kill(chain: EmbeddedChain, crowd: Crowd, deserted: Server) -> None:
    make_blocks(chain, BLOCKS // 2, crowd)
    pid = deserted.census()["pid"]
    os.kill(pid, signal.SIGKILL)
    until(
        lambda: all(f.is_away for f in (*crowd.leavers, *crowd.returners)), "all have lost it"
    )
    # Subscribers of the deserted server miss these blocks, and return while the others are
    # made.
    make_blocks(chain, BLOCKS // 2 + MOST_BEHIND, crowd)
    assert deserted.census()["pid"] != pid
    for returner in crowd.returners:
        returner.may_return.set()
    make_blocks(chain, BLOCKS - MOST_BEHIND, crowd)
    until(lambda: not any(f.is_away for f in crowd.returners), "they are back")
    make_blocks(chain, BLOCKS, crowd)
    until(lambda: all(f.is_away or f.height == BLOCKS for f in crowd), "all are told")
    for follower in crowd:
        follower.end()


@pytest.mark.parametrize("killed", (0, 1) if is_long() else (1,), ids=KINDS.__getitem__)
def test_no_event_is_lost_when_a_worker_is_killed(
    chain: EmbeddedChain,
    servers: list[Server],
    killed: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    began = time.monotonic()
    crowd = gathered(servers, servers[killed])
    follow_through_a_kill(chain, crowd, servers[killed])

    for follower in (*crowd.stayers, *crowd.returners, *crowd.pollers):
        assert follower.told == wanted(follower.category, BLOCKS)
    for leaver in crowd.leavers:
        assert leaver.told == wanted(leaver.category, BLOCKS)[: len(leaver.told)]
    assert all(returner.missed >= MOST_BEHIND for returner in crowd.returners)
    with capsys.disabled():
        print(f" [{BLOCKS} blocks in {time.monotonic() - began:.1f} s, {figures(crowd)}]")


def figures(crowd: Crowd) -> str:
    return (
        f"{sum(len(follower.told) for follower in crowd)} matches told,"
        f" {sum(one.missed for one in crowd.returners)} missed and asked for,"
        f" {sum(one.told_twice for one in crowd.returners)} of them told too,"
        f" {sum(one.failures for one in crowd.pollers)} polls failed"
    )
