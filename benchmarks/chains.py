"""Chains that are read: as many transactions on ours as on a peer's."""

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
"""For what takes long to build, unless something else is said."""
_GROUP = 250


@dataclass(frozen=True, slots=True)
class Chain:
    """So many blocks of so many transactions."""

    name: str
    blocks: int
    txs: int = 10
    validators: int = 1
    padding: int = 0
    """Bytes that each transaction has more than it needs."""

    def block(self, height: int) -> list[bytes]:
        """The transactions of a block, as it was asked for."""
        more = b"x" * self.padding
        return [b"k%d.%d=v%d%b" % (height, index, index, more) for index in range(self.txs)]

    def heights(self) -> range:
        """Of its blocks."""
        return range(1, self.blocks + 1)


THOUSAND = Chain("thousand", 1_000)
# A block of 570 kB.
LARGE = Chain("large", 4, txs=2_000, padding=190)
HUNDRED = Chain("hundred", 20, validators=100)
TEN_THOUSAND = Chain("ten-thousand", 10_000)
LONG = Chain("long", 100_000)


def build(chain: Chain, folder: Path) -> Path:
    """The file of our chain, made when it is not there yet."""
    path = folder / f"{chain.name}.db"
    folder.mkdir(parents=True, exist_ok=True)
    backend = SQLiteBackend(path)
    if backend.reads.latest_height() != chain.blocks:
        _fill(backend, chain)
    backend.close()
    return path


def maker_of(chain: Chain) -> ChainMaker:
    """What makes the blocks of our chain, before the first."""
    return ChainMaker([10] * chain.validators, chain_id=f"{chain.name}-{chain.blocks}")


def _fill(backend: SQLiteBackend, chain: Chain) -> None:
    maker = maker_of(chain)
    if not backend.reads.latest_height():
        backend.init_chain(maker.genesis, maker.state)
    made = (maker.block(*chain.block(height)) for height in chain.heights())
    # Of a file whose making was interrupted: it has the same blocks.
    missing = islice(made, backend.reads.latest_height(), None)
    with click.progressbar(length=chain.blocks, label=f"{chain.blocks} blocks") as bar:
        while group := tuple(islice(missing, _GROUP)):
            backend.append_block(*group)
            bar.update(len(group))
