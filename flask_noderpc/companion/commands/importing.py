"""``noderpc import``: fetch a range of a chain from its nodes into a store."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...cli.maintenance import Interrupted, StoreName
from ...cli.node import main
from ...domain.time import SECOND
from ...server.output import Progress
from ...settings.kinds import PERIOD
from .options import addresses_of, store_path, upstream_header

if TYPE_CHECKING:
    from ...backends.sql.store import ChainStore
    from ..beginning import FetchOptions
    from ..pool import Upstreams

# Maximum number of chunks that are fetched and decoded in parallel; a chunk has some megabytes.
_MAX_CHUNKS = 32
# One process stores the blocks that two or three decode, small ones and large ones.
_USEFUL_JOBS = 4


def _period(context: click.Context, option: click.Parameter, value: str) -> int:
    """Return the period in nanoseconds."""
    try:
        return int(PERIOD.read(value) * SECOND)
    except ValueError as error:
        raise click.BadParameter(f"{value!r}: {error}") from None


@main.command(
    "import",
    examples=[
        (
            "noderpc import http://node:26657 --database chain.db",
            "Import all blocks of a node.",
        ),
        (
            "noderpc import http://one:26657 http://two:26657 --from 1000 --to 2000",
            "Import a range from two nodes into ~/.noderpc.",
        ),
    ],
)
@click.argument("urls", nargs=-1, required=True, metavar="URL...")
@click.option(
    "--from",
    "first",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="HEIGHT",
    help="Lowest height; blocks that all nodes have pruned are left out.",
)
@click.option(
    "--to",
    "last",
    type=click.IntRange(min=1),
    default=None,
    metavar="HEIGHT",
    help="Highest height.  [default: the last one whose results are proven]",
)
@click.option(
    "--database",
    type=StoreName(dir_okay=False),
    default=None,
    help="SQLite file or postgresql:// URL.  [default: data/noderpc.db in the home]",
)
@click.option(
    "--home",
    type=click.Path(file_okay=False, path_type=Path),
    default=None,
    help="Folder of a node.  [default: ~/.noderpc]",
)
@click.option(
    "--trust",
    default="",
    metavar="HEIGHT:HASH",
    help="Header to trust.  [default: the first one that the nodes report]",
)
@click.option(
    "--trust-period",
    "period",
    default="14d",
    show_default=True,
    callback=_period,
    metavar="PERIOD",
    help="Time for which a header is trusted; less than the chain's unbonding period.",
)
@click.option("--chain-id", default="", help="Refuse nodes of other chains.")
@click.option("--upstream-dialect", "dialect", default="", help="Dialect of the nodes.")
@upstream_header
@click.option(
    "--upstream-timeout",
    "timeout",
    type=click.FloatRange(min=0.1),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="Maximum seconds of a request.",
)
@click.option(
    "--upstream-concurrency",
    "concurrency",
    type=click.IntRange(min=1, max=64),
    default=4,
    show_default=True,
    metavar="INTEGER",
    help="Maximum requests in flight to each node.",
)
@click.option(
    "--upstream-rate",
    "rate",
    type=click.FloatRange(min=0),
    default=0.0,
    metavar="NUMBER",
    help="Maximum calls per second to each node.  [default: no limit]",
)
@click.option(
    "--upstream-max-bytes",
    "max_bytes",
    type=click.IntRange(min=1 << 16),
    default=256 << 20,
    show_default=True,
    metavar="BYTES",
    help="Maximum bytes of a response.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=0, max=16),
    default=None,
    metavar="INTEGER",
    help="Processes that decode, hash and pack blocks, beside the one that stores them."
    f"  [default: one for each other core, at most {_USEFUL_JOBS}]",
)
@click.option(
    "--patience",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Seconds for which a node that can't be reached is retried.",
)
@click.option(
    "--unchecked",
    multiple=True,
    metavar="FIELD",
    help="Field that the chain computes in its own way, such as data_hash, and that is not"
    " verified; repeatable.",
)
def import_blocks(
    urls: tuple[str, ...],
    first: int,
    last: int | None,
    database: str | None,
    home: Path | None,
    **given: Any,
) -> None:
    """Copy a range of a chain from nodes into a store.

    URL is a node's RPC; with several URLs, the next node is read when one fails. Every block
    is proven by hashes up to a header that more than two thirds of the validators signed.
    Stored blocks stay unchanged: run the same command again to continue after an interruption,
    or to add newer blocks. A server may serve the store meanwhile.
    """
    from ...backends import open_store
    from ..decoding import spare_cores

    # Collect garbage less often: blocks have no reference cycles, and searching for cycles
    # would take a fifth of the time.
    gc.freeze()
    gc.set_threshold(100_000, 50, 50)
    jobs = min(spare_cores(), _USEFUL_JOBS) if given["jobs"] is None else given["jobs"]
    options = _options(given, given["concurrency"] * len(urls) + jobs)
    upstreams = _upstreams(urls, given, jobs)
    store = open_store(store_path(database, home))
    try:
        _import(store, upstreams, options, first, last)
    except KeyboardInterrupt:
        raise Interrupted("interrupted: run the same command again to continue") from None
    finally:
        upstreams.close()
        store.close()


def _options(given: Mapping[str, Any], chunks: int) -> FetchOptions:
    from ..beginning import FetchOptions
    from ..trust import TrustOptions

    period = given["period"]
    trust = TrustOptions(period=period)
    if given["trust"]:
        trust = TrustOptions.parse(given["trust"], period)
    unchecked = frozenset(given["unchecked"])
    return FetchOptions(trust, min(chunks, _MAX_CHUNKS), unchecked, given["chain_id"])


def _upstreams(urls: tuple[str, ...], given: Mapping[str, Any], jobs: int) -> Upstreams:
    from ..decoding import Decoders
    from ..http import UpstreamLimits
    from ..pool import Upstreams

    names = ("timeout", "concurrency", "rate", "max_bytes", "patience")
    limits = UpstreamLimits(**{name: given[name] for name in names})
    addresses = addresses_of(urls, given["header"])
    return Upstreams.from_urls(
        addresses, given["dialect"], limits, limits.patience, Decoders(jobs)
    )


def _import(
    store: ChainStore,
    upstreams: Upstreams,
    options: FetchOptions,
    first: int,
    last: int | None,
) -> None:
    from ..gaps import gaps_of
    from ..importer import Importer

    importer = Importer(store, upstreams, options)
    with Progress("importing", importer.plan(first, last)) as bar:
        low, high = importer.run(bar.add)
    shown = store.location.display_name
    click.echo(f"{shown} has blocks {low} to {high} of {store.reads.chain_id()}")
    if low > max(first, store.reads.initial_height()):
        click.echo(f"the nodes have pruned the blocks below {low}")
    for gap in gaps_of(store).values():
        click.echo(f"the {gap.part} of height {gap.height} could not be fetched: {gap.reason}")
    node = next(iter(upstreams.usable_readers())).node
    click.echo(
        f"to serve them, run noderpc start --produce=false --database {shown}"
        f" --dialect {node.dialect.name}"
    )
