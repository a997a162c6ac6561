"""Tests of several hosts on one database: each sees the others' writes, and one produces."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import closing

import psycopg
import pytest

from flask_noderpc.backends import open_store
from flask_noderpc.backends.base.capabilities import MempoolLimits
from flask_noderpc.chain.applications.kvstore import KVStore
from flask_noderpc.errors import ConfigurationError, LeaseLost, NodeRPCError
from flask_noderpc.postgres.backend import PostgresBackend
from flask_noderpc.testing.chains import ChainMaker
from tests.helpers.until import PATIENCE, until

from .conftest import Open

# Longer than a test takes, so only a notification can wake a host.
NEVER_POLLS = 4 * PATIENCE


def listeners(url: str) -> list[int]:
    """Return the PIDs of the server's processes that wait for notifications."""
    with psycopg.connect(url) as at:
        found = at.execute(
            "SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN%%'"
            " AND datname = current_database()"
        )
        return [pid for (pid,) in found]


def waiting(store: PostgresBackend, after: int, found: list[int]) -> threading.Thread:
    def wait() -> None:
        found.append(store.reads.wait_for_height(after, PATIENCE))

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def test_a_block_wakes_other_hosts_by_a_notification(
    url: str, host: PostgresBackend, open_host: Open, maker: ChainMaker
) -> None:
    other, found = open_host(poll_s=NEVER_POLLS), list[int]()
    thread = waiting(other, 0, found)
    until(lambda: listeners(url) != [], "it listens")

    host.append_block(maker.block(b"a=1"))

    thread.join(PATIENCE)
    assert found == [1]


def test_a_block_is_seen_although_the_listener_was_cut_off(
    url: str, host: PostgresBackend, open_host: Open, maker: ChainMaker
) -> None:
    other, found = open_host(), list[int]()
    thread = waiting(other, 0, found)
    until(lambda: listeners(url) != [], "it listens")
    with psycopg.connect(url) as at:
        for pid in listeners(url):
            at.execute("SELECT pg_terminate_backend(%s)", (pid,))

    host.append_block(maker.block(b"a=1"))

    thread.join(PATIENCE)
    assert found == [1]
    thread = waiting(other, 1, found)
    until(lambda: listeners(url) != [], "it listens again")
    host.append_block(maker.block(b"a=2"))
    thread.join(PATIENCE)


def test_nobody_listens_behind_a_pooler(
    url: str, host: PostgresBackend, maker: ChainMaker
) -> None:
    pooled = PostgresBackend(f"{url}&pool_mode=transaction")
    found: list[int] = []
    thread = waiting(pooled, 0, found)

    host.append_block(maker.block(b"a=1"))

    thread.join(PATIENCE)
    assert (found, listeners(url)) == ([1], [])
    pooled.close()


def test_the_version_is_that_of_the_block_that_another_host_committed(
    host: PostgresBackend, open_host: Open, maker: ChainMaker
) -> None:
    other = open_host()
    before = other.reads.version()
    host.append_block(maker.block(b"a=1"))

    # The version changes within one polling interval.
    until(lambda: other.reads.version() != before, "the version is new")
    assert other.reads.version() == host.reads.version()


def test_a_process_sees_its_own_writes_at_once(
    host: PostgresBackend, open_host: Open, maker: ChainMaker
) -> None:
    host.append_block(*(maker.block(b"a=%d" % number) for number in range(5)))
    own = open_host(poll_s=NEVER_POLLS)
    full = own.reads.version()

    own.prune(2)

    assert own.reads.version() != full


def test_a_version_is_as_old_as_the_url_allows_but_no_older_than_a_told_head(
    url: str, host: PostgresBackend, maker: ChainMaker
) -> None:
    host.append_block(maker.block(b"a=1"))
    with closing(open_store(f"{url}&poll_interval={NEVER_POLLS}")) as other:
        before = other.reads.version()
        host.append_block(maker.block(b"a=2"))
        assert other.reads.version() == before

        assert other.reads.latest_height() == 2
        assert other.reads.version() == host.reads.version() != before


@pytest.mark.parametrize("interval", ["0", "-1", "soon", "nan", ""])
def test_an_interval_that_is_none_is_refused(url: str, interval: str) -> None:
    with pytest.raises(ConfigurationError, match="poll_interval"):
        open_store(f"{url}&poll_interval={interval}")


def test_a_lease_is_taken_by_one_host_and_fences_the_other(
    host: PostgresBackend, open_host: Open, maker: ChainMaker
) -> None:
    other = open_host()
    lease = host.acquire_lease("one", 600)
    assert lease is not None
    assert other.acquire_lease("other", 600) is None
    assert host.renew_lease(lease, 0.01)
    until(lambda: other.acquire_lease("other", 600) is not None, "the lease lapses")

    with pytest.raises(LeaseLost):
        host.append_block(maker.block(b"a=1"), lease=lease)
    assert (host.reads.latest_height(), host.renew_lease(lease, 5)) == (0, False)


def test_leases_expire_by_the_clock_of_the_database(
    host: PostgresBackend, open_host: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time_ns()
    assert host.acquire_lease("one", 600)
    # The clock of one host is a day ahead.
    monkeypatch.setattr(time, "time_ns", lambda: now + 86_400 * 10**9)

    assert open_host().acquire_lease("other", 600) is None
    assert host.lease_state().expires > time.time_ns()


def test_a_host_that_was_cut_off_in_a_block_leaves_no_lock(
    url: str, host: PostgresBackend, open_host: Open, maker: ChainMaker
) -> None:
    began, resume = threading.Event(), threading.Event()

    def work(at: object) -> None:
        began.set()
        resume.wait(PATIENCE)

    paused = open_host()

    def write() -> None:
        with pytest.raises(NodeRPCError):
            paused._open().writer.run(work)

    thread = threading.Thread(target=write)
    thread.start()
    began.wait(PATIENCE)
    with psycopg.connect(url) as at:
        at.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE state = 'idle in transaction' AND datname = current_database()"
        )

    host.append_block(maker.block(b"a=1"))

    resume.set()
    thread.join(PATIENCE)
    assert paused.reads.latest_height() == 1
    paused.append_block(maker.block(b"a=2"))


def submit_all(store: PostgresBackend, txs: Sequence[bytes], refused: list[bytes]) -> None:
    for tx in txs:
        try:
            store.mempool.submit(tx)
        except NodeRPCError:
            refused.append(tx)


def test_limits_of_the_mempool_hold_over_all_hosts(
    host: PostgresBackend, open_host: Open
) -> None:
    limits = MempoolLimits(max_txs=20)
    hosts = [open_host(application=KVStore, limits=limits) for _ in range(3)]
    refused: list[bytes] = []
    txs = [b"k%d=v" % number for number in range(15)]
    threads = [
        # Each host gets its own transactions, and some that the others get, too.
        threading.Thread(
            target=submit_all, args=(each, [*txs[:5], *(b"%d" % n + tx for tx in txs)], refused)
        )
        for n, each in enumerate(hosts)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)

    pending = host.mempool.pending(100)
    assert (pending.total, len(set(pending.txs)), len(refused)) == (20, 20, 60 - 20)
    assert host.mempool.latest_pending() == 20
    seen = host.mempool.pending_after(0, 100)
    assert [cursor for cursor, _ in seen] == list(range(1, 21))
