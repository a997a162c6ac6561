"""Tests of a partition that the primary drops while a replica, unknown to it, reads it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from flask_noderpc.domain.search import Page, Search, SearchLimits
from flask_noderpc.errors import HeightNotAvailable
from flask_noderpc.postgres import partitions
from flask_noderpc.postgres.backend import PostgresBackend
from flask_noderpc.protocol.comet.hashes import tx_hash
from flask_noderpc.testing.chains import ChainMaker
from tests.helpers.postgres import Cluster, Standby
from tests.helpers.until import PATIENCE, until

from .test_partitions import listed, wait_for_others

READS: dict[str, Callable[[PostgresBackend], object]] = {
    "block": lambda store: store.reads.block(20),
    "results": lambda store: store.reads.results(20),
    "commit": lambda store: store.reads.commit(20),
    "tx": lambda store: store.reads.tx(tx_hash(b"a=19")),
    "search": lambda store: store.reads.search_txs(
        Search(low=20, high=20), Page(0, 9), SearchLimits(PATIENCE)
    ),
}


@pytest.fixture(scope="module")
def primary() -> Iterator[Cluster]:
    made = Cluster()
    yield made
    made.close()


@pytest.fixture(scope="module")
def replica(primary: Cluster) -> Iterator[Standby]:
    """A replica that waits for reads before it replays."""
    made = Standby(primary, log_statement="all", max_standby_streaming_delay="-1")
    yield made
    made.close()


@pytest.fixture
def url(primary: Cluster) -> Iterator[str]:
    made = primary.new_database()
    yield made
    primary.drop(made)


@pytest.mark.parametrize("read", READS.values(), ids=list(READS))
def test_a_snapshot_of_the_replica_has_it(
    read: Callable[[PostgresBackend], object],
    monkeypatch: pytest.MonkeyPatch,
    open_host: Callable[..., PostgresBackend],
    url: str,
    primary: Cluster,
    replica: Standby,
    maker: ChainMaker,
) -> None:
    """The replica's max_standby_streaming_delay bounds the wait for a snapshot."""
    monkeypatch.setattr(partitions, "HEIGHTS", 8)
    # Otherwise autovacuum may hold a lock that the pruning needs.
    wait_for_others(monkeypatch)
    host = open_host(read_url=replica.url(url.rpartition("/")[2].partition("?")[0]))
    host.init_chain(maker.genesis, maker.state)
    host.append_block(*(maker.block(b"a=%d" % number) for number in range(30)))
    whole = read(host)
    replica.catch_up()

    with _view_on_replica(host, primary):
        pruning = threading.Thread(target=host.prune, args=(5,))
        pruning.start()
        pruning.join(PATIENCE)
        assert listed(url) == [(24, 32)]
        until(lambda: replica.ask(_WAITS) == (1,), "the replica waits for the snapshot's end")
        assert read(host) == whole
    replica.catch_up()
    with pytest.raises(HeightNotAvailable):
        host.reads.block(20)


_WAITS = (
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE backend_type = 'startup' AND wait_event_type IN ('IPC', 'Lock')"
)


@contextmanager
def _view_on_replica(host: PostgresBackend, primary: Cluster) -> Iterator[None]:
    """Share a snapshot of the replica; until its connection is tested, a snapshot is one of the
    primary."""
    while True:
        with host.reads.read_view():
            if primary.ask(_SNAPSHOTS) == (0,):
                yield
                return


_SNAPSHOTS = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'"
