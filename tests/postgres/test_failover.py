"""Tests of a standby that takes over: hosts continue by themselves, and report what was
lost."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from flask_noderpc import EmbeddedChain
from flask_noderpc.errors import StoreError
from flask_noderpc.postgres.backend import PostgresBackend
from flask_noderpc.postgres.database import Database
from flask_noderpc.postgres.settings import DatabaseURL
from flask_noderpc.testing.chains import ChainMaker
from tests.helpers.ports import free_port
from tests.helpers.postgres import Cluster, Standby
from tests.helpers.until import PATIENCE, until

Pair = tuple[Cluster, Standby]


def tcp() -> dict[str, str]:
    return {"listen_addresses": "127.0.0.1", "port": str(free_port())}


@pytest.fixture
def pair() -> Iterator[Pair]:
    """A primary and its standby, each with a port."""
    with ExitStack() as stack:
        primary = stack.enter_context(closing(Cluster(**tcp())))
        yield primary, stack.enter_context(closing(Standby(primary, **tcp())))


@pytest.fixture
def url(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a database that names both hosts, by names that only Python can resolve."""
    database = pair[0].new_database().rpartition("/")[2].partition("?")[0]
    resolve = socket.getaddrinfo

    def resolved(host: str, *args: Any, **options: Any) -> Any:
        known = {"first.invalid": "127.0.0.1", "second.invalid": "127.0.0.1"}
        return resolve(known.get(host, host), *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    ports = [each.options["port"] for each in pair]
    hosts = f"first.invalid:{ports[0]},second.invalid:{ports[1]}"
    return f"postgresql://noderpc@{hosts}/{database}"


@pytest.fixture
def open_host(url: str) -> Iterator[Callable[..., PostgresBackend]]:
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(closing(PostgresBackend(url, **options)))


def synchronous(primary: Cluster) -> None:
    """Make commits wait for the standby."""
    primary.execute(
        "ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"
    )
    state = "SELECT sync_state FROM pg_stat_replication"
    until(lambda: bool(primary.ask(state) == ("sync",)), "the standby is synchronous")


def appended(store: PostgresBackend, block: Any) -> bool:
    try:
        store.append_block(block)
    except StoreError:
        return False
    return True


def test_hosts_go_on_with_the_standby_that_was_promoted(
    pair: Pair, url: str, open_host: Callable[..., PostgresBackend], maker: ChainMaker
) -> None:
    """With a synchronous standby nothing is lost, and no response is wrong meanwhile."""
    primary, standby = pair
    synchronous(primary)
    writing, reading = open_host(), open_host(read_url=url)
    writing.init_chain(maker.genesis, maker.state)
    writing.append_block(*(maker.block(b"a=%d" % number) for number in range(3)))
    blocks = {height: writing.reads.block(height) for height in (1, 2, 3)}
    ended, wrong, heads = threading.Event(), list[object](), [0]

    def read() -> None:
        while not ended.is_set():
            try:
                heads.append(reading.reads.latest_height())
                wrong.extend(
                    each for at, each in blocks.items() if reading.reads.block(at) != each
                )
            except StoreError:
                ended.wait(0.01)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        until(lambda: heads[-1] == 3, "it reads")
        primary.stop("immediate")
        before = len(heads)
        standby.promote()
        until(lambda: appended(writing, maker.block(b"b=1")), "it writes again")
        until(lambda: len(heads) > before and heads[-1] == 4, "it reads again")
    finally:
        ended.set()
        reader.join(PATIENCE)
    assert wrong == []
    assert heads == sorted(heads)
    assert writing.verify() == 4


def test_a_host_that_vanished_is_waited_for_once(pair: Pair) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(0)
        hosts = f"127.0.0.1:{silent.getsockname()[1]},127.0.0.1:{pair[0].options['port']}"
        url = f"postgresql://noderpc@{hosts}/postgres?connect_timeout=2"
        database = Database(DatabaseURL(url))
        for _ in range(3):
            database.connect().close()
        silent.accept()[0].close()
        with pytest.raises(BlockingIOError):
            silent.accept()


def test_a_head_that_went_back_is_not_served(
    pair: Pair, open_host: Callable[..., PostgresBackend], maker: ChainMaker
) -> None:
    """The standby did not have the last block. The next process continues from its head."""
    primary, standby = pair
    store = open_host()
    store.init_chain(maker.genesis, maker.state)
    store.append_block(maker.block(b"a=1"))
    standby.catch_up()
    standby.stop()
    store.append_block(maker.block(b"a=2"))
    assert store.reads.latest_height() == 2
    primary.stop("immediate")
    standby.start()
    standby.promote()

    until(lambda: "a latest height of at least 2, got 1" in refusal(store), "it is noticed")
    assert open_host().reads.latest_height() == 1


def refusal(store: PostgresBackend) -> str:
    try:
        store.reads.latest_height()
    except StoreError as error:
        return str(error)
    return ""


def test_start_warns_unless_a_standby_is_synchronous(
    pair: Pair, url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def start() -> str:
        caplog.clear()
        with (
            caplog.at_level(logging.WARNING),
            closing(EmbeddedChain(url, home=tmp_path)) as chain,
        ):
            chain.start()
        return caplog.text

    assert "synchronous_standby_names" in start()
    synchronous(pair[0])
    assert start() == ""


def test_a_database_without_standbys_is_not_warned_of(
    cluster: Cluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(EmbeddedChain(cluster.new_database(), home=tmp_path)) as chain:
        chain.start()
    assert caplog.text == ""
