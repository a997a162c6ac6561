"""Cost of a block in the store: ``python -m benchmarks.realistic.append``.

Prints how many blocks of 180 validators and 360 attributes a second are appended, with their
hashes verified, on one core and on two; the bytes that an idle block adds to the file; and the
bytes of an indexed attribute, which are the difference to the same chain without an index.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from flask_noderpc import CommittedBlock, SQLiteBackend
from flask_noderpc.backends.base.application import InitChain
from flask_noderpc.domain.abci import ExecTxResult

from .content import SHAPES, Shape
from .maker import blocks, genesis_of

_GROUP = 50


@click.command()
@click.option("--blocks", "count", default=600, show_default=True, help="Of each chain.")
def main(count: int) -> None:
    """Print blocks a second, bytes of an idle block, and bytes of an attribute."""
    cores = sorted(os.sched_getaffinity(0))
    with TemporaryDirectory() as scratch:
        path = Path(scratch) / "chain.db"
        busy = _made(SHAPES["busy"], path, count)
        # A node does not hold its chain in memory, where Python's garbage collector would visit
        # it.
        gc.freeze()
        for used in dict.fromkeys((1, min(2, len(cores)))):
            os.sched_setaffinity(0, cores[:used])
            began, worked = time.perf_counter(), time.process_time()
            whole = _bytes(SHAPES["busy"], path, busy)[-1]
            rate = count / (time.perf_counter() - began)
            of_cpu = count / (time.process_time() - worked)
            click.echo(
                f"append_block, {used} cores: {rate:.0f} blocks a second, {of_cpu:.0f} a second"
                " of CPU"
            )
        half, all_idle = _bytes(SHAPES["idle"], path, _made(SHAPES["idle"], path, count))
        click.echo(f"an idle block: {(all_idle - half) / (count - count // 2):.0f} bytes")
        plain = _bytes(SHAPES["busy"], path, [_unindexed(item) for item in busy])[-1]
        attributes = sum(map(_attributes, busy))
        click.echo(f"an indexed attribute: {(whole - plain) / attributes:.1f} bytes")


def _made(shape: Shape, path: Path, count: int) -> list[CommittedBlock]:
    with closing(_new(shape, path)) as store:
        return list(blocks(shape, store.head(), count, signed=False))


def _new(shape: Shape, path: Path) -> SQLiteBackend:
    path.unlink(missing_ok=True)
    store = SQLiteBackend(path)
    store.init_chain(genesis_of(shape), InitChain())
    return store


def _bytes(shape: Shape, path: Path, items: Sequence[CommittedBlock]) -> list[int]:
    """Append blocks; return the file's size with half of them, and with all."""
    sizes = []
    store = _new(shape, path)
    middle = len(items) // 2
    for part in (items[:middle], items[middle:]):
        for first in range(0, len(part), _GROUP):
            store.append_block(*part[first : first + _GROUP])
        # Closing writes the WAL into the file.
        store.close()
        sizes.append(path.stat().st_size)
    return sizes


def _attributes(item: CommittedBlock) -> int:
    results = item.results.tx_results
    return sum(len(event.attributes) for result in results for event in result.events)


def _unindexed(item: CommittedBlock) -> CommittedBlock:
    found = tuple(_without_index(result) for result in item.results.tx_results)
    return replace(item, results=replace(item.results, tx_results=found))


def _without_index(result: ExecTxResult) -> ExecTxResult:
    events = (
        replace(event, attributes=tuple(replace(a, index=False) for a in event.attributes))
        for event in result.events
    )
    return replace(result, events=tuple(events))


if __name__ == "__main__":
    main()
