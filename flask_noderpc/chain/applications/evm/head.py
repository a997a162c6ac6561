"""The EVM application's stored record of each block."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ....backends.base.application import AppState
from ....protocol.ethereum import rlp
from ....protocol.ethereum.validity import next_base_fee

INITIAL_BASE_FEE = 10**9
"""Base fee of the first block, in wei per unit of gas."""

BLOCKS_NEEDED = 257
"""Minimum blocks to retain: the latest, and the 256 before it that BLOCKHASH can read."""


@dataclass(frozen=True, slots=True)
class EvmHead:
    """State root and fee parameters after a block."""

    height: int
    root: bytes
    base_fee: int
    gas_used: int
    gas_limit: int
    coinbase: bytes = b""
    """Account that receives the tips of later blocks, if ``setCoinbase`` has set one."""

    @property
    def next_base_fee(self) -> int:
        """Base fee of the next block, in wei per unit of gas."""
        return next_base_fee(self.base_fee, self.gas_used, self.gas_limit)

    def encode(self) -> bytes:
        """Encode the record for the store."""
        items: list[rlp.Item] = [self.height, self.root, self.base_fee]
        items += self.gas_used, self.gas_limit
        return rlp.encode([*items, self.coinbase] if self.coinbase else items)

    @classmethod
    def decode(cls, stored: bytes) -> EvmHead:
        """Decode the result of :meth:`encode`."""
        items = rlp.Reader(stored).list("head")

        def number() -> int:
            return int.from_bytes(items.string("number"))

        head = cls(number(), items.string("root"), number(), number(), number())
        return head if items.done else replace(head, coinbase=items.string("coinbase"))


LATEST = b"evm"
_AT = b"evm:%d"


def head(state: AppState) -> EvmHead | None:
    """Return the latest block's record."""
    stored = state.get(LATEST)
    return None if stored is None else EvmHead.decode(stored)


def head_at(state: AppState, height: int) -> EvmHead | None:
    """Return a block's record; height 0 is the genesis."""
    stored = state.get(_AT % height)
    return None if stored is None else EvmHead.decode(stored)


def undo_changes(state: AppState, latest: int, height: int) -> dict[bytes, bytes | None]:
    """Return the changes that make an earlier block the latest; 0 is the genesis."""
    removed = range(height + 1, latest + 1)
    return {**{_AT % each: None for each in removed}, LATEST: state.get(_AT % height)}


def head_records(new_head: EvmHead) -> dict[bytes, bytes]:
    """Return the key-value records of a new latest block."""
    encoded = new_head.encode()
    return {LATEST: encoded, _AT % new_head.height: encoded}
