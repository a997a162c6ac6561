"""``python -m benchmarks.realistic busy chain.db`` makes a chain, or continues it."""

from __future__ import annotations

from itertools import islice

import click

from flask_noderpc.backends import open_store
from flask_noderpc.backends.base.application import InitChain
from flask_noderpc.backends.sql.store import ChainStore

from .content import SHAPES, Shape
from .maker import blocks, genesis_of

# Maximum number of the chain's transactions, and of its blocks, in one transaction of the
# store.
_GROUP_TXS, _GROUP = 2_000, 200


def extend(
    store: ChainStore, shape: Shape, count: int, *, signed: bool = True, processes: int = 0
) -> int:
    """Add blocks until there are ``count``; return how many were added."""
    store.init_chain(genesis_of(shape), InitChain())
    head = store.head()
    missing = max(0, count - head.height)
    size = min(_GROUP, max(1, _GROUP_TXS // max(1, shape.txs)))
    made = blocks(shape, head, missing, signed=signed, processes=processes)
    with click.progressbar(length=missing, label=f"{missing} blocks") as bar:
        while group := tuple(islice(made, size)):
            store.append_block(*group)
            bar.update(len(group))
    return missing


@click.command()
@click.argument("shape", type=click.Choice(list(SHAPES)))
@click.argument("store")
@click.option(
    "--blocks", "count", default=20_000, show_default=True, help="Until there are so many."
)
@click.option("--processes", default=1, show_default=True, help="That sign beside this one.")
@click.option(
    "--unsigned", is_flag=True, help="Random bytes for signatures, which takes less long."
)
def main(shape: str, store: str, count: int, processes: int, unsigned: bool) -> None:
    """Make a chain of the size of a main network's, or continue it.

    STORE is a SQLite file or a postgresql:// URL.
    """
    opened = open_store(store)
    try:
        extend(opened, SHAPES[shape], count, signed=not unsigned, processes=processes)
    finally:
        opened.close()


if __name__ == "__main__":
    main()
