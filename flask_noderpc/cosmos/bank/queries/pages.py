"""Pagination of query results; SDK: types/query."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from ....protocol.protobuf import Message, blob, integer, message
from ..errors import INVALID_REQUEST, PANIC, TxError

Pair = tuple[bytes, bytes]
"""A store key without its prefix, and its value."""
Keeps = Callable[[bytes, bytes], bool]
"""A function that returns true for the pairs of a page."""

_LIMIT = 100


@dataclass(frozen=True, slots=True)
class Page:
    """A ``PageRequest``."""

    key: bytes
    offset: int
    limit: int
    counts: bool
    is_reverse: bool

    @classmethod
    def decode(
        cls,
        data: bytes,
        refuse: Callable[[str], TxError] = lambda t: TxError(INVALID_REQUEST, t),
    ) -> Page:
        """Decode the request; if it has a key and an offset, raise the error that ``refuse``
        makes from the SDK's text."""
        given = Message(data)
        key, offset, limit = given.blob(1), given.integer(2), given.integer(3)
        if key and offset:
            raise refuse("invalid request, either offset or key is expected, got both")
        counts = not key and (bool(given.integer(4)) or not limit)
        return cls(key, offset, limit or _LIMIT, counts, bool(given.integer(5)))

    def select(
        self, pairs: Iterable[Pair], keeps: Keeps, *, is_plain: bool
    ) -> tuple[list[Pair], bytes]:
        """Return the pairs of the page from ordered pairs, and the encoded ``PageResponse``;
        pairs that ``keeps`` refuses are left out.

        ``is_plain`` says that the SDK reads a plain store, for which it returns the total even
        if the offset exceeds it; for its collections the total is 0 then.
        """
        chosen: list[Pair] = []
        following, seen = b"", 0
        for pair in self._from_key(pairs, is_plain=is_plain):
            # SDK: a page that begins at a key ends before any pair, others before one that is
            # not left out.
            if self.key and len(chosen) == self.limit:
                following = pair[0]
                break
            if not keeps(*pair):
                continue
            seen += 1
            if seen <= self.offset:
                continue
            if len(chosen) < self.limit:
                chosen.append(pair)
                continue
            following = following or pair[0]
            if not self.counts:
                break
        total = seen if self.counts and (is_plain or self.offset <= seen) else 0
        return chosen, blob(1, following) + integer(2, total)

    def select_from_collection(
        self, pairs: Iterable[Pair], keeps: Keeps
    ) -> tuple[list[Pair], bytes]:
        """Return a page like :meth:`select` does, but of those pairs of one of the SDK's
        collections that ``keeps`` accepts; SDK: ``CollectionFilteredPaginate``.

        The offset counts all pairs; the total is the sum of the kept pairs and the offset.
        """
        ordered = self._from_key(pairs, is_plain=False)
        if sum(1 for _ in islice(ordered, min(self.offset, sys.maxsize))) < self.offset:
            return [], b""
        chosen: list[Pair] = []
        following, count = b"", 0
        for pair in ordered:
            # A page that begins at a key ends before a kept pair, others before any pair.
            is_kept = (count < self.limit or bool(self.key) or self.counts) and keeps(*pair)
            if count < self.limit:
                chosen += [pair] * is_kept
            elif count == self.limit and (is_kept or not self.key):
                following = pair[0]
                if not self.counts:
                    break
            count += is_kept
        total = count + self.offset if self.counts else 0
        return chosen, blob(1, following) + integer(2, total)

    def _from_key(self, pairs: Iterable[Pair], *, is_plain: bool) -> Iterator[Pair]:
        size = len(self.key)
        if self.is_reverse and is_plain and size:
            yield from reversed(_until_first_from(self.key, list(pairs)))
            return
        if self.is_reverse:
            for pair in reversed(list(pairs)):
                # Include keys that begin with the page's key.
                if not size or pair[0][:size] <= self.key:
                    yield pair
            return
        for pair in pairs:
            if pair[0] >= self.key:
                yield pair


def _until_first_from(key: bytes, pairs: list[Pair]) -> list[Pair]:
    """Return the pairs up to the first one whose key is not lower; SDK: ``getIterator``, which
    panics if that is the last one."""
    for at, pair in enumerate(pairs):
        if pair[0] >= key:
            if at == len(pairs) - 1:
                raise TxError(PANIC, "prefixIterator invalid, cannot call Key()")
            return pairs[: at + 1]
    return pairs


def _keep_all(key: bytes, value: bytes) -> bool:
    return True


def encode_page(
    page: Page,
    pairs: Iterable[Pair],
    entry: Callable[[bytes, bytes], bytes],
    number: int = 2,
    *,
    keeps: Keeps | None = None,
    is_plain: bool = False,
) -> bytes:
    """Return the encoded response for a page: ``entry`` of each pair that ``keeps`` does not
    refuse as field 1, and the ``PageResponse`` as field ``number``."""
    if keeps is not None and not is_plain:
        chosen, response = page.select_from_collection(pairs, keeps)
    else:
        chosen, response = page.select(pairs, keeps or _keep_all, is_plain=is_plain)
    found = b"".join(message(1, entry(key, value)) for key, value in chosen)
    return found + message(number, response)
