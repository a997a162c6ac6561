"""What is proposed after a block that could not be executed: less, and not what is to blame.

Gas says little about the time of some precompiled contracts, and a transaction must not
halt the chain by the time that it takes.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence

from ....protocol.comet.hashes import tx_hash

_FEWER = 4
_STRIKES = 2
_KEPT = 10_000


class Backoff:
    """Learns from the blocks of this process."""

    def __init__(self) -> None:
        self._most: int | None = None
        self._strikes: Counter[bytes] = Counter()
        self._blamed: OrderedDict[bytes, None] = OrderedDict()

    def is_poison(self, tx: bytes) -> bool:
        """Whether a block of nothing else could not be executed, again and again."""
        return bool(self._blamed) and tx_hash(tx) in self._blamed

    def has_suspects(self) -> bool:
        """Return true if a transaction failed that the next block may show to be the cause."""
        return bool(self._strikes or self._blamed)

    def fewer(self, txs: Sequence[bytes]) -> tuple[bytes, ...]:
        """As many of a proposal's transactions as may be executed together."""
        return tuple(txs[: self._most])

    def done(self, txs: Sequence[bytes]) -> None:
        """A block was executed."""
        self._strikes.clear()
        if self._most is not None:
            # One that was not filled says that there is room for all.
            self._most = 2 * self._most if len(txs) == self._most else None

    def failed(self, txs: Sequence[bytes]) -> None:
        """A block took too long, or ended its process."""
        if not txs:
            # It is not the transactions.
            self._blamed.clear()
        elif len(txs) > 1:
            self._most = max(1, len(txs) // _FEWER)
        else:
            self._most = 1
            self._strike(tx_hash(txs[0]))

    def _strike(self, own: bytes) -> None:
        # The first time somebody may have killed the process.
        self._strikes[own] += 1
        if self._strikes[own] >= _STRIKES:
            del self._strikes[own]
            self._blamed[own] = None
            if len(self._blamed) > _KEPT:
                self._blamed.popitem(last=False)
