"""Development node with an EVM chain, on a free port of the loopback interface."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..chain.embedded import EmbeddedChain
from ..chain.from_settings import chain_from_settings
from ..protocol.secp256k1eth import to_checksum
from ..settings import read_settings
from ..testing.node import app_for, serve
from .protocol.crypto import DEV_KEYS

_SETTINGS = {
    "application": "evm",
    "dev": True,
    "json_rpc_enable": True,
    "evm_api": ("eth", "net", "web3", "txpool", "debug", "trace", "erigon"),
    # Seconds: make a block as soon as a transaction is pending.
    "block_interval": 0.001,
}


@dataclass(frozen=True, slots=True)
class DevAccount:
    """An account for which the node signs; its private key is publicly known."""

    address: str
    key: str


ACCOUNTS = tuple(
    DevAccount(to_checksum(key.address), f"0x{key.secret.hex()}") for key in DEV_KEYS
)


@dataclass(frozen=True, slots=True)
class EvmNode:
    """A running node: its URLs for Ethereum clients, and control of its chain."""

    url: str
    """URL for Ethereum clients."""
    ws_url: str
    """Websocket URL for Ethereum clients."""
    node_url: str
    """URL for clients of the CometBFT RPC."""
    accounts: tuple[DevAccount, ...]
    """Ten accounts with 10,000 ether each."""
    chain: EmbeddedChain

    def mine(self, blocks: int = 1, time: int | None = None) -> int:
        """Mine blocks now; return the last height. ``time`` is the first block's, in seconds
        since 1970."""
        return self.chain.control.mine(blocks, time)

    def increase_time(self, seconds: int) -> None:
        """Advance the clock for later blocks."""
        self.chain.control.shift(seconds)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Take a snapshot of the chain, and revert the chain to it on exit."""
        number = self.chain.control.snapshot()
        try:
            yield
        finally:
            self.chain.control.revert(number)


@contextmanager
def run_evm_node(folder: Path | None = None, **settings: Any) -> Iterator[EvmNode]:
    """Run a node that mines each transaction immediately.

    ``settings`` are settings of the mount and the chain, such as ``block_interval`` and
    ``empty_blocks`` to mine blocks at an interval.
    """
    given = {**_SETTINGS, **settings}
    with tempfile.TemporaryDirectory() as scratch:
        chain = chain_from_settings(read_settings({}, given), folder or Path(scratch))
        try:
            chain.start()
            with serve(app_for(chain, **given)) as url:
                websocket = url.replace("http", "ws", 1) + "/evm/ws"
                yield EvmNode(f"{url}/evm", websocket, url, ACCOUNTS, chain)
        finally:
            chain.close()
