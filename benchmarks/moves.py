"""How many of our files one call enters, and how often it calls from one into another.

``python -m benchmarks.moves`` profiles the first answer to a block, which no cache has, and a
transaction that is answered once it is in a block, through Flask in this process: in the thread
of the call, and in all, such as the one that produces the block. Functions that were generated
count as one file.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType
from typing import Any

import click
from flask import Flask
from flask.testing import FlaskClient

import flask_noderpc
from flask_noderpc import NodeRPC
from flask_noderpc.extension import mounts

_PACKAGE = str(Path(flask_noderpc.__file__).parent)
BLOCK, TRANSACTION = "/block?height=2", '/broadcast_tx_commit?tx="c=3"'


@dataclass
class Found:
    """The files that a call enters, and the number of calls between two files."""

    files: set[str] = field(default_factory=set)
    moves: int = 0

    def __str__(self) -> str:
        return f"{len(self.files)} files, {self.moves} moves"


class Moves:
    """Counts the files and moves of a call, in its own thread and in all threads."""

    def __init__(self) -> None:
        self._own, self._all = Found(), Found()
        self._thread: int | None = None

    def profile(self, frame: FrameType, event: str, _: Any) -> None:
        """Count an event of a thread, as :func:`sys.setprofile` reports it."""
        if event != "call" or self._thread is None or not (file := _file(frame.f_code)):
            return
        is_move = _caller(frame) not in ("", file)
        for each in (self._all, self._own)[: 1 + (threading.get_ident() == self._thread)]:
            each.files.add(file)
            each.moves += is_move

    def of(self, to: FlaskClient, path: str) -> tuple[Found, Found]:
        """Return the files and moves of a GET, in its own thread and in all threads."""
        self._own, self._all = Found(), Found()
        self._thread = threading.get_ident()
        sys.setprofile(self.profile)
        try:
            to.get(path)
        finally:
            sys.setprofile(None)
            self._thread = None
        return self._own, self._all


@contextmanager
def client(moves: Moves) -> Iterator[FlaskClient]:
    """Yield a client of an app whose chain has two blocks and makes the next one without a
    pause."""
    # This profiles the threads that start from now on.
    threading.setprofile(moves.profile)
    try:
        with TemporaryDirectory() as folder:
            app = Flask("moves")
            NodeRPC(app, database=str(Path(folder) / "chain.db"), block_interval=0.01)
            found = app.test_client()
            for tx in ("a=1", "b=2"):
                found.get(f'/broadcast_tx_commit?tx="{tx}"')
            # Imports and compiled functions are not part of a call.
            found.get("/block?height=1")
            yield found
            mounts(app)["noderpc"].backend.close()
    finally:
        threading.setprofile(None)


def _file(code: CodeType) -> str:
    """Return the file of a function of this package, or "" for another function."""
    if code.co_filename.startswith(_PACKAGE):
        return code.co_filename
    return "generated" if code.co_filename.startswith("<dump of ") else ""


def _caller(frame: FrameType) -> str:
    """Return the file of this package from which a call came, also through others; "" without
    one."""
    caller = frame.f_back
    while caller is not None and not _file(caller.f_code):
        caller = caller.f_back
    return _file(caller.f_code) if caller else ""


@click.command()
def main() -> None:
    """Print the files and moves of two calls."""
    moves = Moves()
    with client(moves) as to:
        for path in (BLOCK, TRANSACTION):
            own, of_all = moves.of(to, path)
            click.echo(f"{path}: {own}; in all threads {of_all}")


if __name__ == "__main__":
    main()
