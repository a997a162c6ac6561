"""Tables are made once, and a database that can't be used says why in one line."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from flask_noderpc.backends import open_store, stored_identity
from flask_noderpc.backends.postgres.backend import PostgresBackend
from flask_noderpc.errors import NotSupported, StoreError
from flask_noderpc.testing.chains import ChainMaker
from tests.helpers.postgres import Cluster
from tests.helpers.until import PATIENCE


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
    with psycopg.connect(url) as at:
        at.execute("UPDATE noderpc_schema SET version = 99")

    text = refusal(url)

    assert "made by a newer flask-noderpc (version 99" in text
    assert "\n" not in text


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
