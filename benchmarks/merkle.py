"""Cost of proofs: ``python -m benchmarks.merkle``.

Fills each application with keys, then makes blocks that set ten of them, and asks for
values without and with a proof. Prints medians, and the size of the store.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import click

from flask_noderpc import EmbeddedChain
from flask_noderpc.chain.applications.kvstore import KVStore
from flask_noderpc.chain.applications.merkle_kvstore import MerkleKVStore

AT_ONCE = 4000
ROUNDS = 200
# A step that visits the keys in no order.
STRIDE = 7919

APPLICATIONS = {"kvstore": KVStore, "merkle": MerkleKVStore}


def fill(chain: EmbeddedChain, keys: int) -> None:
    """Commit this many keys."""
    for first in range(0, keys, AT_ONCE):
        for number in range(first, min(first + AT_ONCE, keys)):
            chain.mempool.submit(b"key%d=value" % number)
        chain.produce()


def change(chain: EmbeddedChain, keys: Iterable[int], turn: int) -> None:
    """Submit new values of some keys."""
    for number in keys:
        chain.mempool.submit(b"key%d=new%d" % (number, turn))


def median_ms(work: Callable[[int], object], prepare: Callable[[int], None]) -> float:
    """Return the median milliseconds of a round."""
    found = []
    for turn in range(ROUNDS):
        prepare(turn)
        started = time.perf_counter()
        work(turn)
        found.append((time.perf_counter() - started) * 1000)
    return statistics.median(found)


def report(name: str, folder: Path, keys: int) -> None:
    """Print one line for an application."""
    chain = EmbeddedChain(folder / "chain.db", application=APPLICATIONS[name], produce=False)
    chain.start()
    fill(chain, keys)
    size = (folder / "chain.db").stat().st_size / 1_000_000

    def some(turn: int) -> list[int]:
        return [(turn * 10 + number) * STRIDE % keys for number in range(10)]

    def ask(turn: int, prove: bool) -> None:
        assert chain.application.query("/key", b"key%d" % some(turn)[0], 0, prove).value

    block = median_ms(
        lambda turn: chain.produce(), lambda turn: change(chain, some(turn), turn)
    )
    value = median_ms(lambda turn: ask(turn, False), lambda turn: None)
    proof = median_ms(lambda turn: ask(turn, True), lambda turn: None)
    chain.close()
    print(f"{name:8} block of ten {block:6.2f} ms, value {value:5.3f} ms", end="")
    print(f", with prove {proof:5.3f} ms, store {size:.0f} MB")


@click.command()
@click.option("--keys", default=100_000, show_default=True)
def main(keys: int) -> None:
    """Measure each application in turn."""
    for name in APPLICATIONS:
        with tempfile.TemporaryDirectory() as folder:
            report(name, Path(folder), keys)


if __name__ == "__main__":
    main()
