"""Requests whose responses are not cached, compared with CometBFT: each request is a different
one."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable

from .chains import THOUSAND
from .compare import Bench
from .nodes import COMETBFT, PEERS, Stage, Workload, stage_rows
from .peers import cometbft
from .table import Table, of_rows
from .wrk import Ask

_MANY = 20_000


def _cold(name: str, ask: Callable[[], Ask], start: float, flask: float = 0.0) -> Workload:
    """Return a workload with the minimum ratios to CometBFT by ``noderpc start`` and through
    Flask."""
    targets = {
        "noderpc start": {COMETBFT: start},
        **({"Flask": {COMETBFT: flask}} if flask else {}),
    }
    return Workload(name, ask, targets, is_immutable=False)


def _at_random(route: str) -> Ask:
    """Return a route at random heights."""
    dice = random.Random(len(route))
    heights = (dice.randint(2, THOUSAND.blocks - 1) for _ in range(_MANY))
    return Ask(tuple(f"/{route}?height={height}" for height in heights))


def _queries(path: str) -> Ask:
    """Return requests of a path with random keys of the chain."""
    dice = random.Random(len(path))
    keys = (
        f"k{dice.randint(1, THOUSAND.blocks)}.{dice.randrange(THOUSAND.txs)}"
        for _ in range(_MANY)
    )
    return Ask(tuple(path.format(key) for key in keys))


def _batches(size: int) -> Ask:
    """Return batches of calls for blocks at random heights."""
    dice = random.Random(size)

    def batch() -> str:
        heights = [dice.randint(2, THOUSAND.blocks - 1) for _ in range(size)]
        calls = [cometbft.call("block", height=str(height)) for height in heights]
        return json.dumps([{**call, "id": number} for number, call in enumerate(calls)])

    return Ask(bodies=tuple(batch() for _ in range(max(200, 5_000 // size))))


_numbers = itertools.count()


def new_txs() -> Ask:
    """Return transactions that have not been sent before."""
    txs = itertools.islice(_numbers, 100_000)
    paths = tuple(f"/broadcast_tx_sync?tx=%22new{number}=1%22" for number in txs)
    return Ask(paths, only_once=True)


def _no_hits() -> Ask:
    """Return searches of values that no event has."""
    values = itertools.islice(_numbers, _MANY)
    return Ask(tuple(f"/tx_search?query=%22app.key='none{number}'%22" for number in values))


_UNCACHED = (
    _cold("block, random", lambda: _at_random("block"), 0.8, flask=0.35),
    _cold("commit, random", lambda: _at_random("commit"), 0.8),
    _cold("block_results, random", lambda: _at_random("block_results"), 3.0),
    _cold("abci_query, random key", lambda: _queries("/abci_query?data=%22{}%22"), 0.5),
    _cold("tx_search, no hit", _no_hits, 0.4),
    _cold("tx_search, one hit", lambda: _queries("/tx_search?query=%22app.key='{}'%22"), 1.0),
    _cold("batch of 10 blocks", lambda: _batches(10), 2.0),
)
_CACHED = (
    _cold("batch of 10, cached", lambda: _batches(10), 4.0),
    _cold("batch of 100, cached", lambda: _batches(100), 12.0),
)
_SENDING = (_cold("broadcast_tx_sync", new_txs, 0.3),)

STAGES = (
    Stage(_UNCACHED, THOUSAND, keeps=False),
    Stage(_CACHED, THOUSAND),
    Stage(_SENDING, None),
)


def compare(bench: Bench) -> Table:
    """Return the table of all cold requests of the node."""
    return of_rows("cold", PEERS, [row for stage in STAGES for row in stage_rows(bench, stage)])
