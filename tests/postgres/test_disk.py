"""Test of the disk space of a block."""

from __future__ import annotations

from contextlib import closing

import psycopg

from benchmarks.realistic.__main__ import extend
from benchmarks.realistic.content import SHAPES
from flask_noderpc.backends import open_store

# The cache of transactions has a maximum size, and the statistics don't belong to a block.
_SIZE = (
    "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r'"
    " AND relnamespace = 'public'::regnamespace AND relname <> 'tx_cache'"
)


def test_a_block_takes_less_than_75_kilobytes(url: str) -> None:
    """A block of 100 validators, 20 transactions and 240 attributes, most of whose values are
    new."""
    sizes = []
    with closing(open_store(url)) as store, psycopg.connect(url, autocommit=True) as at:
        for count in (300, 600):
            extend(store, SHAPES["usual"], count, signed=False)
            sizes += [int(size) for (size,) in at.execute(_SIZE)]

    assert (sizes[1] - sizes[0]) / 300 < 75_000
