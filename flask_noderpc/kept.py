"""What was made lately and may be asked for again, as far as there is room."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Kept(Generic[K, V]):
    """At most so many values, and so many bytes of them; the last one is kept in any case.

    What nobody has asked for the longest goes first.
    """

    def __init__(self, most: int, most_bytes: int, weigh: Callable[[V], int]) -> None:
        self._most, self._most_bytes, self._weigh = most, most_bytes, weigh
        self._values: OrderedDict[K, V] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        """The value, if it is still there."""
        with self._lock:
            found = self._values.get(key)
            if found is not None:
                self._values.move_to_end(key)
            return found

    def keep(self, key: K, value: V) -> V:
        """The value, which is there from now on."""
        with self._lock:
            former = self._values.pop(key, None)
            if former is not None:
                self._bytes -= self._weigh(former)
            self._values[key] = value
            self._bytes += self._weigh(value)
            while len(self._values) > 1 and self._is_full():
                _, dropped = self._values.popitem(last=False)
                self._bytes -= self._weigh(dropped)
        return value

    def _is_full(self) -> bool:
        return len(self._values) > self._most or self._bytes > self._most_bytes
