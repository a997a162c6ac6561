"""A development chain with an EVM for the clients of a module, on a real socket."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from flask_noderpc.ethereum.protocol.crypto import DEV_KEYS
from flask_noderpc.protocol.secp256k1eth import to_checksum
from flask_noderpc.testing.node import serve
from tests.ethereum.rpc.dev.fixtures import chain_of, dev_app


@dataclass(frozen=True, slots=True)
class DevAccount:
    """One of the accounts that the node signs for."""

    address: str
    key: str


ACCOUNTS = tuple(
    DevAccount(to_checksum(key.address), f"0x{key.secret.hex()}") for key in DEV_KEYS
)


@contextmanager
def development_node(folder: Path) -> Iterator[str]:
    """Yield the URL of a development node that makes a block as soon as a transaction waits."""
    app = dev_app(
        folder,
        produce=True,
        block_interval=0.05,
        evm_api=("eth", "net", "web3", "txpool", "debug", "trace"),
    )
    with closing(chain_of(app)), serve(app) as base:
        yield base


def in_turn() -> Iterator[DevAccount]:
    """Yield the accounts repeatedly."""
    return itertools.cycle(ACCOUNTS)
