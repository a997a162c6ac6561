"""How many of our files one call enters, and how often it calls from one into another.

``python -m benchmarks.moves`` profiles the first answer to a block, which no cache has, and a
transaction that is answered once it is in a block, through Flask in this process.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import click
from flask import Flask
from flask.testing import FlaskClient

import flask_noderpc
from flask_noderpc import NodeRPC
from flask_noderpc.extension import mounts

_PACKAGE = str(Path(flask_noderpc.__file__).parent)
BLOCK, TRANSACTION = "/block?height=2", '/broadcast_tx_commit?tx="c=3"'


@contextmanager
def client() -> Iterator[FlaskClient]:
    """A client of an app whose chain has two blocks and makes the next without a wait."""
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


def moves(to: FlaskClient, path: str) -> tuple[set[str], int]:
    """Return the files that a GET enters in its thread, and the calls between two of them."""
    entered, count = set[str](), 0

    def profile(frame: FrameType, event: str, _: Any) -> None:
        nonlocal count
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(_PACKAGE):
            entered.add(file)
            count += _caller(frame) not in ("", file)

    sys.setprofile(profile)
    try:
        to.get(path)
    finally:
        sys.setprofile(None)
    return entered, count


def _caller(frame: FrameType) -> str:
    """Return the file of ours that a call came from, also through others; "" of none."""
    caller = frame.f_back
    while caller is not None and not caller.f_code.co_filename.startswith(_PACKAGE):
        caller = caller.f_back
    return caller.f_code.co_filename if caller else ""


@click.command()
def main() -> None:
    """Count the files and moves of two calls."""
    with client() as to:
        for path in (BLOCK, TRANSACTION):
            files, count = moves(to, path)
            click.echo(f"{path}: {len(files)} files, {count} moves")


if __name__ == "__main__":
    main()
