"""What to do about blocks that take too long: one transaction must not halt the chain.

Gas says little about time where py-evm computes on curves: 15 million units of pairings take
minutes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from ...errors import ExecutionTimedOut, ExecutorDied, InvalidTransaction

_KEPT, _MOST_DEATHS = 1_000, 3
_ALL = 1 << 32


class Haste:
    """After a block that took too long they have one transaction, then two, then four.

    A transaction that takes too long alone is never run again.
    """

    def __init__(self) -> None:
        self._most, self._deaths = _ALL, 0
        self._slow: OrderedDict[bytes, None] = OrderedDict()

    def check(self, tx: bytes) -> None:
        """Refuse a slow one; raise :exc:`~flask_noderpc.errors.InvalidTransaction`."""
        if not self.takes(tx):
            raise InvalidTransaction("the transaction takes longer than a block may")

    def takes(self, tx: bytes) -> bool:
        """Whether it is none that took too long."""
        return tx not in self._slow

    def first_of(self, txs: tuple[bytes, ...]) -> tuple[bytes, ...]:
        """As many as may be in the next block."""
        return txs[: self._most]

    @contextmanager
    def over(self, txs: tuple[bytes, ...]) -> Iterator[None]:
        """Learn from how long a block's transactions take."""
        try:
            yield
        except ExecutionTimedOut:
            self._blame(txs)
            raise
        except ExecutorDied:
            # Somebody may have killed it; that this happens to one again and again is its own
            # fault.
            self._deaths += 1
            if self._deaths >= _MOST_DEATHS:
                self._blame(txs)
            raise
        self._deaths = 0
        self._most = min(_ALL, 2 * self._most)

    def _blame(self, txs: tuple[bytes, ...]) -> None:
        self._most, self._deaths = 1, 0
        if len(txs) == 1:
            self._slow[txs[0]] = None
            while len(self._slow) > _KEPT:
                self._slow.popitem(last=False)
