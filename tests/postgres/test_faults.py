"""Tests of lost connections, a restarted database and killed producers: nothing is lost or
wrong."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from flask_noderpc import EmbeddedChain
from flask_noderpc.chain import home
from flask_noderpc.errors import NodeRPCError, StoreError
from flask_noderpc.postgres import writer as writers
from flask_noderpc.postgres.backend import PostgresBackend
from flask_noderpc.postgres.connection import Connection
from flask_noderpc.testing.chains import ChainMaker
from tests.faults.processes import is_long
from tests.helpers.postgres import Cluster
from tests.helpers.until import PATIENCE, until

from .conftest import Open


@contextmanager
def cut_at(number: int) -> Iterator[list[str]]:
    """Cut the connection before or after one of the writer's statements; yield the places."""
    places: list[str] = []

    class Cut(Connection):
        def execute(self, sql: str, parameters: Any = (), /) -> Any:
            self._pass(f"before {sql}")
            found = super().execute(sql, parameters)
            self._pass(f"after {sql}")
            return found

        def executemany(self, sql: str, parameters: Any, /) -> None:
            self._pass(f"before all of {sql}")
            super().executemany(sql, parameters)
            self._pass(f"after all of {sql}")

        def _pass(self, place: str) -> None:
            places.append(place)
            if len(places) == number:
                self.raw.pgconn.finish()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writers, "Connection", Cut)
        yield places


def test_a_connection_that_is_cut_anywhere_in_a_block_leaves_it_whole_or_out(
    open_host: Open, maker: ChainMaker
) -> None:
    first, block = open_host(), maker.block(b"a=1", b"b=2", b"val=none")
    first.init_chain(maker.genesis, maker.state)
    # The long campaign tests every place.
    for number in itertools.count(1, 1 if is_long() else 3):
        with closing(open_host()) as store, cut_at(number) as places:
            try:
                store.append_block(block)
            except StoreError:
                assert first.reads.latest_height() == 0, places[-1]
            else:
                break
    assert places[-1] == "after COMMIT"
    assert len(places) > 50
    assert first.reads.latest_height() == first.verify() == 1


def test_reads_go_on_when_their_idle_connections_were_ended(
    host: PostgresBackend, maker: ChainMaker, cluster: Cluster
) -> None:
    """The server ends the connections before the response to their last ROLLBACK is read."""
    host.append_block(maker.block(b"a=1"))
    found = host.reads.block(1)
    for _ in range(3):
        with host.reads.read_view() as version:
            assert (version, host.reads.block(1)) == (host.reads.version(), found)
        cluster.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <>"
            " pg_backend_pid() AND backend_type = 'client backend'"
        )
        assert (host.reads.latest_height(), host.reads.block(1)) == (1, found)


def test_a_restart_of_the_database_is_waited_for(maker: ChainMaker) -> None:
    """Reads and writes fail meanwhile, and then work again; no response is wrong."""
    cluster = Cluster(fsync="on")
    store = PostgresBackend(cluster.new_database())
    ended = threading.Event()
    wrong: list[object] = []
    try:
        store.init_chain(maker.genesis, maker.state)
        store.append_block(maker.block(b"a=0"))
        first = store.reads.block(1)

        def read() -> None:
            while not ended.is_set():
                try:
                    if (found := store.reads.block(1)) != first:
                        wrong.append(found)
                except StoreError:
                    ended.wait(0.01)

        reader = threading.Thread(target=read)
        reader.start()
        for number, mode in enumerate(("immediate", "fast"), 1):
            block = maker.block(b"a=%d" % number)
            cluster.stop(mode)
            with pytest.raises(StoreError):
                store.append_block(block)
            cluster.start()
            until(lambda item=block: _appended(store, item), "it goes on")  # type: ignore[misc]
        ended.set()
        reader.join(PATIENCE)
        assert wrong == []
        assert store.verify() == 3
    finally:
        ended.set()
        store.close()
        cluster.close()


def _appended(store: PostgresBackend, block: Any) -> bool:
    try:
        store.append_block(block)
    except StoreError:
        return False
    return True


_PRODUCER = """
import sys, time
from flask_noderpc import EmbeddedChain
from flask_noderpc.chain.block_scheduler import BlockSchedule

schedule = BlockSchedule(interval_s=0.05, empty_blocks=True, lease_s=1.0)
chain = EmbeddedChain(sys.argv[1], home=sys.argv[2], schedule=schedule)
chain.start()
print("started", flush=True)
while True:
    time.sleep(1)
"""

KILLS = 5


def test_killed_producers_are_taken_over_without_a_fork(url: str, tmp_path: Path) -> None:
    keys = tmp_path / "home"
    home.create(keys, "killed-chain", 1_700_000_000 * 10**9)
    with closing(EmbeddedChain(url, home=keys, produce=False)) as chain:
        chain.start()
        producers = [_producer(url, keys) for _ in range(2)]
        sent: list[bytes] = []
        hashes: dict[int, bytes] = {}
        try:
            for number in range(KILLS):
                before = chain.reads.latest_height()
                until(lambda: chain.reads.latest_height() > before + 2, "blocks")  # noqa: B023
                for tx in (b"k%d.%d=v" % (number, each) for each in range(5)):
                    chain.mempool.submit(tx)
                    sent.append(tx)
                hashes |= {
                    at: chain.reads.hash_at(at)
                    for at in range(1, chain.reads.latest_height() + 1)
                }
                _kill_owner(chain, producers)
                producers.append(_producer(url, keys))
            last = chain.reads.latest_height()
            until(lambda: chain.reads.latest_height() > last + 2, "somebody took over")
            until(lambda: chain.mempool.pending_count().total == 0, "all are in blocks")
        finally:
            for each in producers:
                each.kill()
                each.communicate()
        txs = [
            tx
            for at in range(1, chain.reads.latest_height() + 1)
            for tx in chain.reads.block(at)[1].txs
        ]
        assert sorted(txs) == sorted(sent)
        assert {at: chain.reads.hash_at(at) for at in hashes} == hashes
        assert chain.store.verify() == chain.reads.latest_height()


def _producer(url: str, keys: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _PRODUCER, url, str(keys)]
    made = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert made.stdout is not None
    assert made.stdout.readline() == "started\n"
    return made


def _kill_owner(chain: EmbeddedChain, producers: list[subprocess.Popen[str]]) -> None:
    owner = chain.store.lease_state().owner
    for each in list(producers):
        if owner.startswith(f"{each.pid}-"):
            producers.remove(each)
            each.send_signal(signal.SIGKILL)
            each.communicate()
            return
    raise AssertionError(f"none of these is {owner!r}")


def test_a_connection_that_the_server_ended_is_replaced(
    url: str, open_host: Open, maker: ChainMaker
) -> None:
    store = open_host()
    store.init_chain(maker.genesis, maker.state)
    for number in range(3):
        store.append_block(maker.block(b"a=%d" % number))
        with psycopg.connect(url) as at:
            at.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        # Reads and writes succeed.
        assert store.reads.latest_height() == number + 1
        assert store.reads.block(1)[1].txs == (b"a=0",)
    assert store.verify() == 3


def test_readers_beyond_the_limit_wait(open_host: Open, host: PostgresBackend) -> None:
    began, resume = threading.Barrier(9), threading.Event()
    found: list[int] = []

    def hold() -> None:
        with host._open().readers.snapshot():
            began.wait(PATIENCE)
            resume.wait(PATIENCE)

    threads = [threading.Thread(target=hold) for _ in range(8)]
    for each in threads:
        each.start()
    began.wait(PATIENCE)
    late = threading.Thread(target=lambda: found.append(host.reads.latest_height()))
    late.start()
    resume.set()
    for each in (*threads, late):
        each.join(PATIENCE)
    assert found == [0]


def test_a_chain_whose_keys_are_elsewhere_is_served(
    url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(EmbeddedChain(url, home=tmp_path / "one")) as first:
        first.start()
        with closing(EmbeddedChain(url, home=tmp_path / "other")) as other:
            other.start()
            other.mempool.submit(b"a=1")
            first.produce()
            until(lambda: other.reads.latest_height() == 1, "it is seen")
            with pytest.raises(NodeRPCError, match="has no keys"):
                other.produce()
    assert "another host with the keys produces the blocks" in caplog.text
    assert not (tmp_path / "other").exists()


_FORKS = """
import os, sys, threading
from flask_noderpc.backends import open_store
from flask_noderpc.testing.chains import ChainMaker

maker = ChainMaker((10,))
store = open_store(sys.argv[1])
store.init_chain(maker.genesis, maker.state)
store.append_block(maker.block(b"a=1"))
waiting = threading.Thread(target=store.reads.wait_for_height, args=(2, 120))
waiting.start()
block = maker.block(b"a=2")
child = os.fork()
if not child:
    assert store.reads.latest_height() == 1
    store.append_block(block)
    store.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert store.reads.latest_height() == 2
store.append_block(maker.block(b"a=3"))
waiting.join(120)
assert store.verify() == 3
store.close()
"""


def test_parent_and_child_of_a_fork_have_connections_of_their_own(url: str) -> None:
    subprocess.run([sys.executable, "-c", _FORKS, url], check=True, timeout=PATIENCE)


_GEVENT = """
from gevent import monkey

monkey.patch_all()
import sys, time
import gevent
from flask_noderpc.backends import open_store
from flask_noderpc.testing.chains import ChainMaker

maker = ChainMaker((10,))
store = open_store(sys.argv[1])
store.init_chain(maker.genesis, maker.state)
store.append_block(maker.block(b"a=1"))
turns = []

def count():
    while True:
        turns.append(time.monotonic())
        gevent.sleep(0.01)

counter = gevent.spawn(count)
one = store._open().readers.one
ended = gevent.spawn(one, "SELECT 77, pg_sleep(600)")
works = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
while not one(works):
    gevent.sleep(0.01)
# Others run while the database works.
began = len(turns)
while len(turns) < began + 20:
    gevent.sleep(0.01)
assert one(works)
# One that is ended while it waits leaves no result to the next.
ended.kill()
reads = [gevent.spawn(store.reads.block, 1) for _ in range(50)]
gevent.joinall(reads, raise_error=True)
assert one("SELECT 1") == (1,)
waiting = gevent.spawn(store.reads.wait_for_height, 1, 120)
gevent.sleep(0.1)
store.append_block(maker.block(b"a=2"))
assert waiting.get(timeout=120) == 2
store.close()
"""


def test_other_greenlets_run_while_the_database_works(url: str) -> None:
    subprocess.run([sys.executable, "-c", _GEVENT, url], check=True, timeout=PATIENCE)


def test_reads_go_on_after_one_that_failed(host: PostgresBackend, maker: ChainMaker) -> None:
    """After a ROLLBACK, psycopg drops prepared statements that others use, too."""
    host.append_block(maker.block(b"a=1"))
    for _ in range(3):
        # The connection prepares statements that are repeated.
        for _ in range(10):
            assert host.reads.block(1)[1].txs == (b"a=1",)
            assert host.reads.latest_height() == 1
        with pytest.raises(StoreError, match="division by zero"):
            host._open().read(lambda at: at.execute("SELECT 1 / 0").fetchone())
    assert host.reads.block(1)[1].txs == (b"a=1",)
