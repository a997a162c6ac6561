"""Reads at random heights of 100,000 blocks compared with 1,000, with nothing cached."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from flask_noderpc.protocol.comet.hashes import tx_hash

from .chains import LONG, THOUSAND, Chain, build
from .compare import Bench, Row, by_turns, rows
from .peers.ours import ours, reading
from .process import Server
from .table import Table, of_rows
from .wrk import Ask

_SHORT, _LONG = "1,000 blocks", "Flask"
_HEIGHTS, _HASHES = 20_000, 2_000
# At most 1.2 times the cost.
_LEAST = 1 / 1.2

AT_HEIGHT: dict[str, Callable[[Chain, int], str]] = {
    "status": lambda chain, height: "/status",
    "block": lambda chain, height: f"/block?height={height}",
    "header": lambda chain, height: f"/header?height={height}",
    "block_results": lambda chain, height: f"/block_results?height={height}",
    "commit": lambda chain, height: f"/commit?height={height}",
    "validators": lambda chain, height: f"/validators?height={height}",
    "consensus_params": lambda chain, height: f"/consensus_params?height={height}",
    "blockchain": lambda chain, height: (
        f"/blockchain?minHeight={height}&maxHeight={height + 19}"
    ),
    "tx": lambda chain, height: f"/tx?hash=0x{tx_hash(chain.block(height)[3]).hex()}",
    "tx_search by height": lambda chain, height: f"/tx_search?query=%22tx.height={height}%22",
    "tx_search by key": lambda chain, height: f"/tx_search?query=%22app.key='k{height}.3'%22",
    "block_search": lambda chain, height: f"/block_search?query=%22block.height={height}%22",
    "abci_query": lambda chain, height: f"/abci_query?data=%22k{height}.3%22",
}
BY_HASH = ("block_by_hash", "header_by_hash")


def compare(bench: Bench) -> Table:
    """Return the table of all reads; the long chain is built if it is missing."""
    chains = {_LONG: LONG, _SHORT: THOUSAND}
    folders = {_LONG: bench.cache, _SHORT: bench.scratch}
    with ExitStack() as stack:
        servers = {}
        for name, chain in chains.items():
            path = build(chain, folders[name])
            fill_page_cache(path)
            settings = reading(path, cache_bytes=0)
            home = Path(mkdtemp(dir=bench.scratch))
            servers[name] = stack.enter_context(ours("Flask", home, settings))
        return of_rows("long", (_SHORT,), list(_rows(bench, chains, servers)))


def fill_page_cache(path: Path) -> None:
    """Read a file into the kernel's page cache, so that the disk is not measured."""
    with path.open("rb") as file:
        while file.read(1 << 24):
            pass


def _rows(bench: Bench, chains: dict[str, Chain], servers: dict[str, Server]) -> Iterator[Row]:
    @cache
    def hashes(name: str) -> tuple[str, ...]:
        return tuple(_hash(servers[name], height) for height in _heights(chains[name], _HASHES))

    targets = {_LONG: {_SHORT: _LEAST}}
    for read, path in AT_HEIGHT.items():

        def at_height(name: str, path: Callable[[Chain, int], str] = path) -> Ask:
            chain = chains[name]
            return Ask(tuple(path(chain, height) for height in _heights(chain, _HEIGHTS)))

        yield from rows(read, by_turns(bench, read, servers, at_height), targets)
    for read in BY_HASH:

        def by_hash(name: str, read: str = read) -> Ask:
            return Ask(tuple(f"/{read}?hash=0x{one}" for one in hashes(name)))

        yield from rows(read, by_turns(bench, read, servers, by_hash), targets)


def _heights(chain: Chain, count: int) -> list[int]:
    dice = random.Random(chain.name)
    # Heights that have room for a range above.
    return [dice.randint(1, chain.blocks - 20) for _ in range(count)]


def _hash(server: Server, height: int) -> str:
    answer = json.loads(server.ask(f"/block?height={height}"))
    return str(answer["result"]["block_id"]["hash"])
