"""Three hosts on one database under load: each subscriber receives each match once and in
order, while hosts are restarted, killed or promoted."""

from __future__ import annotations

import json
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import pytest

from flask_noderpc.chain import home
from flask_noderpc.domain.search import Page, Search, SearchLimits
from flask_noderpc.postgres.backend import PostgresBackend
from tests.faults.followers import Subscriber
from tests.faults.processes import check_duration, is_long
from tests.helpers.http import request
from tests.helpers.ports import free_port
from tests.helpers.postgres import Cluster, Standby
from tests.helpers.process import Process
from tests.helpers.until import PATIENCE, until

pytestmark = pytest.mark.campaign

_ROOT = Path(__file__).parents[2]
_START = "from flask_noderpc.cli import main; main()"
RESTARTS, KILLS = (20, 100) if is_long() else (2, 2)
SUBSCRIBERS = 20
# Seconds until the service is back, and until another producer takes over.
BACK_S, TAKEN_OVER_S = 10.0, 5.0


class Host:
    """A node in a separate folder, started as by a user."""

    def __init__(self, folder: Path, url: str) -> None:
        self.url = f"http://127.0.0.1:{free_port()}"
        self._folder, self._database = folder, url
        self.start()

    def start(self) -> None:
        """Start the node, and wait until it responds."""
        address = self.url.replace("http", "tcp")
        options = ["--home", str(self._folder), "--database", self._database]
        options += ["--rpc.laddr", address, "--block-interval", "0.2"]
        command = [sys.executable, "-c", _START, "start", *options]
        python_path = {"PYTHONPATH": str(_ROOT)}
        log = self._folder / "log"
        before = log.stat().st_size if log.exists() else 0
        self._process = Process(command, log, python_path, self._folder)
        # A worker may answer while others still start, which end the node if they fail.
        until(lambda: b"\ncurl " in log.read_bytes()[before:], "all processes are ready")
        until(lambda: self.height() > 0, "the host answers")

    def ask(self, path: str) -> str:
        """Return the response to a GET; raise ``OSError``."""
        return request(self.url + path, timeout=PATIENCE).text

    def height(self) -> int:
        """Return the latest height; 0 if the host has none or does not respond."""
        try:
            status = json.loads(self.ask("/status"))["result"]
        except (OSError, KeyError, ValueError):
            return 0
        return int(status["sync_info"]["latest_block_height"])

    def takes(self, tx: str) -> bool:
        """Send a transaction; return true if it was accepted."""
        try:
            answer = self.ask(f"/broadcast_tx_sync?tx={quote(chr(34) + tx + chr(34))}")
        except OSError:
            return False
        return '"code":0' in answer or "already exists in cache" in answer

    def kill(self) -> None:
        """Kill all its processes at once."""
        self._process.kill()


@dataclass
class Load:
    """Threads that send transactions to all hosts, one after the other, until the end."""

    hosts: Sequence[Host]
    sent: list[str] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._threads = [
            threading.Thread(target=self._send, args=each, daemon=True)
            for each in enumerate(self.hosts)
        ]
        for thread in self._threads:
            thread.start()

    def _send(self, name: int, host: Host) -> None:
        number = 0
        while not self.ended.wait(0.02):
            tx = f"k{name}.{number}=v"
            if host.takes(tx):
                self.sent.append(tx)
                number += 1

    def end(self) -> None:
        """Stop once the last transactions are accepted."""
        self.ended.set()
        for thread in self._threads:
            thread.join(PATIENCE)


@pytest.fixture
def pair() -> Iterator[tuple[Cluster, Standby]]:
    """A primary with a synchronous standby, so that nothing is lost."""
    with ExitStack() as stack:
        primary = stack.enter_context(closing(Cluster(fsync="on")))
        standby = stack.enter_context(closing(Standby(primary)))
        primary.execute(
            "ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"
        )
        state = "SELECT sync_state FROM pg_stat_replication"
        until(lambda: bool(primary.ask(state) == ("sync",)), "the standby is synchronous")
        yield primary, standby


@pytest.fixture
def url(pair: tuple[Cluster, Standby]) -> str:
    """The URL of a database on both."""
    primary, standby = pair
    name = primary.empty_database().rpartition("/")[2].partition("?")[0]
    folders = ",".join(str(each.folder) for each in (primary, standby))
    return f"postgresql://noderpc@/{name}?host={quote(folders, safe='')}"


@pytest.fixture
def hosts(url: str, tmp_path: Path) -> Iterator[list[Host]]:
    """Yield three hosts; two of them have the validator's keys."""
    folders = [tmp_path / name for name in ("one", "two", "three")]
    home.create(folders[0], "three-hosts", 1_700_000_000 * 10**9)
    shutil.copytree(folders[0], folders[1])
    folders[2].mkdir()
    made: list[Host] = []
    try:
        # Start them one by one, so that those which started are ended.
        made.extend(Host(folder, url) for folder in folders)
        yield made
    finally:
        for host in made:
            host.kill()


def all_places(store: PostgresBackend) -> list[tuple[int, int]]:
    heights = range(1, store.reads.latest_height() + 1)
    return [(at, n) for at in heights for n in range(len(store.reads.block(at)[1].txs))]


def run(
    hosts: Sequence[Host], url: str, disturb: Callable[[Load], None], may_end: bool = False
) -> None:
    """Disturb hosts under load; then check that each accepted transaction is in one block, and
    that each subscriber received it once."""
    subscribers = [Subscriber(host.url, "Tx") for host in hosts for _ in range(SUBSCRIBERS)]
    load = Load(hosts)
    until(lambda: len(load.sent) > 20, "transactions are taken")
    try:
        disturb(load)
    finally:
        load.end()
    with closing(PostgresBackend(url)) as store:
        until(lambda: store.mempool.pending_count().total == 0, "all are in blocks")
        places = all_places(store)
        txs = [
            tx.decode()
            for at in range(1, store.reads.latest_height() + 1)
            for tx in store.reads.block(at)[1].txs
        ]
        # A transaction may be accepted although its sender got no response.
        assert len(txs) == len(set(txs))
        assert set(load.sent) <= set(txs)
        assert store.reads.search_txs(
            Search(), Page(0, 1), SearchLimits(PATIENCE)
        ).total == len(txs)
        assert store.verify() >= places[-1][0]
    for each in subscribers:
        if not each.is_away:
            until(lambda each=each: len(each.told) >= len(places), "its notification")  # type: ignore[misc]
        each.end()
    # Subscribers of a killed host receive nothing more.
    assert may_end or not any(each.is_away for each in subscribers)
    for each in subscribers:
        assert each.told == (places[: len(each.told)] if each.is_away else places)


def goes_on(load: Load, most: float) -> None:
    """Wait until all hosts have blocks with transactions that were sent from now on."""
    began, heights = time.monotonic(), [host.height() for host in load.hosts]
    sent = len(load.sent)
    until(lambda: len(load.sent) > sent + 10, "transactions are taken")
    until(
        lambda: all(
            host.height() > height for host, height in zip(load.hosts, heights, strict=True)
        ),
        "all hosts have new blocks",
    )
    check_duration(time.monotonic() - began, most)


def test_each_match_is_told_once_and_in_order_on_each_host(hosts: list[Host], url: str) -> None:
    run(hosts, url, lambda load: goes_on(load, PATIENCE))


def test_a_database_that_is_restarted_under_load(
    hosts: list[Host], url: str, pair: tuple[Cluster, Standby]
) -> None:
    def restart(load: Load) -> None:
        for number in range(RESTARTS):
            pair[0].stop("immediate" if number % 2 else "fast")
            pair[0].start()
            goes_on(load, BACK_S)

    run(hosts, url, restart)


def test_a_primary_that_fails_over_to_its_standby_under_load(
    hosts: list[Host], url: str, pair: tuple[Cluster, Standby]
) -> None:
    primary, standby = pair

    def promote(load: Load) -> None:
        primary.stop("immediate")
        standby.promote()
        # From now on it is a primary without a standby.
        standby.execute("ALTER SYSTEM RESET synchronous_standby_names")
        standby.execute("SELECT pg_reload_conf()")
        goes_on(load, BACK_S)

    run(hosts, url, promote)


def test_a_producer_that_is_killed_under_load(hosts: list[Host], url: str) -> None:
    """Kill the two hosts with keys alternately."""

    def kill(load: Load) -> None:
        for number in range(KILLS):
            host = hosts[number % 2]
            host.kill()
            before, began = hosts[2].height(), time.monotonic()
            until(lambda: hosts[2].height() > before, "the other one produces")  # noqa: B023
            check_duration(time.monotonic() - began, TAKEN_OVER_S)
            host.start()

    run(hosts, url, kill, may_end=True)


def test_a_host_that_can_t_reach_the_database_says_so(
    hosts: list[Host], pair: tuple[Cluster, Standby]
) -> None:
    pair[0].stop("immediate")
    assert "the database can't be reached" in hosts[2].ask("/status")
    pair[0].start()
    until(lambda: hosts[2].height() > 0, "it answers again")
