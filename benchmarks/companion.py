"""A companion's head lag, failover, and load on its node: ``python -m benchmarks.companion``.

Prints figures and asserts nothing. The nodes run in the process of the companion, which makes
its figures worse than those of machines of their own.
"""

from __future__ import annotations

import logging
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.request import urlopen

import click

from flask_noderpc import ChainBackend, MemoryChain
from flask_noderpc.companion.backend import CompanionBackend
from flask_noderpc.companion.from_settings import companion_from_settings
from flask_noderpc.settings import read_settings
from flask_noderpc.testing import SampleChain, make_chain
from flask_noderpc.testing.node import app_for, serve

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

_DIALECT = "comet-0.38"
_HISTORY, _NEW = 600, 60
_CLIENTS, _READS = 500, 2000
_RATE = 60


class Gate:
    """A node's middleware that can let the node hang, and counts its concurrent requests."""

    def __init__(self, node: MemoryChain) -> None:
        self.app = app_for(ChainBackend(node), dialect=_DIALECT)
        self._answer = self.app.wsgi_app
        self.app.wsgi_app = self  # type: ignore[assignment, method-assign]
        self.opened = threading.Event()
        self.opened.set()
        self._lock = threading.Lock()
        self._in_flight = self.most = self.requests = 0

    def __call__(  # noqa: D102
        self, environ: WSGIEnvironment, start: StartResponse
    ) -> Iterable[bytes]:
        if "HTTP_UPGRADE" in environ:
            return self._answer(environ, start)
        with self._lock:
            self._in_flight += 1
            self.requests += 1
            self.most = max(self.most, self._in_flight)
        try:
            self.opened.wait()
            return self._answer(environ, start)
        finally:
            with self._lock:
                self._in_flight -= 1


def _node(chain: SampleChain, height: int) -> MemoryChain:
    return MemoryChain(chain.genesis, chain.blocks[:height], state=chain.state)


@contextmanager
def _following(*gates: Gate, **settings: Any) -> Iterator[CompanionBackend]:
    with ExitStack() as stack:
        urls = tuple(stack.enter_context(serve(gate.app)) for gate in gates)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        given = {"upstream": urls, "trust_period": 10**9, **settings}
        backend = companion_from_settings(read_settings({}, given), folder / "companion.db")
        stack.callback(backend.close)
        # Registered first, so that it runs last: a node that hangs would not end.
        for gate in gates:
            stack.callback(gate.opened.set)
        backend.follow()
        yield backend


def _until(holds: Callable[[], bool]) -> float:
    """Wait for a state; return the seconds that it took."""
    began = time.monotonic()
    while not holds():
        time.sleep(0.002)
    return time.monotonic() - began


def _show(what: str, seconds: Iterable[float]) -> None:
    found = sorted(seconds)
    p99 = found[min(len(found) - 1, int(len(found) * 0.99))]
    click.echo(
        f"{what}: median {1000 * statistics.median(found):.0f} ms, p99 {1000 * p99:.0f} ms,"
        f" {len(found)} of them"
    )


def head_lag(
    chain: SampleChain, kind: str, count: int = _NEW, pause: float = 0.1, **settings: Any
) -> None:
    """Print the time from a block's commit on the node to its commit in the store, during a
    backfill."""
    nodes = [_node(chain, _HISTORY)]
    if kind != "one node":
        nodes.append(_node(chain, _HISTORY))
    lags = []
    with _following(*map(Gate, nodes), **settings) as followed:
        _until(lambda: followed.reads.latest_height() >= _HISTORY)
        for block in chain.blocks[_HISTORY : _HISTORY + count]:
            nodes[0].append_block(block)
            if kind == "one later":
                threading.Timer(0.1, nodes[1].append_block, (block,)).start()
            height = block.block.header.height
            lags.append(_until(lambda height=height: followed.reads.latest_height() >= height))  # type: ignore[misc]
            time.sleep(pause)
        base = followed.reads.base_height()
    _show(f"head lag, {kind}{', ' if settings else ''}{settings or ''} (base {base})", lags)


def failover(chain: SampleChain) -> None:
    """Print the delay of the head, and of a forwarded call, when one of two nodes hangs."""
    node = _node(chain, _HISTORY)
    gates = Gate(node), Gate(node)
    with _following(*gates) as followed:
        _until(
            lambda: (
                followed.reads.latest_height() >= _HISTORY and followed.reads.base_height() == 1
            )
        )
        followed.network.net_info()
        gates[0].opened.clear()
        lags, calls = [], []
        for block in chain.blocks[_HISTORY : _HISTORY + 5]:
            node.append_block(block)
            height = block.block.header.height
            lags.append(_until(lambda height=height: followed.reads.latest_height() >= height))  # type: ignore[misc]
            calls.append(_until(lambda: bool(followed.network.net_info())))
    click.echo(f"failover: head {max(lags):.2f} s, forwarded call {max(calls):.2f} s")


def stored_reads(chain: SampleChain) -> None:
    """Print the times of stored reads while the node responds, and while it hangs with clients
    that wait for it."""
    gate = Gate(_node(chain, _HISTORY))
    with (
        _following(gate) as followed,
        serve(app_for(followed, dialect=_DIALECT)) as url,
        ThreadPoolExecutor(8) as waiting,
    ):
        _until(
            lambda: (
                followed.reads.latest_height() >= _HISTORY and followed.reads.base_height() == 1
            )
        )
        _show("stored reads", _timed(url))
        gate.opened.clear()
        for number in range(8):
            waiting.submit(_get, f'{url}/abci_query?data="{number}"')
        _show("stored reads while the node hangs", _timed(url))
        gate.opened.set()


def _timed(url: str) -> Iterator[float]:
    for number in range(_READS):
        began = time.monotonic()
        _get(f"{url}/block?height={number % _HISTORY + 1}")
        yield time.monotonic() - began


def _get(url: str) -> bytes:
    try:
        with urlopen(url) as response:
            body: bytes = response.read()
    except HTTPError as error:
        body = error.read()
    return body


def budget(chain: SampleChain) -> None:
    """Print the requests that a node gets from many clients of one process with a rate
    limit."""
    gate = Gate(_node(chain, _HISTORY))
    with (
        _following(gate, upstream_rate=_RATE, backfill_from=_HISTORY) as followed,
        serve(app_for(followed, dialect=_DIALECT)) as url,
        ThreadPoolExecutor(_CLIENTS) as clients,
    ):
        _until(lambda: followed.reads.latest_height() >= _HISTORY)
        _get(f"{url}/status")
        before, began = gate.requests, time.monotonic()
        paths = (f'{url}/abci_query?data="{number}"' for number in range(_CLIENTS))
        failed = sum(b"asked as often" in body for body in clients.map(_get, paths))
        seconds = time.monotonic() - began
    rate = (gate.requests - before) / seconds
    click.echo(
        f"budget: {_CLIENTS} clients, {rate:.0f} requests a second of {_RATE} for each of two"
        f" pools, {gate.most} at once at most, {failed} were told to come again"
    )


@click.command()
def main() -> None:
    """Print the figures."""
    logging.disable(logging.WARNING)
    chain = make_chain(_HISTORY + _NEW)
    for kind in ("one node", "one halted", "one later"):
        head_lag(chain, kind)
    head_lag(chain, "one node", 10, 3.0, upstream_rate=5)
    failover(chain)
    stored_reads(chain)
    budget(chain)


if __name__ == "__main__":
    main()
