"""Times of first pages of searches in a long chain, over each store."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from itertools import islice
from pathlib import Path

import click

from flask_noderpc.backends import open_store
from flask_noderpc.backends.base.application import InitChain
from tests.helpers.postgres import Cluster

from ..peers.ours import START_COMMAND, ours, reading
from ..realistic.content import SHAPES
from ..realistic.maker import blocks, genesis_of
from ..realistic.scale import PAGES, first_pages

_SHAPE = SHAPES["small"]
_GROUP = 200


def compare(made: Cluster, folder: Path, count: int) -> None:
    """Print the median and the 99th percentile of the times of each kind of search."""
    locations = {"SQLite": str(folder / "searches.db"), "PostgreSQL": made.new_database()}
    _make(tuple(locations.values()), count)
    txs = count * _SHAPE.txs
    click.echo(f"{txs:,} transactions, {txs * _SHAPE.attributes:,} attributes")
    with ExitStack() as stack:
        servers = {
            name: stack.enter_context(
                ours(
                    START_COMMAND,
                    folder / f"{name} of searches",
                    reading(location, cache_bytes=0),
                )
            )
            for name, location in locations.items()
        }
        for kind, page in PAGES.items():
            for name, server in servers.items():
                with server.awake():
                    # The first requests read from the disk, and are not measured.
                    first_pages(server, page, count)
                    click.echo(f"{kind}, {name}: {first_pages(server, page, count)}")


def _make(locations: Sequence[str], count: int) -> None:
    """Make the same chain in each store."""
    with ExitStack() as stack:
        stores = [stack.enter_context(closing(open_store(each))) for each in locations]
        for store in stores:
            store.init_chain(genesis_of(_SHAPE), InitChain())
        made = blocks(_SHAPE, stores[0].head(), count, signed=False)
        with click.progressbar(length=count, label=f"{count} blocks") as bar:
            while group := tuple(islice(made, _GROUP)):
                for store in stores:
                    store.append_block(*group)
                bar.update(len(group))
