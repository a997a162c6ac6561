"""Chains for reads, with as many transactions on our chain as on a peer's."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import click

from flask_noderpc import SQLiteBackend
from flask_noderpc.testing.chains import ChainMaker

_CACHES = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
CACHE = Path(_CACHES) / "noderpc-benchmarks"
"""Default folder of files that take long to build."""
_GROUP = 250


@dataclass(frozen=True, slots=True)
class Chain:
    """Number of blocks of a chain, and of transactions in each block."""

    name: str
    blocks: int
    txs: int = 10
    validators: int = 1
    padding: int = 0
    """Additional bytes of each transaction."""

    def block(self, height: int) -> list[bytes]:
        """Return the transactions of a block, in their order."""
        more = b"x" * self.padding
        return [b"k%d.%d=v%d%b" % (height, index, index, more) for index in range(self.txs)]

    def heights(self) -> range:
        """Return the heights of all blocks."""
        return range(1, self.blocks + 1)


THOUSAND = Chain("thousand", 1_000)
# A block of 570 kB.
LARGE = Chain("large", 4, txs=2_000, padding=190)
HUNDRED = Chain("hundred", 20, validators=100)
TEN_THOUSAND = Chain("ten-thousand", 10_000)
LONG = Chain("long", 100_000)


def build(chain: Chain, folder: Path) -> Path:
    """Return the file of our chain, and build it if it is missing."""
    path = folder / f"{chain.name}.db"
    folder.mkdir(parents=True, exist_ok=True)
    backend = SQLiteBackend(path)
    if backend.reads.latest_height() != chain.blocks:
        _fill(backend, chain)
    backend.close()
    return path


def maker_of(chain: Chain) -> ChainMaker:
    """Return a maker of our chain's blocks, before the first block."""
    return ChainMaker([10] * chain.validators, chain_id=f"{chain.name}-{chain.blocks}")


def _fill(backend: SQLiteBackend, chain: Chain) -> None:
    maker = maker_of(chain)
    if not backend.reads.latest_height():
        backend.init_chain(maker.genesis, maker.state)
    made = (maker.block(*chain.block(height)) for height in chain.heights())
    # Continue a file whose building was interrupted; its blocks are the same.
    missing = islice(made, backend.reads.latest_height(), None)
    with click.progressbar(length=chain.blocks, label=f"{chain.blocks} blocks") as bar:
        while group := tuple(islice(missing, _GROUP)):
            backend.append_block(*group)
            bar.update(len(group))
