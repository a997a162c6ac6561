"""Tests of filters of one store that are polled at several workers: each change is returned
once."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from flask_noderpc import EmbeddedChain
from flask_noderpc.domain.search import PolledFilter
from flask_noderpc.ethereum.rpc.subscriptions import filters
from flask_noderpc.jsonrpc.context import Context
from tests.helpers.until import PATIENCE

from ..chain import TOPIC_A, transfer
from .fixtures import InMemory, Time, asking, data, emit, opened


def test_each_change_is_returned_once_across_workers(tmp_path: Path, clock: Time) -> None:
    with (
        closing(opened(tmp_path, EmbeddedChain, clock)) as one,
        closing(opened(tmp_path, EmbeddedChain, clock)) as other,
        ThreadPoolExecutor(4) as pool,
    ):
        workers = [asking(chain) for chain in (one, other)]
        own = workers[0]("newBlockFilter")
        polls = []
        for _ in range(20):
            one.produce()
            polls += [pool.submit(ask, "getFilterChanges", own) for ask in workers * 2]
        received = [each for poll in polls for each in poll.result()]
        received += workers[1]("getFilterChanges", own)

        assert sorted(received) == sorted(
            data(one.reads.block(height)[0].hash) for height in range(1, 21)
        )


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("newFilter", [{}]),
        ("newBlockFilter", []),
        ("newPendingTransactionFilter", []),
        ("newPendingTransactionFilter", [True]),
    ],
)
def test_concurrent_polls_return_each_change_once(
    chain: EmbeddedChain,
    tmp_path: Path,
    clock: Time,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    params: list[Any],
) -> None:
    met = threading.Event()
    meeting = threading.Barrier(2, met.set, timeout=PATIENCE)

    changes_of = filters.changes

    def together(ctx: Context, polled: PolledFilter) -> filters.Changes:
        """Let both polls read the same changes before either returns them."""
        found = changes_of(ctx, polled)
        if not met.is_set():
            meeting.wait()
        return found

    # Use another worker with the same store, or the same worker if filters are in its memory.
    other = chain if isinstance(chain, InMemory) else opened(tmp_path, EmbeddedChain, clock)
    with closing(other), ThreadPoolExecutor(2) as pool:
        own = asking(chain)(method, *params)
        emit(chain, 0, TOPIC_A)
        chain.mempool.submit(transfer(1))
        monkeypatch.setattr(filters, "changes", together)
        polls = [pool.submit(asking(each), "getFilterChanges", own) for each in (chain, other)]
        # One transaction is in a block, and one is pending.
        count = 2 if "Pending" in method else 1
        assert sorted(len(poll.result()) for poll in polls) == [0, count]


def test_a_restart_loses_no_filter(tmp_path: Path, clock: Time) -> None:
    with closing(opened(tmp_path, EmbeddedChain, clock)) as chain:
        own = asking(chain)("newFilter", {"topics": [data(TOPIC_A)]})
        emit(chain, 0, TOPIC_A)

    with closing(opened(tmp_path, EmbeddedChain, clock)) as chain:
        (received,) = asking(chain)("getFilterChanges", own)
        assert received["blockNumber"] == "0x1"


@pytest.mark.sqlite  # The test reads the file.
def test_a_poll_that_finds_nothing_writes_nothing(tmp_path: Path, clock: Time) -> None:
    with closing(opened(tmp_path, EmbeddedChain, clock)) as chain:
        ask = asking(chain)
        own = ask("newBlockFilter")
        log = tmp_path / "noderpc.db-wal"
        before = os.stat(log)

        assert ask("getFilterChanges", own) == []
        assert (os.stat(log).st_size, os.stat(log).st_mtime_ns) == (
            before.st_size,
            before.st_mtime_ns,
        )
