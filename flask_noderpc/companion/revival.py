"""Follow a chain again whose stored head is too old to prove new blocks: the hashes in the
headers from a newer trusted header down to the head prove them."""

from __future__ import annotations

import logging
import time
from tempfile import SpooledTemporaryFile

from ..backends.sql.store import ChainStore
from ..domain.block import Header
from ..errors import UpstreamRefused
from ..protocol.comet import hashes
from ..protocol.comet.validate_basic import HASH_SIZE
from .agreement import are_halted
from .head_age import HeadAge, date_of
from .heads import newest_of
from .history import lowest_block
from .light import SignedBlock, period_text
from .pool import Upstreams
from .trust import (
    STEP,
    CannotFollow,
    TrustOptions,
    linked_headers,
    trusted_root,
)

log = logging.getLogger("flask_noderpc.companion")

_LOG_EACH_S = 30.0
# Bytes of hashes that are kept in memory, enough for 130,000 headers; more go into a file.
_MAX_MEMORY = 4 << 20


class _Links:
    """Hashes of the headers from a trusted header downwards."""

    def __init__(self, root: SignedBlock) -> None:
        self.top = self.lowest = root.height
        self._hashes = SpooledTemporaryFile(_MAX_MEMORY)  # noqa: SIM115
        self._hashes.write(root.hash)

    def add(self, headers: list[Header], above: Header) -> None:
        """Add the headers below the proven header ``above``, highest first."""
        for each in headers:
            self._hashes.write(above.last_block_id.hash)
            above = each
        self.lowest = above.height

    def hash_at(self, height: int) -> bytes:
        """Return the hash of a header; empty if the height is not between the two ends."""
        if not self.lowest <= height <= self.top:
            return b""
        self._hashes.seek((self.top - height) * HASH_SIZE)
        return self._hashes.read(HASH_SIZE)

    def close(self) -> None:
        """Delete the hashes."""
        self._hashes.close()


class Revival:
    """Links a store's head to a trusted header above it, if the head is older than the
    trusting period.

    Only the thread that appends blocks uses this object. The hashes are not stored: after a
    restart, the headers are read again, down to the new head.
    """

    def __init__(
        self, store: ChainStore, upstreams: Upstreams, trust: TrustOptions, age: HeadAge
    ) -> None:
        self._store, self._upstreams, self._trust = store, upstreams, trust
        self._age = age
        self._links: _Links | None = None

    def linked_trusted_height(self) -> int:
        """Return the height of the trusted header to which the head is linked, or 0 if the
        head is young enough to prove the next blocks by itself.

        Raise :exc:`CannotFollow` if the head is too old and no newer trusted header is set,
        and the errors of :meth:`Upstreams.attempt`.
        """
        head = self._age.head()
        if not self._age.is_too_old(head):
            self.close()
            return 0
        if self._links is None or not self._links.lowest <= head.height + 1 <= self._links.top:
            self.close()
            self._links = self._linked(head, self._root(head))
        return self._links.top

    def hash_at(self, height: int) -> bytes:
        """Return the hash that a header must have; empty if its signatures must prove it
        instead."""
        return self._links.hash_at(height) if self._links else b""

    def close(self) -> None:
        """Forget the hashes."""
        if self._links is not None:
            self._links.close()
            self._links = None

    def _root(self, head: Header) -> SignedBlock:
        """Return the trusted header; raise :exc:`CannotFollow` unless it is above the head,
        and young enough or the newest of a halted chain."""
        trust, chain_id = self._trust, self._store.reads.chain_id()
        found = self._upstreams.ask_all(newest_of)
        if trust.height > head.height:
            root = self._upstreams.attempt(lambda reader: trusted_root(reader, chain_id, trust))
            header = root.signed_header.header
            if self._age.is_trusted_too_old(header, found):
                raise self._too_old_error(f"--trust {root.height}", header)
            return root
        newest = max(each.latest_block_height for each in found)
        shown = self._describe_newest(newest) if are_halted(found, trust.clock()) else ""
        raise self._too_old_error(
            f"{self._store.location.display_name}, its head {head.height}", head, shown
        )

    def _describe_newest(self, newest: int) -> str:
        """Return a description of the nodes' newest header, for a chain that looks halted."""
        try:
            header = self._upstreams.attempt(lambda reader: reader.header(newest))
        except UpstreamRefused:
            return ""
        return (
            "; the chain looks halted, and its newest header is, according to the nodes,"
            f" {newest}:{hashes.header_hash(header).hex().upper()} of {date_of(header)}: pass"
            " it if other sources have the same"
        )

    def _too_old_error(self, subject: str, header: Header, shown: str = "") -> CannotFollow:
        period = period_text(self._trust.period)
        head, given = self._store.reads.latest_height(), self._trust.height
        below = f"; --trust {given} is not above the head" if 0 < given <= head else ""
        return CannotFollow(
            f"{subject}: expected a header that is at most {period} old, got one of"
            f" {date_of(header)}{below}: pass --trust HEIGHT:HASH of a newer header, or a"
            f" longer --trust-period{shown}"
        )

    def _linked(self, head: Header, root: SignedBlock) -> _Links:
        """Read the headers from a trusted one down to the head; return their hashes.

        Raise :exc:`CannotFollow` if the nodes have pruned some, and for a header of another
        chain.
        """
        low = head.height + 1
        check_not_pruned(self._store, self._upstreams, low, root.height)
        log.warning(
            "the head %d of %s is older than the trusting period: reading %d headers that link"
            " it to the trusted header %d",
            head.height,
            date_of(head),
            root.height - head.height,
            root.height,
        )
        links = _Links(root)
        try:
            self._check_head(head, root, self._read_down(links, root.signed_header.header, low))
        except BaseException:
            links.close()
            raise
        return links

    def _read_down(self, links: _Links, above: Header, low: int) -> Header:
        """Read the headers below a proven one down to height ``low``; return the lowest
        header."""
        logged = time.monotonic()
        while above.height > low:
            bottom, top = max(low, above.height - STEP), above
            headers = self._upstreams.attempt(
                lambda reader, bottom=bottom, top=top: linked_headers(reader, bottom, top)  # type: ignore[misc]
            )
            links.add(headers, above)
            above = headers[-1]
            if time.monotonic() - logged >= _LOG_EACH_S:
                logged = time.monotonic()
                log.info("%d headers down to the head are left to be read", above.height - low)
        return above

    def _check_head(self, head: Header, root: SignedBlock, above: Header) -> None:
        """Raise :exc:`CannotFollow` unless the header ``above`` the head has the head's
        hash."""
        stored = self._store.reads.hash_at(head.height)
        if above.last_block_id.hash != stored:
            raise CannotFollow(
                f"the trusted header {root.height}:{root.hash.hex().upper()} does not follow"
                f" the stored chain: block {head.height} below it is"
                f" {above.last_block_id.hash.hex().upper()}, but"
                f" {self._store.location.display_name} has {stored.hex().upper()}; pass --trust"
                " HEIGHT:HASH of the stored chain, or another --database"
            )


def check_not_pruned(store: ChainStore, upstreams: Upstreams, low: int, high: int) -> None:
    """Raise :exc:`CannotFollow` if all nodes have pruned block ``low``, the next one to store.

    Raise the errors of :meth:`Upstreams.attempt`.
    """
    try:
        upstreams.attempt(lambda reader: reader.block(low))
    except UpstreamRefused:
        there = min(upstreams.ask_all(lambda reader: lowest_block(reader, low, high)))
        if there == low:
            raise
        raise CannotFollow(
            f"the nodes have pruned blocks {low} to {there - 1}, which follow the head of"
            f" {store.location.display_name}: add an --upstream node that has them, or begin a"
            " new store above them with noderpc start --upstream URL"
            " --database NEW (noderpc start --produce=false --database OLD serves the old one)"
        ) from None
