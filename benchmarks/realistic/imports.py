"""``noderpc import`` on one core and on two, from a node that takes no time to respond.

``python -m benchmarks.realistic.imports`` makes a chain with real signatures. The node responds
from memory, as a first import, which is not measured, has filled its cache.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click
from gevent.pywsgi import WSGIServer

from flask_noderpc import SQLiteBackend
from flask_noderpc.testing.node import app_for

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


def _seconds(url: str, cores: str) -> float:
    """Import the chain into a new store, and return how long that takes."""
    with TemporaryDirectory() as folder:
        words = ["taskset", "-c", cores, str(Path(sys.executable).with_name("noderpc"))]
        words += ["import", url, "--trust-period", "99999d"]
        words += ["--database", str(Path(folder) / "copy.db")]
        began = time.perf_counter()
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - began


@click.command()
@click.option("--blocks", type=int, default=2_000, show_default=True)
@click.option("--shape", type=click.Choice(list(SHAPES)), default="busy", show_default=True)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def main(blocks: int, shape: str, file: Path) -> None:
    """Make a chain in FILE, and import it alternately on one core and on two."""
    store = SQLiteBackend(file)
    extend(store, SHAPES[shape], blocks, processes=2)
    store.close()
    port = free_port()
    node = get_context("spawn").Process(target=_serve, args=(file, port), daemon=True)
    node.start()
    url = f"http://127.0.0.1:{port}"
    _seconds(url, _TWO)
    rounds = [(_seconds(url, _ONE), _seconds(url, _TWO)) for _ in range(_ROUNDS)]
    one, two = (median(each) for each in zip(*rounds, strict=True))
    click.echo(
        f"{blocks / one:.0f} blocks a second on one core, {blocks / two:.0f} on two:"
        f" {one / two:.2f} of one"
    )
    node.terminate()


if __name__ == "__main__":
    main()
