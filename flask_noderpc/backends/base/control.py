"""Development control of a chain: its blocks, its clock and its reorgs."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ...domain.evm import Overrides
from ...errors import NotSupported


class Control(ABC):
    """Control of a development chain; times are in seconds.

    Those that no chain has raise :exc:`~flask_noderpc.errors.ValueNotAllowed`.
    """

    @abstractmethod
    def mine(self, count: int = 1, time: int | None = None, step: int | None = None) -> int:
        """Make blocks now, the first at a time, the others ``step`` apart; the last height."""

    @abstractmethod
    def snapshot(self) -> int:
        """Remember where the chain stands, under a number."""

    @abstractmethod
    def revert(self, number: int) -> bool:
        """Take the chain back to a snapshot, which is gone then as are those after it;
        whether there was one."""

    @abstractmethod
    def reset(self) -> None:
        """Take the chain back to its genesis."""

    @abstractmethod
    def shift(self, seconds: int) -> int:
        """Let time pass; how far the clock is ahead of the machine's by now."""

    @abstractmethod
    def set_time(self, time: int) -> int:
        """Let it be some time; how far the clock is ahead then."""

    @abstractmethod
    def set_next_time(self, time: int) -> None:
        """Give the next block a time, and let time go on from there; raise
        :exc:`~flask_noderpc.errors.ValueNotAllowed` for one that has passed."""

    @abstractmethod
    def set_step(self, seconds: int | None) -> None:
        """Let each block be so long after the last; ``None`` goes by the clock."""

    @abstractmethod
    def set_interval(self, seconds: float | None) -> None:
        """Make blocks so often; ``None`` makes none but by :meth:`mine`."""

    @abstractmethod
    def set_automine(self, on: bool) -> None:
        """Make a block as soon as a transaction waits, or none but by :meth:`mine`."""

    @abstractmethod
    def automines(self) -> bool:
        """Return true if blocks are made as soon as a transaction is pending, as far as this
        process knows; does not block."""

    @abstractmethod
    def patch(self, overrides: Overrides) -> None:
        """Change accounts manually, in a separate block."""

    @abstractmethod
    def set_base_fee(self, fee: int) -> None:
        """Give the block after the next a base fee; the next is made for it, and empty."""

    @abstractmethod
    def set_coinbase(self, address: bytes) -> None:
        """Let an account have the tips of later blocks, in the same way."""

    @abstractmethod
    def set_gas_limit(self, limit: int) -> None:
        """Let later blocks have a gas limit, in the same way."""

    @abstractmethod
    def load_state(self, dump: bytes) -> None:
        """Make the state that of a dump, in a block of its own."""

    @abstractmethod
    def drop(self, txs: tuple[bytes, ...]) -> None:
        """Forget waiting transactions."""


def no_control() -> NotSupported:
    """Return the error of a chain without development control."""
    return NotSupported(
        "this chain is not driven by hand", "NODERPC_DEV makes one that is, for tests"
    )
