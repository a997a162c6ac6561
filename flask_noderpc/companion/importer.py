"""Import a range of a chain into a store: blocks above its head, and blocks below its base."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial

from ..backends.sql.lease import Lease
from ..backends.sql.store import ChainStore
from ..errors import (
    Busy,
    ConfigurationError,
    UpstreamError,
    UpstreamRefused,
    UpstreamUnavailable,
)
from .agreement import agree, check_chain
from .beginning import FetchOptions, begin
from .comparison import Comparison
from .gaps import RESULTS
from .genesis import fetch_genesis
from .growth import Growth
from .head_age import HeadAge
from .history import History, Progress
from .lease import held_lease
from .pool import Upstreams
from .trust import HeaderAhead

log = logging.getLogger("flask_noderpc.companion")


class Importer:
    """Fills a store from upstreams.

    An import can be interrupted at any time; the next one fetches the blocks that are missing.
    """

    def __init__(
        self, store: ChainStore, upstreams: Upstreams, options: FetchOptions | None = None
    ) -> None:
        self._store, self._upstreams = store, upstreams
        self._options = options = options or FetchOptions()
        upstreams.check = partial(check_chain, store, options.chain_id)
        self._age = HeadAge(store, upstreams, options.trust)
        self._growth = Growth(
            store, upstreams, options.trust, self._age, options.jobs, options.unchecked
        )
        self._history = History(store, upstreams, options.jobs, options.unchecked, in_bulk=True)

    def plan(self, first: int = 1, last: int | None = None) -> int:
        """Begin the store if it is empty; return the number of missing blocks.

        ``last`` is the highest block, by default the last one whose results are proven. Raise
        :exc:`~flask_noderpc.errors.ConfigurationError` for a range that the chain does not
        have.
        """
        agreed = agree(
            self._store, self._upstreams, self._options.chain_id, self._options.trust
        )
        top = agreed.latest - 1 if last is None else last
        if not 1 <= first <= top <= agreed.highest:
            raise ConfigurationError(
                f"--from and --to: expected heights from 1 to {agreed.highest}, the chain's"
                f" latest block, with --from at most --to, got {first} to {top}"
            )
        begin(self._store, self._upstreams, agreed, top, self._options)
        self._first, self._last = max(first, self._store.reads.initial_height()), top
        above = max(0, top - self._store.reads.latest_height())
        return above + max(0, self._store.reads.base_height() - self._first)

    def run(self, progress: Progress) -> tuple[int, int]:
        """Import the blocks that :meth:`plan` found missing; return the store's lowest and
        highest height.

        Raise :exc:`~flask_noderpc.errors.StoreError` if another process adds blocks to the
        store, and the errors of :meth:`Upstreams.attempt`.
        """
        with held_lease(self._store) as lease, self._comparison() as comparison:

            def grown(count: int) -> None:
                progress(count)
                # The next block proves the results of the latest one.
                comparison.add(self._store.reads.latest_height() - 1)

            def filled(count: int) -> None:
                progress(count)
                comparison.add_older(self._store.reads.base_height())

            self._age.note()
            self._grow(grown, lease)
            base = self._store.reads.base_height()
            if base > self._first:
                self._history.fill(base - 1, self._first, filled)
            self._history.retry(at_once=True)
            comparison.compare(self._store.reads.base_height())
            self._fetch_genesis()
        return self._store.reads.base_height(), self._store.reads.latest_height()

    def _grow(self, grown: Progress, lease: Lease) -> None:
        """Append the blocks up to the last one, including those without results.

        Wait for blocks whose time is ahead of this machine's clock.
        """
        deadline = self._upstreams.deadline()
        with closing(self._growth):
            while (height := self._store.reads.latest_height()) < self._last:
                try:
                    self._growth.extend(self._last, grown, lease)
                except HeaderAhead as error:
                    if self._store.reads.latest_height() > height:
                        deadline = self._upstreams.deadline()
                    self._upstreams.wait(error, deadline)
                except (UpstreamRefused, UpstreamUnavailable) as error:
                    if not self._growth.may_step_over(error):
                        raise
                    if reason := self._growth.step_over(lease):
                        self._history.gaps.note(
                            self._store.reads.latest_height(), RESULTS, reason
                        )
                    grown(1)

    @contextmanager
    def _comparison(self) -> Iterator[Comparison]:
        """Compare samples of the results with those of other nodes, in a thread, during this
        context."""
        ended = threading.Event()
        comparison = Comparison(self._store, self._upstreams, ended)
        comparison.start()
        try:
            yield comparison
        finally:
            ended.set()
            comparison.close()

    def _fetch_genesis(self) -> None:
        try:
            fetch_genesis(self._store, self._upstreams)
        except (UpstreamError, Busy) as error:
            log.warning("the genesis document is not stored: %s", error)
