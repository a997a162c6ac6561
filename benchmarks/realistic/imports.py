"""``noderpc import`` on one core and on two, from a node that takes no time to respond.

``python -m benchmarks.realistic.imports chain.db`` makes a chain with real signatures. The node
responds from memory, as a first import, which is not measured, has filled its cache. The costs
of a block are the difference between an import of the whole chain and one of its upper half.
With ``--postgres``, the store is a database of a private cluster, which needs PostgreSQL.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import nullcontext
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

import click
from gevent.pywsgi import WSGIServer

from flask_noderpc import SQLiteBackend
from flask_noderpc.testing.node import app_for
from tests.helpers.postgres import Cluster

from ..postgres.cluster import cluster, cpu_s
from ..process import free_port
from .__main__ import extend
from .content import SHAPES

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

_ROUNDS = 3
_JSON = "application/json"
_ONE, _TWO = "0", "0,1"


def _serve(path: Path, port: int) -> None:
    """Serve a chain on the second core, and cache each response."""
    os.sched_setaffinity(0, {1})
    app = app_for(SQLiteBackend(path), dialect="comet-0.38")
    client, known = app.test_client(), dict[bytes, bytes]()

    def replay(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        if body not in known:
            known[body] = client.post("/", data=body, content_type=_JSON).data
        start_response("200 OK", [("Content-Type", _JSON)])
        return [known[body]]

    WSGIServer(("127.0.0.1", port), replay, log=None).serve_forever()


# Prints the CPU seconds of the process that stores, and of those that decode.
_MEASURED = """
import atexit, resource, sys
from flask_noderpc.cli import main

@atexit.register
def said():
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        used = resource.getrusage(who)
        print("CPU", used.ru_utime + used.ru_stime, file=sys.stderr)

main()
"""


class _Costs(NamedTuple):
    """Seconds of an import: all, and the CPU time of each kind of process."""

    seconds: float
    storing: float
    decoding: float
    database: float

    def per_block(self, half: _Costs, blocks: int) -> _Costs:
        """Return the milliseconds of each block that only this import has."""
        pairs = zip(self, half, strict=True)
        return _Costs(*(1000 * (whole - part) / blocks for whole, part in pairs))


def _costs(url: str, cores: str, made: Cluster | None, first: int) -> _Costs:
    """Import a chain from a height on into a new store."""
    with TemporaryDirectory() as folder:
        store = str(Path(folder) / "copy.db") if made is None else made.new_database()
        words = ["taskset", "-c", cores, sys.executable, "-c", _MEASURED, "import", url]
        words += ["--trust-period", "99999d", "--database", store, "--from", str(first)]
        before = 0.0 if made is None else cpu_s(made)
        began = time.perf_counter()
        ended = subprocess.run(words, check=True, capture_output=True, text=True)
        seconds = time.perf_counter() - began
        database = 0.0 if made is None else cpu_s(made) - before
        if made is not None:
            made.drop(store)
    lines = [line for line in ended.stderr.splitlines() if line.startswith("CPU ")]
    storing, decoding = (float(line.split()[1]) for line in lines)
    return _Costs(seconds, storing, decoding, database)


@click.command()
@click.option("--blocks", type=int, default=2_000, show_default=True)
@click.option("--shape", type=click.Choice(list(SHAPES)), default="usual", show_default=True)
@click.option("--postgres", is_flag=True, help="Import into PostgreSQL.")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def main(blocks: int, shape: str, postgres: bool, file: Path) -> None:
    """Make a chain in FILE, and import it alternately on one core and on two."""
    store = SQLiteBackend(file)
    extend(store, SHAPES[shape], blocks, processes=2)
    store.close()
    port = free_port()
    node = get_context("spawn").Process(target=_serve, args=(file, port), daemon=True)
    node.start()
    with cluster() if postgres else nullcontext() as made:
        _compare(f"http://127.0.0.1:{port}", made, blocks)
    node.terminate()


def _compare(url: str, made: Cluster | None, blocks: int) -> None:
    middle = blocks // 2
    _costs(url, _TWO, made, 1)
    rounds: dict[str, list[_Costs]] = {_ONE: [], _TWO: []}
    for _ in range(_ROUNDS):
        for cores, found in rounds.items():
            whole = _costs(url, cores, made, 1)
            found.append(whole.per_block(_costs(url, cores, made, middle + 1), middle))
    for cores, found in rounds.items():
        each = _Costs(*(median(values) for values in zip(*found, strict=True)))
        click.echo(
            f"on {len(cores.split(','))} cores: {each.seconds:.1f} ms a block,"
            f" {each.storing + each.decoding + each.database:.1f} ms of CPU: storing"
            f" {each.storing:.1f}, decoding {each.decoding:.1f}, database {each.database:.1f}"
        )


if __name__ == "__main__":
    main()
