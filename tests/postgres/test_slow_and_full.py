"""Tests of a database that is far away, and of one whose disk is full."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from flask_noderpc import EmbeddedChain
from flask_noderpc.backends.sql import lookups
from flask_noderpc.backends.sql.connection import Connection
from flask_noderpc.chain.block_scheduler import BlockSchedule
from flask_noderpc.domain.search import SearchLimits
from flask_noderpc.errors import FULL, StoreError
from flask_noderpc.postgres import database, green
from flask_noderpc.postgres.backend import PostgresBackend
from flask_noderpc.testing.chains import ChainMaker
from flask_noderpc.testing.node import app_for
from tests.helpers.ports import free_port
from tests.helpers.postgres import Cluster
from tests.helpers.relay import SlowRelay
from tests.helpers.until import until

ROUND_TRIP_S = 0.1
SMALL_MB = 64


@pytest.fixture
def near() -> Iterator[Cluster]:
    with closing(Cluster(listen_addresses="127.0.0.1", port=str(free_port()))) as cluster:
        yield cluster


def test_a_chain_goes_on_beside_a_database_that_is_far_away(
    near: Cluster, tmp_path: Path
) -> None:
    url = near.new_database()
    # A block takes longer than the lease lasts.
    schedule = BlockSchedule(1.0, empty_blocks=False)
    with closing(SlowRelay(int(near.options["port"]), ROUND_TRIP_S / 2)) as relay:
        far = f"postgresql://noderpc@127.0.0.1:{relay.port}/{_name(url)}"
        with closing(EmbeddedChain(far, home=tmp_path, schedule=schedule)) as chain:
            chain.start()
            chain.mempool.submit(b"a=1")
            until(lambda: chain.mempool.pending_count().total == 0, "the transaction's block")
            assert chain.reads.block(chain.reads.latest_height())[1].txs == (b"a=1",)
            assert chain.store.lease_state().last_error == ""
    with closing(PostgresBackend(url)) as store:
        assert store.verify() == store.reads.latest_height() > 0


def test_reads_of_a_database_that_hangs_end_with_an_error(
    near: Cluster, maker: ChainMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(green, "_FIRST_S", 0.5)
    monkeypatch.setitem(database._DEFAULTS, "connect_timeout", "2")
    name = _name(near.new_database())
    url = f"postgresql://noderpc@127.0.0.1:{near.options['port']}/{name}"
    with closing(PostgresBackend(url)) as store:
        store.init_chain(maker.genesis, maker.state)
        store.append_block(maker.block(b"a=1"))
        client = app_for(store).test_client()
        assert client.get("/status").status_code == 200

        with near.frozen():
            # The last height is cached for a moment.
            until(lambda: client.get("/status").status_code == 500, "an error")
            # First open connections fail, and then new ones.
            for path in ("/status", "/block?height=1", "/readyz", "/status"):
                answer = client.get(path)

                assert answer.status_code == (503 if path == "/readyz" else 500)
                assert "database" in answer.text
                assert "check its host: no response" in answer.text or "timeout" in answer.text

        until(lambda: client.get("/readyz").status_code == 200, "an answer")
        assert client.get("/status").status_code == 200


def test_a_verification_may_take_longer_than_other_reads(
    near: Cluster, maker: ChainMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A verification reads whole tables."""
    monkeypatch.setattr(green, "_OTHERS_S", 0.1)

    def sleep(at: Connection) -> None:
        at.execute("SELECT pg_sleep(1)").fetchone()

    monkeypatch.setattr(lookups, "check_counts", sleep)
    with closing(PostgresBackend(near.new_database())) as store:
        store.init_chain(maker.genesis, maker.state)
        store.append_block(maker.block(b"a=1"))
        handles = store._open()
        with pytest.raises(StoreError, match="does not respond"):
            handles.read(sleep)

        assert store.verify() == 1
        limits = SearchLimits(seconds=5.0)
        handles.search_pool.run(sleep, limits)


@pytest.fixture
def small(cluster: Cluster) -> Iterator[tuple[str, Path]]:
    """The URL of a database on a small disk, and the folder of the disk."""
    disk = cluster.folder / "small"
    disk.mkdir()
    owner = cluster.folder.stat()
    options = f"size={SMALL_MB}m,uid={owner.st_uid},gid={owner.st_gid}"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(disk)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip(f"only root may mount a small disk: {mounted.stderr.decode().strip()}")
    try:
        cluster.execute(f"CREATE TABLESPACE small LOCATION '{disk}'")
        url = cluster.new_database()
        cluster.execute(f"ALTER DATABASE {_name(url)} SET TABLESPACE small")
        yield url, disk
        cluster.drop(url)
        cluster.execute("DROP TABLESPACE small")
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def _name(url: str) -> str:
    return url.rpartition("/")[2].partition("?")[0]


def test_a_full_disk_is_named_and_nothing_is_lost(
    small: tuple[str, Path], maker: ChainMaker
) -> None:
    url, disk = small
    with closing(PostgresBackend(url)) as store:
        store.init_chain(maker.genesis, maker.state)
        store.append_block(maker.block(b"a=1"))
        # PostgreSQL writes a file for the first connection after tables were made.
        assert store.reads.latest_height() == 1
        # A block that does not fit into the space that PostgreSQL has allocated.
        large = maker.block(b"b=" + os.urandom(4_000_000).hex().encode())
        filler = disk / "filler"
        with pytest.raises(OSError, match="No space left"):
            filler.write_bytes(bytes(SMALL_MB << 20))
        with pytest.raises(StoreError, match=FULL):
            store.append_block(large)

        assert store.reads.latest_height() == 1
        assert store.reads.block(1)[1].txs == (b"a=1",)

        filler.unlink()
        store.append_block(large)
        assert store.verify() == 2
