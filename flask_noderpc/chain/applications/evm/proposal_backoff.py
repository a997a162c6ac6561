"""What is proposed after a block that could not be executed: less, and not what is to blame.

Gas says little about the time of some precompiled contracts, and a transaction must not
halt the chain by the time that it takes.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence

from ....protocol.comet.hashes import tx_hash

_SHRINK_FACTOR = 4
_MAX_FAILURES = 2
_MAX_POISON = 10_000


class Backoff:
    """Learns from the blocks of this process."""

    def __init__(self) -> None:
        self._limit: int | None = None
        self._failures: Counter[bytes] = Counter()
        self._poison: OrderedDict[bytes, None] = OrderedDict()

    def is_poison(self, tx: bytes) -> bool:
        """Whether a block of nothing else could not be executed, again and again."""
        return bool(self._poison) and tx_hash(tx) in self._poison

    def has_suspects(self) -> bool:
        """Return true if a transaction failed that the next block may show to be the cause."""
        return bool(self._failures or self._poison)

    def limit(self, txs: Sequence[bytes]) -> tuple[bytes, ...]:
        """As many of a proposal's transactions as may be executed together."""
        return tuple(txs[: self._limit])

    def done(self, txs: Sequence[bytes]) -> None:
        """A block was executed."""
        self._failures.clear()
        if self._limit is not None:
            # One that was not filled says that there is room for all.
            self._limit = 2 * self._limit if len(txs) == self._limit else None

    def failed(self, txs: Sequence[bytes]) -> None:
        """A block took too long, or ended its process."""
        if not txs:
            # It is not the transactions.
            self._poison.clear()
        elif len(txs) > 1:
            self._limit = max(1, len(txs) // _SHRINK_FACTOR)
        else:
            self._limit = 1
            self._count_failure(tx_hash(txs[0]))

    def _count_failure(self, digest: bytes) -> None:
        # The first time somebody may have killed the process.
        self._failures[digest] += 1
        if self._failures[digest] >= _MAX_FAILURES:
            del self._failures[digest]
            self._poison[digest] = None
            if len(self._poison) > _MAX_POISON:
                self._poison.popitem(last=False)
