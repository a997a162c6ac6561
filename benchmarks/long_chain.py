"""Do reads cost the same on a long chain? ``python -m benchmarks.long_chain``.

Builds chains of 1,000 and of 100,000 blocks with ten transactions each, and compares what
a call costs at random heights, through Flask. The long chain is built once and kept.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import click
from flask.testing import FlaskClient

from flask_noderpc import SQLiteBackend
from flask_noderpc.canonical.hashes import tx_hash
from flask_noderpc.testing.chains import ChainMaker, make_blocks
from flask_noderpc.testing.node import app_for

FOLDER = Path(tempfile.gettempdir()) / "noderpc-long-chain"
TXS_PER_BLOCK = 10
_GROUP = 250
_CALLS = 300
_ROUNDS = 9


def build(path: Path, blocks: int) -> SQLiteBackend:
    """The chain, made when it is not there yet."""
    backend = SQLiteBackend(path)
    if backend.latest_height() == blocks:
        return backend
    maker = ChainMaker(chain_id=f"long-{blocks}")
    backend.init_chain(maker.genesis, maker.state)
    started = time.monotonic()
    made = make_blocks(maker, blocks, TXS_PER_BLOCK)
    with click.progressbar(length=blocks, label=f"{blocks} blocks") as bar:
        while group := tuple(islice(made, _GROUP)):
            backend.append_block(*group)
            bar.update(len(group))
    size = sum(file.stat().st_size for file in path.parent.glob(path.name + "*"))
    click.echo(
        f"{blocks} blocks, {blocks * TXS_PER_BLOCK} transactions:"
        f" {time.monotonic() - started:.0f} s, {size / 1e6:.0f} MB"
    )
    return backend


def requests(latest: int, dice: random.Random) -> dict[str, Callable[[], str]]:
    """A URL of each kind, at a random height."""

    def at() -> int:
        return dice.randint(1, latest)

    def some_tx() -> str:
        index = dice.randrange(TXS_PER_BLOCK)
        return tx_hash(b"k%d.%d=v%d" % (at(), index, index)).hex()

    return {
        "block": lambda: f"/block?height={at()}",
        "tx": lambda: f"/tx?hash=0x{some_tx()}",
        "block_results": lambda: f"/block_results?height={at()}",
        "validators": lambda: f"/validators?height={at()}",
        "status": lambda: "/status",
    }


def cost(client: FlaskClient, url: Callable[[], str]) -> float:
    """Seconds a call."""
    urls = [url() for _ in range(_CALLS)]
    started = time.perf_counter()
    for one in urls:
        assert client.get(one).status_code == 200
    return (time.perf_counter() - started) / _CALLS


def compare(short: SQLiteBackend, long: SQLiteBackend) -> None:
    """Print what each call costs on both, and the ratio."""
    pairs = [(app_for(chain).test_client(), chain.latest_height()) for chain in (short, long)]
    click.echo(f"{'call':15} {'short':>9} {'long':>9} {'ratio':>6}")
    for name in requests(1, random.Random()):
        figures: list[list[float]] = [[], []]
        for number in range(_ROUNDS):
            for column, (client, latest) in enumerate(pairs):
                url = requests(latest, random.Random(number))[name]
                figures[column].append(cost(client, url))
        one, other = (statistics.median(column) for column in figures)
        click.echo(f"{name:15} {one * 1e6:7.0f} us {other * 1e6:6.0f} us {other / one:6.2f}")


@click.command()
@click.option("--blocks", default=100_000, show_default=True)
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default=FOLDER,
    show_default=True,
)
def main(blocks: int, folder: Path) -> None:
    """Build both chains and compare them."""
    folder.mkdir(parents=True, exist_ok=True)
    short = build(folder / "1000.db", 1_000)
    long = build(folder / f"{blocks}.db", blocks)
    compare(short, long)
    short.close()
    long.close()


if __name__ == "__main__":
    main()
