"""Cost of reads and searches of a long chain: ``python -m benchmarks.realistic.scale``.

Makes two chains of ten small transactions a block, or continues them, and serves both with
nothing cached. Prints the time in which the long one is opened, the ratio of each read's cost
to that in the short one, and the 99th percentile of the times of first pages of searches.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import cache
from http.client import HTTPConnection
from pathlib import Path
from random import Random
from statistics import quantiles
from tempfile import TemporaryDirectory
from urllib.parse import quote, urlsplit

import click

from flask_noderpc import SQLiteBackend
from flask_noderpc.protocol.comet.hashes import tx_hash

from ..chains import CACHE
from ..compare import Bench, by_turns
from ..long import fill_page_cache
from ..peers.ours import START_COMMAND, ours, reading
from ..process import PATIENCE_S, Server
from ..wrk import Ask
from .__main__ import extend
from .content import SHAPES, content

_SHAPE = SHAPES["small"]
_HEIGHTS, _CONTENTS, _PAGES = 20_000, 300, 200


@cache
def _tx(height: int) -> str:
    return tx_hash(content(_SHAPE, height).txs[3]).hex()


@cache
def _receipt(height: int) -> str:
    """Return an amount that few transactions have."""
    events = content(_SHAPE, height).results.tx_results[3].events
    return events[0].attributes[1].value.decode()


@cache
def _sender(height: int) -> str:
    """Return one of 20,000 accounts."""
    events = content(_SHAPE, height).results.tx_results[3].events
    return events[0].attributes[0].value.decode()


@cache
def _receiver(height: int) -> str:
    """Return one of 50 accounts."""
    events = content(_SHAPE, height).results.tx_results[3].events
    return events[1].attributes[0].value.decode()


def _search(query: str) -> str:
    return f'/tx_search?query="{quote(query)}"'


READS: dict[str, Callable[[int], str]] = {
    "block": lambda height: f"/block?height={height}",
    "tx": lambda height: f"/tx?hash=0x{_tx(height)}",
    "block_results": lambda height: f"/block_results?height={height}",
    "validators": lambda height: f"/validators?height={height}",
    "commit": lambda height: f"/commit?height={height}",
    "tx_search by key": lambda height: _search(f"coin_spent.amount='{_receipt(height)}'"),
}
OF_CONTENT = {"tx", "tx_search by key"}

PAGES: dict[str, Callable[[int], str]] = {
    "one of 20,000 values": lambda height: _search(f"transfer.sender='{_sender(height)}'"),
    "one of 50 values": lambda height: _search(f"transfer.recipient='{_receiver(height)}'"),
    "a range of heights": lambda height: _search(f"tx.height>{height}"),
    "a range of values": lambda height: _search("coin_spent.amount>5"),
    "a range at heights": lambda height: _search(
        f"tx.fee>5 AND tx.height>{height} AND tx.height<{height + 10}"
    ),
    "EXISTS": lambda height: _search("tx.fee EXISTS"),
    "rare AND common": lambda height: _search(
        f"transfer.sender='{_sender(height)}' AND transfer.recipient='{_receiver(height)}'"
    ),
    "common AND EXISTS": lambda height: _search(
        f"transfer.recipient='{_receiver(height)}' AND tx.fee EXISTS"
    ),
    "common AND common": lambda height: _search(
        f"transfer.recipient='{_receiver(height)}' AND coin_received.receiver='{_receiver(1)}'"
    ),
    "CONTAINS": lambda height: _search(f"transfer.sender CONTAINS '{_sender(height)[8:20]}'"),
    "block by time": lambda height: _search("block.timestamp>1").replace("tx_", "block_"),
}


@click.command()
@click.option("--blocks", default=1_000_000, show_default=True, help="Of the long chain.")
@click.option("--short", default=10_000, show_default=True, help="Blocks of the short chain.")
@click.option("--folder", type=click.Path(path_type=Path), default=CACHE / "realistic")
@click.option("--rounds", default=5, show_default=True, help="Of which the median is shown.")
def main(blocks: int, short: int, folder: Path, rounds: int) -> None:
    """Print the ratio of the long chain's costs to those in the short one."""
    os.sched_setaffinity(0, {1})
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as scratch, ExitStack() as stack:
        servers, heights = {}, {}
        for name, count in (("long", blocks), ("short", short)):
            path = folder / f"small-{name}.db"
            heights[name] = _prepare(path, count)
            fill_page_cache(path)
            settings = reading(path, cache_bytes=0)
            home = Path(scratch) / name
            servers[name] = stack.enter_context(ours(START_COMMAND, home, settings))
        bench = Bench(rounds, 1, CACHE, Path(scratch))
        for name, read in READS.items():
            _compare(bench, name, read, servers, heights)
        with servers["long"].awake():
            for name, page in PAGES.items():
                click.echo(f"{name}: {first_pages(servers['long'], page, heights['long'])}")
            click.echo(f"memory: {max(servers['long'].memory_mb().values()):.0f} MB")


def _prepare(path: Path, count: int) -> int:
    """Make the chain if it is shorter than ``count``; return its number of blocks."""
    with closing(SQLiteBackend(path)) as store:
        extend(store, _SHAPE, count, signed=False)
    began = time.perf_counter()
    with closing(SQLiteBackend(path)) as store:
        height = store.reads.latest_height()
        click.echo(
            f"{height} blocks, {path.stat().st_size / 1e9:.2f} GB:"
            f" opened in {time.perf_counter() - began:.3f} s"
        )
    return height


def _compare(
    bench: Bench,
    name: str,
    read: Callable[[int], str],
    servers: dict[str, Server],
    heights: dict[str, int],
) -> None:
    @cache
    def asked(chain: str) -> Ask:
        count = _CONTENTS if name in OF_CONTENT else _HEIGHTS
        return Ask(tuple(map(read, _heights(heights[chain], count))))

    runs = by_turns(bench, name, servers, asked)
    click.echo(f"    {runs['short'].per_second / runs['long'].per_second:.2f}")


def _heights(last: int, count: int) -> Iterator[int]:
    random = Random(last)
    return (random.randint(2, last - 20) for _ in range(count))


def first_pages(server: Server, page: Callable[[int], str], last: int) -> str:
    """Return the median and the 99th percentile of the times of some searches, and their
    outcomes."""
    client = HTTPConnection(str(urlsplit(server.url).netloc), timeout=PATIENCE_S)
    times, said = [], Counter[str]()
    for height in _heights(last, _PAGES):
        path = page(height)
        began = time.perf_counter()
        client.request("GET", path)
        answer = json.load(client.getresponse())
        times.append(time.perf_counter() - began)
        said["answered" if "result" in answer else answer["error"]["data"][:60]] += 1
    half, most = quantiles(times, n=100)[49], quantiles(times, n=100)[-1]
    return f"half in {1000 * half:.1f} ms, 99 % in {1000 * most:.1f} ms; {dict(said)}"


if __name__ == "__main__":
    main()
