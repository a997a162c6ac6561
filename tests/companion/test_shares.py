"""Tests of how the processes of ``noderpc start`` share the budget for a node."""

from __future__ import annotations

import threading
from contextlib import suppress

import pytest

from flask_noderpc.companion.source import FollowedChain
from flask_noderpc.companion.threads import in_background
from flask_noderpc.companion.throttle import Throttle
from flask_noderpc.errors import Busy, ConfigurationError
from flask_noderpc.settings import read_settings
from tests.helpers.until import PATIENCE


def _shares(**given: object) -> tuple[list[int], float]:
    """Return the requests in flight of each process, and the calls a second of all together."""
    settings = read_settings({}, {"upstream": ("http://node:1",), **given})
    found = [each.settings for each in FollowedChain(settings, "chain.db").processes()]
    return [each["upstream_concurrency"] for each in found], sum(
        each["upstream_rate"] for each in found
    )


@pytest.mark.parametrize(
    ("total", "workers", "shares"),
    [(8, 1, [4, 4]), (8, 3, [4, 2, 1, 1]), (8, 7, [1] * 8), (20, 16, [4] + [1] * 16)],
)
def test_all_together_are_no_more_than_the_budget(
    total: int, workers: int, shares: list[int]
) -> None:
    """The follower gets half of the budget, as long as each worker has one request."""
    found, rate = _shares(upstream_concurrency=total, workers=workers, upstream_rate=60.0)
    assert found == shares
    assert rate == pytest.approx(60.0)


def test_automatic_workers_are_at_most_those_that_have_a_request() -> None:
    """With few requests in flight, ``auto`` is lower than the number of cores."""
    assert _shares(upstream_concurrency=2, workers="auto")[0] == [1, 1]


def test_more_processes_than_requests_are_refused() -> None:
    """The error names both settings."""
    with pytest.raises(ConfigurationError, match=r"--upstream-concurrency: .*--workers"):
        _shares(upstream_concurrency=8, workers=8)


def test_the_backfill_gets_a_part_of_the_rate_beside_urgent_calls() -> None:
    """The backfill gets its part, however many urgent calls wait."""
    throttle = Throttle("node", concurrency=8, rate=500.0)
    ended = threading.Event()

    def ask_urgently() -> None:
        while not ended.is_set():
            with suppress(Busy), throttle.admit(2, PATIENCE):
                pass

    def ask_in_background() -> None:
        with in_background(ended), throttle.admit(10, PATIENCE):
            pass

    urgent = [threading.Thread(target=ask_urgently) for _ in range(6)]
    for thread in urgent:
        thread.start()
    try:
        for _ in range(5):
            thread = threading.Thread(target=ask_in_background, daemon=True)
            thread.start()
            thread.join(PATIENCE)
            assert not thread.is_alive()
    finally:
        ended.set()
        for thread in urgent:
            thread.join()


def test_the_backfill_holds_up_nobody_while_it_may_not_begin() -> None:
    """One request stays free for others, however many calls the background work may make."""
    throttle = Throttle("node", concurrency=2, rate=0.0)
    ended = threading.Event()

    def ask_in_background() -> None:
        with suppress(Busy), in_background(ended), throttle.admit(1, PATIENCE):
            pass

    with throttle.admit(1, PATIENCE):
        waiting = threading.Thread(target=ask_in_background)
        waiting.start()
        for _ in range(20):
            with throttle.admit(1, PATIENCE):
                pass
        assert waiting.is_alive()
    waiting.join()
