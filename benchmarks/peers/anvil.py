"""Anvil with a block each second."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.clients import ANVIL

from ..process import Server, free_port, served
from . import MissingError

NAME = "anvil"


@contextmanager
def anvil(chain_id: int) -> Iterator[Server]:
    """Run anvil with a new chain; raise :exc:`MissingError`."""
    if not ANVIL.exists():
        raise MissingError("run `npm ci` in tests/clients/ethereum, on Linux")
    port = free_port()
    flags = ["--port", str(port), "--chain-id", str(chain_id), "--block-time", "1", "--silent"]
    with served([ANVIL, *flags], port) as server:
        yield server
