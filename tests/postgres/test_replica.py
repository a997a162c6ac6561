"""Tests of reads from a streaming replica: they equal the primary's as far as it has
replayed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from runpy import run_path
from typing import Any

import psycopg
import pytest

from flask_noderpc import get_backend
from flask_noderpc.domain.search import Page, Search, SearchLimits, Term
from flask_noderpc.errors import HeightNotAvailable, StoreError
from flask_noderpc.extension import mounts
from flask_noderpc.postgres.backend import PostgresBackend
from flask_noderpc.protocol.comet.hashes import tx_hash
from flask_noderpc.testing.chains import ChainMaker
from tests.helpers.postgres import Cluster, Standby
from tests.helpers.until import PATIENCE, until

# Longer than a test, so only notifications can show a change.
NEVER_POLLS = 4 * PATIENCE
RECIPE = Path(__file__).parents[2] / "docs" / "examples" / "read_replica.py"
_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
Open = Callable[..., PostgresBackend]


@pytest.fixture(scope="module")
def primary() -> Iterator[Cluster]:
    made = Cluster()
    yield made
    made.close()


@pytest.fixture(scope="module")
def replica(primary: Cluster) -> Iterator[Standby]:
    """A replica that logs each statement, and does not wait for reads before it replays."""
    made = Standby(primary, log_statement="all", max_standby_streaming_delay="0")
    yield made
    made.close()


@pytest.fixture
def url(primary: Cluster) -> Iterator[str]:
    made = primary.new_database()
    yield made
    primary.drop(made)


@pytest.fixture
def read_url(url: str, replica: Standby) -> str:
    """Return the URL of the database on the replica."""
    return replica.url(url.rpartition("/")[2].partition("?")[0])


@pytest.fixture
def reading(
    open_host: Open, read_url: str, replica: Standby, maker: ChainMaker
) -> PostgresBackend:
    """A host with three blocks that it reads from the replica."""
    host = open_host(read_url=read_url)
    host.init_chain(maker.genesis, maker.state)
    host.append_block(*(maker.block(b"a=%d" % number) for number in range(3)))
    until_read(replica, lambda: host.reads.block(1))
    return host


def is_read(replica: Standby, read: Callable[[], object]) -> bool:
    """Return true if a read used the replica."""
    before = replica.log().count(_SNAPSHOT)
    read()
    return replica.log().count(_SNAPSHOT) > before


def until_read(replica: Standby, read: Callable[[], object]) -> None:
    """Wait until reads use the replica."""
    # The test of a new connection takes a snapshot, too, which a single read might count.
    until(lambda: is_read(replica, read) and is_read(replica, read), "the replica is read")


@contextmanager
def paused(replica: Standby) -> Iterator[None]:
    """Pause the replica's recovery."""
    replica.execute("SELECT pg_wal_replay_pause()")
    try:
        # Recovery may be in the middle of a record.
        state = "SELECT pg_get_wal_replay_pause_state()"
        until(lambda: replica.ask(state) == ("paused",), "the recovery is paused")
        yield
    finally:
        replica.execute("SELECT pg_wal_replay_resume()")


A_KEY = Search((Term("app.key", equals="a"),))
LIMITS = SearchLimits(PATIENCE)


def test_what_the_replica_has_is_read_from_it(
    reading: PostgresBackend, replica: Standby, open_host: Open
) -> None:
    replica.catch_up()
    alone = open_host()
    reads: list[Callable[[PostgresBackend], object]] = [
        lambda store: store.reads.block(2),
        lambda store: store.reads.block_metas(1, 3),
        lambda store: store.reads.commit(3),
        lambda store: store.reads.results(3),
        lambda store: store.reads.validators(3),
        lambda store: store.reads.consensus_params(3),
        lambda store: store.reads.tx(tx_hash(b"a=1")),
        lambda store: store.reads.height_of(store.reads.hash_at(3)),
        lambda store: store.reads.search_txs(A_KEY, Page(0, 10), LIMITS),
        lambda store: store.reads.search_blocks(Search(low=2, high=3), Page(0, 10), LIMITS),
    ]
    for number, read in enumerate(reads):
        found: list[object] = []
        assert is_read(replica, lambda: found.append(read(reading))), number  # noqa: B023
        assert found == [read(alone)], number


def test_what_a_lagging_replica_lacks_is_read_from_the_primary(
    reading: PostgresBackend, replica: Standby, maker: ChainMaker
) -> None:
    with paused(replica):
        reading.append_block(maker.block(b"new=1"))

        assert reading.reads.latest_height() == 4
        assert reading.reads.block(4)[1].txs == (b"new=1",)
        # The commit in the next block is the canonical one.
        assert reading.reads.commit(3) == reading.reads.block(4)[1].last_commit
        assert reading.reads.search_txs(Search(low=4), Page(0, 9), LIMITS).total == 1
        assert is_read(replica, lambda: reading.reads.block(2))
    until(lambda: is_read(replica, lambda: reading.reads.block(4)), "it has the block")


def test_blocks_that_were_pruned_or_replaced_are_not_read_from_a_lagging_replica(
    reading: PostgresBackend, replica: Standby, maker: ChainMaker
) -> None:
    lease = reading.acquire_lease("one", 60)
    assert lease is not None
    with paused(replica):
        reading.prune(2)
        with pytest.raises(HeightNotAvailable):
            reading.reads.block(1)

        reading.rewind(2, {}, lease)
        with pytest.raises(HeightNotAvailable):
            reading.reads.block(3)
        assert reading.reads.latest_height() == 2


def test_a_batch_reads_one_snapshot_of_the_replica(
    reading: PostgresBackend, replica: Standby, maker: ChainMaker
) -> None:
    replica.catch_up()
    reading.reads.latest_height()

    def read() -> None:
        with reading.reads.read_view() as version:
            reading.append_block(maker.block(b"new=1"))
            assert reading.reads.latest_height() == 3
            assert version != reading.reads.version()
            with pytest.raises(HeightNotAvailable):
                reading.reads.block(4)

    assert is_read(replica, read)
    with reading.reads.read_view() as version:
        assert (version, reading.reads.latest_height()) == (reading.reads.version(), 4)


@pytest.mark.parametrize("cancelled", [1, 2, 3])
def test_a_read_that_the_recovery_cancels_is_repeated(
    reading: PostgresBackend, replica: Standby, url: str, cancelled: int
) -> None:
    """The read is repeated on the replica, and if that fails on the primary."""
    with psycopg.connect(url, autocommit=True) as at:
        at.execute("CREATE TABLE rows AS SELECT generate_series(1, 1000) AS number")
        calls: list[bool] = []

        def work(reader: Any) -> int:
            (on_replica,) = reader.execute("SELECT pg_is_in_recovery()").fetchone()
            calls.append(on_replica)
            if on_replica and len(calls) < cancelled:
                until(lambda: _is_cancelled(reader, at), "the read is cancelled")
            (count,) = reader.execute("SELECT count(*) FROM rows").fetchone()
            return int(count)

        replica.catch_up()
        assert reading._open().read(work, 1) == 1000
    # Recovery may end the session instead of the statement, so the next read fails, too.
    ended = [[True, False]] if cancelled > 1 else []
    assert calls in ([True, True, False][:cancelled], *ended)


def _is_cancelled(reader: Any, primary: psycopg.Connection[Any]) -> bool:
    """Let the replica remove rows that a snapshot still sees; return false while the snapshot
    lives, and raise the error that ended it."""
    # Repeat this, as another snapshot of the primary, such as autovacuum's, may have seen the
    # rows, too.
    primary.execute("UPDATE rows SET number = number + 1")
    primary.execute("VACUUM rows")
    reader.execute("SELECT count(*) FROM rows")
    return False


def test_a_replica_that_is_gone_is_not_waited_for(
    reading: PostgresBackend,
    replica: Standby,
    maker: ChainMaker,
    caplog: pytest.LogCaptureFixture,
) -> None:
    replica.stop("immediate")
    try:
        assert reading.reads.block(1)[1].txs == (b"a=0",)
        reading.append_block(maker.block(b"new=1"))
        assert reading.reads.block(4)[1].txs == (b"new=1",)
    finally:
        replica.start()
    assert caplog.text.count("the primary is read until") == 1
    until_read(replica, lambda: reading.reads.block(1))


def test_a_store_on_a_standby_polls_for_blocks(
    reading: PostgresBackend, read_url: str, replica: Standby, maker: ChainMaker
) -> None:
    replica.catch_up()
    found: list[int] = []
    with closing(PostgresBackend(read_url, read_only=True)) as store:
        waiting = threading.Thread(
            target=lambda: found.append(store.reads.wait_for_height(3, PATIENCE))
        )
        waiting.start()
        asked = "SELECT pg_is_in_recovery()"
        until(lambda: asked in replica.log(), "it asks whether it may listen")
        reading.append_block(maker.block(b"new=1"))
        waiting.join(PATIENCE)
        with pytest.raises(StoreError, match="read-only"):
            store.append_block(maker.block(b"b=1"))
    assert found == [4]
    assert "cannot execute LISTEN" not in replica.log()


def test_the_recipe_serves_what_the_replica_has(
    reading: PostgresBackend, url: str, read_url: str, replica: Standby, tmp_path: Path
) -> None:
    replica.catch_up()
    app = run_path(str(RECIPE))["create_app"](str(tmp_path), url, read_url)
    try:
        with app.app_context():
            until_read(replica, lambda: get_backend().reads.block(1))
        assert app.test_client().get("/block?height=3").status_code == 200
        assert is_read(replica, lambda: app.test_client().get("/block?height=2"))
    finally:
        for mount in mounts(app).values():
            mount.backend.close()
