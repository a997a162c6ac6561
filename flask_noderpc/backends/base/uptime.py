"""Blocks that validators signed, missed and proposed, from the commits of a chain."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from ...domain.block import BlockIDFlag, BlockMeta
from ...errors import NotFound
from .reads import ChainReads

WINDOW = 100
"""Number of blocks that are counted by default."""


@dataclass(slots=True)
class Uptime:
    """A validator's part in some blocks; only those count whose validator set has it."""

    signed: int = 0
    """Number of blocks whose commit has its signature."""
    missed: list[int] = field(default_factory=list)
    """Heights whose commit has no signature of it for the block, newest first."""
    proposed: int = 0
    """Number of blocks that it proposed."""

    @property
    def share(self) -> float:
        """Signed blocks divided by all that it should have signed."""
        return self.signed / max(1, self.signed + len(self.missed))


def uptimes(reads: ChainReads, high: int, count: int = WINDOW) -> dict[bytes, Uptime]:
    """Return the uptime of each validator by address, in at most ``count`` blocks up to the
    height ``high``.

    Blocks that the backend does not have are left out, also those that it could read from
    elsewhere.
    """
    low = max(1, reads.base_height(), high - count + 1)
    found: dict[bytes, Uptime] = {}
    for meta, addresses in _with_validators(reads, low, high):
        height = meta.header.height
        with suppress(NotFound):
            votes = reads.commit(height).signatures
            for address, vote in zip(addresses, votes, strict=False):
                own = found.setdefault(address, Uptime())
                if vote.block_id_flag == BlockIDFlag.COMMIT:
                    own.signed += 1
                else:
                    own.missed.append(height)
        if meta.header.proposer_address in found:
            found[meta.header.proposer_address].proposed += 1
    return found


def _with_validators(
    reads: ChainReads, low: int, high: int
) -> Iterator[tuple[BlockMeta, tuple[bytes, ...]]]:
    """Yield blocks, newest first, with the addresses of their validators in the order of the
    commit."""
    addresses: dict[bytes, tuple[bytes, ...]] = {}
    for meta in reads.block_metas(low, high) if low <= high else ():
        key = meta.header.validators_hash
        if key not in addresses:
            try:
                validators = reads.validators(meta.header.height).validators
            except NotFound:
                continue
            addresses[key] = tuple(each.address for each in validators)
        yield meta, addresses[key]


def powers(reads: ChainReads, address: bytes, high: int, points: int) -> list[tuple[int, int]]:
    """Return at most ``points`` heights up to ``high``, evenly spread over the stored blocks,
    each with the voting power of a validator, which is 0 where the set lacks it."""
    low = max(1, reads.base_height())
    step = max(1, -(-(high - low + 1) // points))
    found = []
    for height in range(high, low - 1, -step):
        with suppress(NotFound):
            own = reads.validators(height).by_address.get(address)
            found.append((height, own[1].voting_power if own else 0))
    return found[::-1]
