"""Latency of other calls during slow searches: ``python -m benchmarks.search``.

While fifty clients send the worst queries to a node under gevent that serves a million
transactions from one core, another asks for its status. Prints the percentiles of that,
alone and beside the searches, and what became of them. The chain is the long one of
``python -m benchmarks``.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import click

from .chains import CACHE, LONG, build
from .peers.ours import ours, reading

CLIENTS = 50

WORST = (
    {"query": "app.key CONTAINS 'k'"},
    {"query": "app.key EXISTS AND app.creator EXISTS AND app.index_key EXISTS"},
    {"query": "app.creator='Cosmoshi' AND app.key CONTAINS 'zz'"},
    {"query": "app.creator='Cosmoshi' AND tx.height>1", "page": "33333"},
    {"query": "app.creator='Cosmoshi'", "page": "9999", "per_page": "100", "prove": True},
    {"query": "tx.height>1", "page": "9000", "per_page": "100", "prove": True},
    {"query": "app.key CONTAINS '99.9'", "per_page": "100", "prove": True},
    {"query": "app.key > 1 AND app.key CONTAINS '1'"},
    {"query": "app.index_key CONTAINS 'working' AND tx.height>50000", "order_by": "desc"},
    {"query": " AND ".join(["app.key CONTAINS 'k'"] * 20)},
)


class Caller:
    """A keep-alive connection."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._connection = HTTPConnection(str(parts.hostname), parts.port, timeout=60)

    def call(self, method: str, params: object) -> str:
        """Return the outcome of a call."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        self._connection.request("POST", "/", body)
        answer = json.loads(self._connection.getresponse().read())
        return "answered" if "result" in answer else str(answer["error"]["data"])


def latencies(url: str, seconds: float) -> list[float]:
    """Return the milliseconds of each call of ``status``."""
    caller = Caller(url)
    found = []
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        started = time.perf_counter()
        assert caller.call("status", {}) == "answered"
        found.append((time.perf_counter() - started) * 1000)
        # A monitor pauses between two calls; a load would not.
        time.sleep(0.005)
    return found


def search(url: str, number: int, over: threading.Event, outcomes: Counter[str]) -> None:
    """Send one slow query after another."""
    caller = Caller(url)
    while not over.is_set():
        outcomes[caller.call("tx_search", WORST[number % len(WORST)])] += 1
        number += 1


def show(name: str, found: list[float]) -> None:
    """Print some percentiles."""
    cuts = statistics.quantiles(found, n=100)
    click.echo(
        f"{name:26} {len(found):6} calls  p50 {cuts[49]:6.1f} ms  p99 {cuts[98]:6.1f} ms"
        f"  most {max(found):6.1f} ms"
    )


@click.command()
@click.option("--seconds", default=20, show_default=True)
@click.option("--cache", type=click.Path(path_type=Path), default=CACHE, show_default=True)
def main(seconds: int, cache: Path) -> None:
    """Request the status, alone and during fifty searches."""
    settings = reading(build(LONG, cache))
    os.sched_setaffinity(0, {1})
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        node = stack.enter_context(ours("Flask", home, settings))
        stack.enter_context(node.awake())
        url = node.url
        show("status alone", latencies(url, seconds / 4))
        over, outcomes = threading.Event(), Counter[str]()
        searching = [
            threading.Thread(target=search, args=(url, number, over, outcomes))
            for number in range(CLIENTS)
        ]
        for thread in searching:
            thread.start()
        show(f"status beside {CLIENTS} searches", latencies(url, seconds))
        over.set()
        for thread in searching:
            thread.join()
    for outcome, count in outcomes.most_common():
        click.echo(f"{count:6} searches: {outcome}")


if __name__ == "__main__":
    main()
