"""Results of handlers other than Ethereum's own objects."""

from __future__ import annotations

from dataclasses import dataclass

from ...domain.ethereum import Block, Header


class PlainNumber(int):
    """A number that is written as JSON has numbers, and not as hex."""


@dataclass(frozen=True, slots=True)
class BlockView:
    """A block with complete transactions or their hashes."""

    block: Block
    full_transactions: bool

    @property
    def header(self) -> Header:
        """Header of the block."""
        return self.block.header


@dataclass(frozen=True, slots=True)
class HeadView:
    """A header as subscribers get it."""

    header: Header
