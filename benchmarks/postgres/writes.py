"""Blocks a second: appended as by ``noderpc import``, and backfilled downwards."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TypeVar

import click

from flask_noderpc import SQLiteBackend
from flask_noderpc.backends import open_store
from flask_noderpc.backends.base.application import InitChain
from flask_noderpc.backends.base.new_blocks import CommittedBlock, OlderBlock
from flask_noderpc.backends.sql.store import ChainStore
from flask_noderpc.companion.chunks import CHUNK
from tests.helpers.postgres import Cluster

from ..realistic.content import SHAPES
from ..realistic.maker import blocks, genesis_of
from .cluster import cpu_s

T = TypeVar("T")

_SHAPE = SHAPES["busy"]


@dataclass(frozen=True, slots=True)
class Cost:
    """Milliseconds of a block: elapsed, of this process's processor time, and of the
    database's."""

    ms: float
    own_ms: float
    servers_ms: float


class Chain:
    """Blocks that are written repeatedly."""

    def __init__(self, folder: Path, count: int) -> None:
        with closing(SQLiteBackend(folder / "source.db")) as store:
            _begin(store)
            # The signatures of the trusted block are verified.
            self.blocks = list(blocks(_SHAPE, store.head(), count, signed=True))
            for chunk in _chunks(self.blocks):
                store.append_block(*chunk)
            top = count - 1
            self._trusted = (
                store.reads.chain_id(),
                1,
                store.reads.block_meta(top).header,
                store.reads.commit(top),
                (
                    store.reads.validators(top),
                    store.reads.validators(top + 1),
                    store.reads.validators(top + 2),
                ),
                store.reads.consensus_params(top + 1),
            )
            self.older = [
                self._older(store, item, above)
                for item, above in zip(self.blocks, self.blocks[1:], strict=False)
            ][::-1]

    @staticmethod
    def _older(store: ChainStore, item: CommittedBlock, above: CommittedBlock) -> OlderBlock:
        own, following = item.block.header, above.block.header
        # Like the companion, read validators where they change, and at the end.
        is_needed = own.validators_hash != following.validators_hash or own.height == 1
        members = store.reads.validators(own.height) if is_needed else None
        return OlderBlock(item.block, item.results, members)

    def append(self, store: ChainStore) -> None:
        """Append all blocks."""
        for chunk in _chunks(self.blocks):
            store.append_block(*chunk)

    def backfill(self, store: ChainStore) -> None:
        """Backfill a store that begins at the top."""
        for chunk in _chunks(self.older):
            store.backfill(*chunk)

    def begin_at_top(self, store: ChainStore) -> None:
        """Begin a store at the last block but one."""
        store.init_at(*self._trusted)


def _begin(store: ChainStore) -> None:
    store.init_chain(genesis_of(_SHAPE), InitChain())


def _chunks(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for first in range(0, len(items), CHUNK):
        yield items[first : first + CHUNK]


def compare(made: Cluster, folder: Path, count: int, rounds: int) -> None:
    """Print the cost of a block in both stores, measured alternately."""
    chain = Chain(folder, count)
    steps = {
        "append": (_begin, chain.append),
        "backfill": (chain.begin_at_top, chain.backfill),
    }
    for name, (begin, write) in steps.items():
        found = [_by_turns(made, folder, begin, write, count) for _ in range(rounds)]
        sqlite, postgres = (
            Cost(*(median(values) for values in zip(*map(_fields, costs), strict=True)))
            for costs in zip(*found, strict=True)
        )
        for store, cost in (("SQLite", sqlite), ("PostgreSQL", postgres)):
            click.echo(
                f"{name}, {store}: {1000 / cost.ms:.0f} blocks a second; {cost.own_ms:.1f} ms"
                f" of CPU a block, and {cost.servers_ms:.1f} of the database's processes"
            )
        of_cpu = sqlite.own_ms / (postgres.own_ms + postgres.servers_ms)
        click.echo(f"    {sqlite.ms / postgres.ms:.2f} of SQLite's, {of_cpu:.2f} by CPU time")


def _fields(cost: Cost) -> tuple[float, float, float]:
    return cost.ms, cost.own_ms, cost.servers_ms


_Do = Callable[[ChainStore], None]


def _by_turns(
    made: Cluster, folder: Path, begin: _Do, write: _Do, count: int
) -> tuple[Cost, Cost]:
    file = folder / "copy.db"
    file.unlink(missing_ok=True)
    sqlite = _cost(str(file), begin, write, count, lambda: 0.0)
    url = made.new_database()
    postgres = _cost(url, begin, write, count, lambda: cpu_s(made))
    made.drop(url)
    return sqlite, postgres


def _cost(
    location: str, begin: _Do, write: _Do, count: int, servers_s: Callable[[], float]
) -> Cost:
    with closing(open_store(location)) as store:
        begin(store)
        before = time.perf_counter(), time.process_time(), servers_s()
        write(store)
        after = time.perf_counter(), time.process_time(), servers_s()
    return Cost(*(1000 * (b - a) / count for a, b in zip(before, after, strict=True)))
