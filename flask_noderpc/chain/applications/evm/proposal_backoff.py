"""Backoff of block proposals after a block that could not be executed.

The next proposals have fewer transactions, until the one that fails is found and excluded.
Gas is a poor measure of the time of some precompiled contracts, and a slow transaction must
not halt the chain.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence

from ....protocol.comet.hashes import tx_hash

_SHRINK_FACTOR = 4
_MAX_FAILURES = 2
_MAX_POISON = 10_000


class Backoff:
    """Limit and exclusions of proposals, from the failed blocks of this process."""

    def __init__(self) -> None:
        self._limit: int | None = None
        self._failures: Counter[bytes] = Counter()
        self._poison: OrderedDict[bytes, None] = OrderedDict()

    def is_poison(self, tx: bytes) -> bool:
        """Return true if a block with this transaction alone failed repeatedly."""
        return bool(self._poison) and tx_hash(tx) in self._poison

    def has_suspects(self) -> bool:
        """Return true if a transaction failed that the next block may show to be the cause."""
        return bool(self._failures or self._poison)

    def limit(self, txs: Sequence[bytes]) -> tuple[bytes, ...]:
        """Return the first transactions of a proposal, up to the current limit."""
        return tuple(txs[: self._limit])

    def done(self, txs: Sequence[bytes]) -> None:
        """Raise the limit after a block was executed."""
        self._failures.clear()
        if self._limit is not None:
            # A block below the limit had all transactions: no limit is needed any more.
            self._limit = 2 * self._limit if len(txs) == self._limit else None

    def failed(self, txs: Sequence[bytes]) -> None:
        """Lower the limit after a block that took too long or killed its process."""
        if not txs:
            # An empty block failed too: the transactions are not the cause.
            self._poison.clear()
        elif len(txs) > 1:
            self._limit = max(1, len(txs) // _SHRINK_FACTOR)
        else:
            self._limit = 1
            self._count_failure(tx_hash(txs[0]))

    def _count_failure(self, digest: bytes) -> None:
        # A single failure may have another cause, such as a killed process.
        self._failures[digest] += 1
        if self._failures[digest] >= _MAX_FAILURES:
            del self._failures[digest]
            self._poison[digest] = None
            if len(self._poison) > _MAX_POISON:
                self._poison.popitem(last=False)
