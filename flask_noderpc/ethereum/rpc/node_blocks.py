"""Members of Ethereum blocks that a follower does not store, read from its upstream node."""

from __future__ import annotations

import time
from typing import NamedTuple

from ... import jsoncodec
from ...backends.base.capabilities import ForwardedCalls
from ...errors import BackendError, ForwardedCallFailed
from .codec import hex

# Seconds without requests after the node failed to respond; blocks lack these members then.
_PAUSE_S = 30.0


class NodeBlock(NamedTuple):
    """Members of a block that only its node has."""

    number: int
    account: bytes
    """Address of the proposer's account."""
    root: bytes
    """State root."""
    base_fee: int


class _BlockJson(jsoncodec.Struct, rename="camel"):
    number: str
    miner: str
    state_root: str
    base_fee_per_gas: str = "0x0"

    def read(self) -> NodeBlock:
        return NodeBlock(
            hex.read_quantity(self.number),
            hex.read_fixed(self.miner, 20, "common.Address"),
            hex.read_fixed(self.state_root, 32, "common.Hash"),
            hex.read_quantity(self.base_fee_per_gas, 256),
        )


class NodeBlocks:
    """Blocks of another node; after a failure the node gets no requests for 30 seconds."""

    def __init__(self, forward: ForwardedCalls) -> None:
        self._forward = forward
        # Account by proposer address: one entry for each validator that the chain has had.
        self._accounts: dict[bytes, bytes] = {}
        self._genesis: NodeBlock | None = None
        self._pause_ends = 0.0

    def account(self, proposer: bytes, height: int) -> bytes | None:
        """Return the account of a block's proposer; ``None`` while it is unknown."""
        found = self._accounts.get(proposer)
        if found is None:
            block = self._block(height)
            if block is not None:
                found = self._accounts[proposer] = block.account
        return found

    def genesis(self) -> NodeBlock | None:
        """Return block 0; ``None`` if the node does not have it, or while it is unknown."""
        if self._genesis is None:
            found = self._block(0)
            # Ethermint returns the latest block if block 0 is requested.
            if found is not None and found.number == 0:
                self._genesis = found
        return self._genesis

    def _block(self, height: int) -> NodeBlock | None:
        if time.monotonic() < self._pause_ends:
            return None
        params = jsoncodec.encode([hex.quantity(height), False])
        try:
            answer = self._forward.call("eth_getBlockByNumber", params)
            shown: _BlockJson | None = jsoncodec.decode(answer, _BlockJson | None)
            return shown.read() if shown else None
        except ForwardedCallFailed:
            return None
        except (BackendError, ValueError):
            self._pause_ends = time.monotonic() + _PAUSE_S
            return None
