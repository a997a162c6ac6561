"""Anvil with a block each second, or one for each transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.clients import ANVIL

from ..process import Server, free_port, served
from . import MissingError

NAME = "anvil"


@contextmanager
def anvil(chain_id: int, *, block_time: bool = True, cores: str = "0") -> Iterator[Server]:
    """Run anvil with a new chain; raise :exc:`MissingError`. Without ``block_time``, each
    transaction is mined at once."""
    if not ANVIL.exists():
        raise MissingError("run `npm ci` in tests/clients/ethereum, on Linux")
    port = free_port()
    flags = ["--port", str(port), "--chain-id", str(chain_id), "--silent"]
    flags += ["--block-time", "1"] if block_time else []
    with served([ANVIL, *flags], port, cores=cores) as server:
        yield server
