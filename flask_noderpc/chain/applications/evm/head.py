"""What an application keeps of each block for the next one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ....backends.base.application import AppState
from ....protocol.ethereum import rlp
from ....protocol.ethereum.fees import next_base_fee

INITIAL_BASE_FEE = 10**9
"""Wei for a unit of gas in the genesis, from which it falls or rises."""

BLOCKS_NEEDED = 257
"""The latest, on which calls run, and those before it whose hashes BLOCKHASH asks for."""


@dataclass(frozen=True, slots=True)
class EvmHead:
    """Where the state stands after a block."""

    height: int
    root: bytes
    base_fee: int
    gas_used: int
    gas_limit: int
    coinbase: bytes = b""
    """The account that gets the tips of later blocks, where that was set by hand."""

    @property
    def next_base_fee(self) -> int:
        """What a unit of gas costs in the next block at least, in wei."""
        return next_base_fee(self.base_fee, self.gas_used, self.gas_limit)

    def encode(self) -> bytes:
        """As it is stored."""
        items: list[rlp.Item] = [self.height, self.root, self.base_fee]
        items += self.gas_used, self.gas_limit
        return rlp.encode([*items, self.coinbase] if self.coinbase else items)

    @classmethod
    def decode(cls, stored: bytes) -> EvmHead:
        """What :meth:`encode` stored."""
        items = rlp.Reader(stored).list("head")

        def number() -> int:
            return int.from_bytes(items.string("number"))

        made = cls(number(), items.string("root"), number(), number(), number())
        return made if items.done else replace(made, coinbase=items.string("coinbase"))


LATEST = b"evm"
_AT = b"evm:%d"


def head(state: AppState) -> EvmHead | None:
    """That of the latest block."""
    stored = state.get(LATEST)
    return None if stored is None else EvmHead.decode(stored)


def head_at(state: AppState, height: int) -> EvmHead | None:
    """That of a block; 0 is the genesis."""
    stored = state.get(_AT % height)
    return None if stored is None else EvmHead.decode(stored)


def undo_changes(state: AppState, latest: int, height: int) -> dict[bytes, bytes | None]:
    """What makes an earlier block the latest; 0 is the genesis."""
    gone = range(height + 1, latest + 1)
    return {**{_AT % each: None for each in gone}, LATEST: state.get(_AT % height)}


def written(made: EvmHead) -> dict[bytes, bytes]:
    """The records of a head."""
    stored = made.encode()
    return {LATEST: stored, _AT % made.height: stored}
