"""Cold reads at random heights, compared with ``cometbft inspect`` over the same chain.

``python -m benchmarks.realistic.reads`` makes a chain, uses savechain to copy it into the
stores of CometBFT's own packages, and serves both on the first core, ours with nothing cached.
It needs wrk and Go.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import click

from flask_noderpc import SQLiteBackend

from ..chains import CACHE
from ..compare import Bench, by_turns
from ..peers.cometbft import binary
from ..peers.ours import START_COMMAND, WAYS, ours, reading
from ..process import Server, free_port, served
from ..wrk import Ask
from .__main__ import extend
from .content import SHAPES, Shape

_GO = Path(__file__).parents[2] / "tests" / "clients" / "go"
_INSPECT = "cometbft inspect"
_PATHS = {
    "block": "/block?height={}",
    "block_results": "/block_results?height={}",
    "commit": "/commit?height={}",
    "validators": "/validators?height={}&per_page=100",
    "header": "/header?height={}",
}
_REQUESTS = 20_000


def _chain(shape: Shape, count: int, folder: Path) -> Path:
    """Return the file of a chain, which is made if it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{shape.name}-{count}.db"
    store = SQLiteBackend(path)
    extend(store, shape, count, signed=False)
    store.close()
    return path


@contextmanager
def _inspected(bench: Bench, chain: Path) -> Iterator[Server]:
    """Run CometBFT over a copy of the chain, which is made if it is missing."""
    program, home = binary(bench.cache), chain.with_suffix(".home")
    if not home.exists():
        subprocess.run([program, "init", "--home", home], check=True, capture_output=True)
    with ours(START_COMMAND, bench.scratch / "copied", reading(chain)) as node, node.awake():
        words = ["go", "run", "-buildvcs=false", "./savechain", node.url, str(home)]
        subprocess.run(words, cwd=_GO, check=True)
    port = free_port()
    flags = ["--home", str(home), "--rpc.laddr", f"tcp://127.0.0.1:{port}"]
    flags += ["--log_level", "none"]
    command: list[str | Path] = [program, "inspect", *flags]
    with served(command, port, environment={"GOMAXPROCS": "1"}) as server:
        yield server


@click.command()
@click.option("--shape", type=click.Choice(list(SHAPES)), default="busy", show_default=True)
@click.option("--blocks", "count", default=1_000, show_default=True)
@click.option("--rounds", default=5, show_default=True, help="Of which the median is shown.")
@click.option("--seconds", default=1, show_default=True, help="Length of one run.")
def main(shape: str, count: int, rounds: int, seconds: int) -> None:
    """Print requests a second, and the ratio of ours to CometBFT's."""
    os.sched_setaffinity(0, {1})
    with TemporaryDirectory() as scratch:
        bench = Bench(rounds, seconds, CACHE, Path(scratch))
        chain = _chain(SHAPES[shape], count, bench.cache / "realistic")
        with _inspected(bench, chain) as theirs:
            for way in WAYS:
                with ours(way, bench.scratch / way, reading(chain, cache_bytes=0)) as server:
                    _compare(bench, count, {way: server, _INSPECT: theirs})


def _compare(bench: Bench, count: int, servers: dict[str, Server]) -> None:
    way = next(iter(servers))
    for name, path in _PATHS.items():
        random = Random(name)
        asked = Ask(tuple(path.format(random.randint(2, count)) for _ in range(_REQUESTS)))
        runs = by_turns(bench, f"{name}, {way}", servers, partial(_same, asked))
        click.echo(f"    {runs[way].per_second / runs[_INSPECT].per_second:.2f}")


def _same(asked: Ask, _: str) -> Ask:
    return asked


if __name__ == "__main__":
    main()
