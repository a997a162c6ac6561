"""``noderpc start --upstream`` beside its node: ``python -m benchmarks.realistic.follow FILE``.

FILE has a chain with real signatures, as ``python -m benchmarks.realistic.imports FILE`` leaves
it. A node has all but the last blocks, and gets one of those twice a second. Prints after how
long a companion answers with a block and with the node's latest, and how much later than the
node it has each new block, while it fills its store downwards.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from flask_noderpc import CommittedBlock, SQLiteBackend
from flask_noderpc.backends.base.application import InitChain
from flask_noderpc.testing.node import app_for, serve

from ..process import free_port, until
from .content import SHAPES
from .maker import genesis_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from multiprocessing.connection import Connection

_PAUSE_S, _POLL_S = 0.5, 0.01


def _run_node(file: Path, shape: str, new: int, pipe: Connection) -> None:
    """Serve the chain on the second core; append its last blocks when told to."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    whole = SQLiteBackend(file)
    latest = whole.reads.latest_height()
    with TemporaryDirectory() as folder:
        node = SQLiteBackend(Path(folder) / "node.db")
        node.init_chain(genesis_of(SHAPES[shape]), InitChain())
        for height in range(1, latest - new + 1):
            node.append_block(_block(whole, height))
        with serve(app_for(node, dialect="comet-0.38")) as url:
            pipe.send((url, latest - new))
            pipe.recv()
            for height in range(latest - new + 1, latest + 1):
                node.append_block(_block(whole, height))
                time.sleep(_PAUSE_S)
            pipe.recv()


def _block(whole: SQLiteBackend, height: int) -> CommittedBlock:
    return CommittedBlock(
        whole.reads.block(height)[1], whole.reads.commit(height), whole.reads.results(height)
    )


class Poller:
    """Polls the status of a server, and records when each height appeared."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.seen: dict[int, float] = {}
        self.base = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._poll)
        self._thread.start()

    def _poll(self) -> None:
        while not self._ended.wait(_POLL_S):
            try:
                self._poll_one_connection()
            except (OSError, http.client.HTTPException):
                # The server does not listen yet.
                continue

    def _poll_one_connection(self) -> None:
        with closing(http.client.HTTPConnection("127.0.0.1", self._port)) as connection:
            while not self._ended.wait(_POLL_S):
                connection.request("GET", "/status")
                answer = json.loads(connection.getresponse().read())
                info = answer.get("result", {}).get("sync_info")
                if info is not None:
                    self.seen.setdefault(int(info["latest_block_height"]), time.monotonic())
                    self.base = int(info["earliest_block_height"])

    def end(self) -> None:
        """End the thread."""
        self._ended.set()
        self._thread.join()


@contextmanager
def _companion(url: str) -> Iterator[int]:
    """Run a companion with a new store; yield its port."""
    port = free_port()
    with TemporaryDirectory() as folder:
        words = [str(Path(sys.executable).with_name("noderpc")), "start", "--upstream", url]
        words += ["--home", folder, "--trust-period", "99999d", "--workers", "1"]
        words += ["--rpc.laddr", f"tcp://127.0.0.1:{port}"]
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield port
        finally:
            process.terminate()
            process.wait()


def _show(what: str, seconds: Sequence[float]) -> None:
    found = sorted(seconds)
    p99 = found[min(len(found) - 1, int(len(found) * 0.99))]
    median = found[len(found) // 2]
    click.echo(
        f"{what}: median {1000 * median:.0f} ms, p99 {1000 * p99:.0f} ms of {len(found)}"
    )


@click.command()
@click.option("--shape", type=click.Choice(list(SHAPES)), default="busy", show_default=True)
@click.option("--new", type=int, default=60, show_default=True, help="Blocks that are added.")
@click.option("--starts", type=int, default=5, show_default=True)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
def main(shape: str, new: int, starts: int, file: Path) -> None:
    """Start companions of a node that has the chain in FILE."""
    context = get_context("spawn")
    own, theirs = context.Pipe()
    node = context.Process(target=_run_node, args=(file, shape, new, theirs), daemon=True)
    node.start()
    url, latest = own.recv()
    of_node = Poller(int(url.rsplit(":", 1)[1]))
    waits = []
    for left in reversed(range(starts)):
        began = time.monotonic()
        with _companion(url) as port:
            companion = Poller(port)
            until(lambda: latest in companion.seen, "the head")  # noqa: B023
            waits.append(companion.seen[latest] - began)
            if not left:
                own.send(None)
                until(lambda: latest + new in companion.seen, "the last block")  # noqa: B023
            companion.end()
    of_node.end()
    node.terminate()
    _show("the first answer, with the latest block", waits)
    added = range(latest + 1, latest + new + 1)
    lags = [
        companion.seen[each] - of_node.seen[each] for each in added if each in companion.seen
    ]
    _show(f"a new block, beside a backfill down to {companion.base}", lags)


if __name__ == "__main__":
    main()
