"""Tests that tables are made once, and that an unusable database causes an error of one
line."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from flask_noderpc.backends import open_store, stored_identity
from flask_noderpc.backends.sql import values
from flask_noderpc.chain.applications.kvstore import KVStore
from flask_noderpc.errors import NotSupported, StoreError
from flask_noderpc.postgres import partitions, schema
from flask_noderpc.postgres.backend import PostgresBackend
from flask_noderpc.postgres.connection import ADAPTERS, Connection
from flask_noderpc.protocol.comet.hashes import tx_hash
from flask_noderpc.testing.chains import ChainMaker
from tests.helpers.postgres import Cluster
from tests.helpers.until import PATIENCE, until

from .conftest import Open


@pytest.fixture
def empty(cluster: Cluster) -> Iterator[str]:
    made = cluster.empty_database()
    yield made
    cluster.drop(made)


def refusal(url: str) -> str:
    with closing(open_store(url)) as store, pytest.raises(StoreError) as caught:
        store.has_chain()
    return str(caught.value)


def test_hosts_that_open_a_new_database_at_once_make_its_tables_once(empty: str) -> None:
    found: list[object] = []

    def look() -> None:
        with closing(open_store(empty)) as store:
            found.append(store.has_chain())

    threads = [threading.Thread(target=look) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)

    assert found == [False] * 5


def test_the_tables_of_a_newer_version_are_refused(url: str) -> None:
    removed(url)

    text = refusal(url)

    assert "created by a newer flask-noderpc (for version 99" in text
    assert "\n" not in text


def test_an_empty_database_is_known_without_making_tables(empty: str) -> None:
    with closing(open_store(empty)) as store:
        assert not store.is_made()
        assert not store.has_chain()
        assert store.is_made()
    with closing(open_store(empty, read_only=True)) as store:
        assert store.is_made()


def removed(url: str) -> None:
    """Mark the tables as written by a version that has removed what this version needs."""
    with psycopg.connect(url) as at:
        at.execute("UPDATE noderpc_schema SET version = 99, oldest = 99")


def test_a_host_goes_on_where_a_newer_version_has_added_to_the_tables(
    url: str, host: PostgresBackend, maker: ChainMaker
) -> None:
    with psycopg.connect(url) as at:
        at.execute("UPDATE noderpc_schema SET version = 99")

    host.append_block(maker.block(b"a=1"))
    with closing(open_store(url)) as store:
        assert store.reads.latest_height() == 1


def test_a_host_stops_where_a_newer_version_has_removed_from_the_tables(
    url: str, open_host: Open, maker: ChainMaker
) -> None:
    """Blocks and transactions are not written, and /readyz says why."""
    host = open_host(application=KVStore)
    host.init_chain(maker.genesis, maker.state)
    host.append_block(maker.block(b"a=1"))
    removed(url)

    for call in (
        lambda: host.append_block(maker.block(b"a=2")),
        lambda: host.mempool.submit(b"b=1"),
        host.reads.latest_height,
        host.check_ready,
    ):
        with pytest.raises(StoreError, match="created by a newer") as caught:
            call()
        assert "\n" not in str(caught.value)
    with psycopg.connect(url) as at:
        assert at.execute("SELECT max(height) FROM blocks").fetchone() == (1,)
        assert at.execute("SELECT count(*) FROM mempool").fetchone() == (0,)


VERSION_2 = Path(__file__).with_name("version_2.sql").read_text()


# Columns of tables that have more columns now, and tables that have fewer rows now.
COLUMNS_2 = {
    "app_state": "key, content",
    "metadata": "name, content",
    "tx_values": "id, key_id, digest, value, number, places",
    "block_values": "id, key_id, digest, value, number, places",
}
ROWS_2 = {"tx_hits": "tx_all_hits", "block_hits": "block_all_hits"}


def go_back(url: str) -> None:
    """Give a store the tables of version 2, with its rows."""
    with psycopg.connect(url) as at:
        # An identity column begins above the copied values.
        at.execute("CREATE SCHEMA old; SET search_path = old")
        at.execute(VERSION_2.encode())
        at.execute("DELETE FROM lease; DELETE FROM mempool_totals")
        tables = at.execute(
            "SELECT relname FROM pg_class"
            " WHERE relkind = 'r' AND relnamespace = 'old'::regnamespace"
        ).fetchall()
        for (table,) in tables:
            if table != "noderpc_schema":
                columns = COLUMNS_2.get(table, "*")
                at.execute(
                    f"INSERT INTO {table} OVERRIDING SYSTEM VALUE"
                    f" SELECT {columns} FROM public.{ROWS_2.get(table, table)}"
                )
        identities = at.execute(
            "SELECT table_name, column_name FROM information_schema.columns"
            " WHERE table_schema = 'old' AND is_identity = 'YES'"
        ).fetchall()
        for table, column in identities:
            at.execute(f"ALTER TABLE {table} ALTER {column} RESTART WITH 1000")
        at.execute("DROP SCHEMA public CASCADE; ALTER SCHEMA old RENAME TO public")


@pytest.fixture
def second_version(url: str, host: PostgresBackend, maker: ChainMaker) -> str:
    """The URL of a database with blocks and the tables of version 2."""
    host.append_block(*(maker.block(b"a=%d" % number) for number in range(20)))
    host.set_metadata("note", b"left by a process")
    host.close()
    go_back(url)
    return url


@pytest.fixture
def first_version(second_version: str) -> str:
    """The URL of a database with blocks and the tables of version 1."""
    with psycopg.connect(second_version) as at:
        at.execute("ALTER TABLE noderpc_schema DROP oldest")
        at.execute("UPDATE noderpc_schema SET version = 1")
    return second_version


@pytest.mark.parametrize("heights", [8, partitions.HEIGHTS])
def test_tables_of_an_earlier_version_are_migrated_once(
    first_version: str, maker: ChainMaker, monkeypatch: pytest.MonkeyPatch, heights: int
) -> None:
    """Hosts that open them at once share the steps, and the chain continues."""
    monkeypatch.setattr(schema, "_FILLED", 3)
    monkeypatch.setattr(values, "_FILLED", 3)
    monkeypatch.setattr(partitions, "HEIGHTS", heights)
    found: list[int] = []

    def look() -> None:
        with closing(open_store(first_version)) as store:
            found.append(store.reads.latest_height())

    threads = [threading.Thread(target=look) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)

    assert found == [20] * 5
    with psycopg.connect(first_version) as at:
        assert at.execute("SELECT * FROM noderpc_schema").fetchall() == [(schema.VERSION, 7)]
    goes_on(first_version, maker)


def goes_on(url: str, maker: ChainMaker) -> None:
    """Check a chain of 20 blocks, and append others."""
    with closing(PostgresBackend(url, application=KVStore)) as store:
        assert store.verify() == 20
        assert store.app_state.get(b"pair:a") == b"19"
        assert store.metadata("note") == b"left by a process"
        assert [store.reads.height_of(store.reads.hash_at(height)) for height in (1, 20)] == [
            1,
            20,
        ]
        assert store.reads.tx(tx_hash(b"a=7")).height == 8
        store.append_block(*(maker.block(b"b=%d" % number) for number in range(20)))
        assert store.verify() == 40
        assert store.prune(11) == 29
        assert store.verify() == 11


# The tables of version 6, which had all hits in one table.
TO_VERSION_6 = """
DROP VIEW tx_events, block_events, tx_all_hits, block_all_hits;
ALTER TABLE tx_values DROP place, DROP event;
ALTER TABLE block_values DROP place, DROP event;
CREATE VIEW tx_events AS
    SELECT h.place >> 20 AS height, h.place & 1048575 AS position, h.event,
           encode(k.key, 'escape') AS key, encode(v.value, 'escape') AS value
    FROM tx_hits AS h JOIN tx_values AS v ON v.id = h.value_id
    JOIN tx_keys AS k ON k.id = v.key_id
    WHERE h.place >= (SELECT min(height) << 20 FROM block_hashes);
CREATE VIEW block_events AS
    SELECT h.place AS height, h.event,
           encode(k.key, 'escape') AS key, encode(v.value, 'escape') AS value
    FROM block_hits AS h JOIN block_values AS v ON v.id = h.value_id
    JOIN block_keys AS k ON k.id = v.key_id;
UPDATE noderpc_schema SET version = 6, oldest = 6;
"""


def test_views_of_others_and_their_permissions_stay(
    url: str, host: PostgresBackend, maker: ChainMaker
) -> None:
    host.init_chain(maker.genesis, maker.state)
    host.close()
    with psycopg.connect(url) as at:
        at.execute(TO_VERSION_6)
        at.execute("CREATE VIEW mine AS SELECT height, value FROM tx_events")
        at.execute("GRANT SELECT ON tx_events TO PUBLIC")

    with closing(PostgresBackend(url)) as store:
        store.append_block(maker.block(b"a=1"))
        assert store.verify() == 1

    with psycopg.connect(url) as at:
        assert ("a",) in at.execute("SELECT value FROM mine WHERE height = 1").fetchall()
        assert at.execute(
            "SELECT count(*) FROM information_schema.role_table_grants"
            " WHERE table_name = 'tx_events' AND grantee = 'PUBLIC'"
        ).fetchone() == (1,)


def test_an_interrupted_migration_is_gone_on_with(
    second_version: str, maker: ChainMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meanwhile, processes of the earlier version stop with one line."""
    monkeypatch.setattr(schema, "_FILLED", 3)
    with psycopg.connect(second_version, autocommit=True, context=ADAPTERS) as raw:
        at = Connection(raw)
        for _ in range(3):
            at.execute("BEGIN")
            schema._go_on(at, 3)
            at.execute("COMMIT")
        assert at.execute("SELECT * FROM noderpc_schema").fetchall() == [(2, 3)]
        assert at.execute("SELECT count(*) FROM block_hashes").fetchone() == (6,)
        # The last step is rolled back as a whole.
        at.execute("BEGIN")
        while schema._fill_hashes(at):
            pass
        at.script(schema._TO_PARTITIONS)
        schema._attach_existing(at)
        at.execute("ROLLBACK")
    with monkeypatch.context() as older:
        older.setattr(schema, "VERSION", 2)
        with (
            closing(open_store(second_version)) as store,
            pytest.raises(StoreError, match="created by a newer") as caught,
        ):
            store.has_chain()
        assert "\n" not in str(caught.value)

    goes_on(second_version, maker)


def test_an_empty_store_is_migrated(url: str, maker: ChainMaker) -> None:
    go_back(url)

    with closing(PostgresBackend(url)) as store:
        store.init_chain(maker.genesis, maker.state)
        store.append_block(maker.block(b"a=1"))
        assert store.verify() == 1


def test_who_only_reads_does_not_migrate(first_version: str) -> None:
    with (
        closing(open_store(first_version, read_only=True)) as store,
        pytest.raises(StoreError, match="start a process that may write"),
    ):
        store.has_chain()


def test_a_migration_waits_for_the_block_that_is_being_written(
    url: str, host: PostgresBackend, maker: ChainMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, resume = threading.Event(), threading.Event()
    order: list[str] = []

    def work(at: object) -> None:
        began.set()
        resume.wait(PATIENCE)
        order.append("written")

    def migrate() -> None:
        with psycopg.connect(url, autocommit=True, context=ADAPTERS) as raw:
            schema.prepare(Connection(raw))
        order.append("migrated")

    writing = threading.Thread(target=host._open().writer.run, args=(work,))
    writing.start()
    began.wait(PATIENCE)
    removing = schema._Step("ALTER TABLE filters DROP owner", schema.VERSION + 1)
    monkeypatch.setattr(schema, "_STEPS", (*schema._STEPS, removing))
    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 1)
    migrating = threading.Thread(target=migrate)
    migrating.start()
    until(lambda: _waits(url), "the migration waits")
    resume.set()
    writing.join(PATIENCE)
    migrating.join(PATIENCE)
    assert order == ["written", "migrated"]

    monkeypatch.undo()
    with pytest.raises(StoreError, match="created by a newer"):
        host.append_block(maker.block(b"a=1"))


def _waits(url: str) -> bool:
    with psycopg.connect(url) as at:
        found = at.execute(
            "SELECT count(*) FROM pg_locks WHERE NOT granted"
            " AND relation = to_regclass('noderpc_schema')"
        ).fetchone()
        return found == (1,)


def test_the_tables_of_another_program_are_refused(empty: str) -> None:
    with psycopg.connect(empty) as at:
        at.execute("CREATE TABLE blocks (id bigint)")

    assert "of another program" in refusal(empty)


def test_a_missing_table_is_named(url: str, host: PostgresBackend, maker: ChainMaker) -> None:
    with psycopg.connect(url) as at:
        at.execute("DROP TABLE commits")

    with pytest.raises(StoreError, match="table is missing: restore a backup"):
        host.append_block(maker.block(b"a=1"))


def test_a_missing_database_is_named(cluster: Cluster) -> None:
    text = refusal(cluster.url("nowhere"))

    assert "/nowhere: " in text
    assert "createdb" in text


def test_a_server_that_is_not_there_is_named() -> None:
    text = refusal("postgresql://somebody@127.0.0.1:1/chain")

    assert text.startswith("postgresql://127.0.0.1:1/chain: the database can't be reached")
    assert "somebody" not in text.partition("(")[0]
    assert stored_identity("postgresql://somebody@127.0.0.1:1/chain") is None


def test_nothing_is_made_or_written_where_a_store_is_only_read(
    empty: str, url: str, host: PostgresBackend
) -> None:
    with closing(open_store(empty, read_only=True)) as store, pytest.raises(StoreError):
        store.has_chain()
    with closing(open_store(url, read_only=True)) as store:
        assert store.has_chain()
        with pytest.raises(StoreError, match="read-only"):
            store.set_dialect("comet-0.38")


def test_a_backup_is_left_to_pg_dump(host: PostgresBackend) -> None:
    with pytest.raises(NotSupported, match="pg_dump"):
        host.backup("copy.db")
