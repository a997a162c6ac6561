"""Chain source for NODERPC_UPSTREAM: a mount serves the chain of other nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from ..backends import open_store
from ..backends.base.location import location_of
from ..chain.source import MAX_AUTO_WORKERS, ChainSource, Process, worker_count
from ..errors import InvalidSetting
from ..web.threads import reserve_request_thread
from .address import Address
from .backend import CompanionBackend
from .from_settings import check_settings, companion_from_settings, dialect_of_upstream
from .settings import CompanionSettings
from .watch import CompanionWatch


class FollowedChain(ChainSource):
    """The chain of other nodes, which one process follows into a store and all processes
    serve."""

    def check(self) -> None:
        """Raise ``ConfigurationError`` for settings of an embedded chain, for invalid URLs, and
        for a store of another chain."""
        self._check_evm()
        check_settings(self.settings, location_of(self.path))

    def _check_evm(self) -> None:
        settings = self.settings
        own = settings.of(CompanionSettings)
        if own.evm_upstream and not (own.upstream and settings.value("json_rpc_enable")):
            raise InvalidSetting(
                "NODERPC_EVM_UPSTREAM: expected NODERPC_UPSTREAM and NODERPC_JSON_RPC_ENABLE to"
                " be set, too; set both, or remove it"
            )

    def backend(self) -> CompanionBackend:
        """Return a companion that reserves a thread of the server while it waits for a node."""
        self._check_evm()
        companion = companion_from_settings(self.settings, self.path)
        companion.reserve = partial(reserve_request_thread, self.settings.server_threads)
        return companion

    def dialect(self) -> str:
        """Return the name of the nodes' dialect."""
        self._check_evm()
        return dialect_of_upstream(self.settings, self.path)

    def description(self) -> str:
        """Return a text for the startup message that names the nodes."""
        return f"followed at {', '.join(self.nodes())}"

    def nodes(self) -> Sequence[str]:
        """Return the names of the nodes of NODERPC_UPSTREAM."""
        return [Address.parse(url).name for url in self.settings.of(CompanionSettings).upstream]

    def processes(self) -> Iterator[Process]:
        """Yield the process that follows the chain, then the serving processes, each with its
        share of the limits on requests to the nodes.

        The following process serves no requests, as its work would delay responses.
        """
        workers, following = self._workers(), int(self.settings.produce)
        counts = self._requests_in_flight(workers)
        if following:
            yield Process(serves=False, settings=self._budget(2, next(counts)))
        for count in counts:
            yield Process(settings=self._budget(workers * (1 + following), count))

    def _budget(self, share: int, concurrency: int) -> Mapping[str, Any]:
        """Return settings for a process: 1/``share`` of the rate, and its ``concurrency``."""
        return {
            "upstream_rate": self.settings.of(CompanionSettings).upstream_rate / share,
            "upstream_concurrency": concurrency,
        }

    def _workers(self) -> int:
        """Return the number of serving processes; ``auto`` is at most the number for which
        each process has a request in flight."""
        following = int(self.settings.produce)
        others = self.settings.of(CompanionSettings).upstream_concurrency - following
        return worker_count(self.settings, max(1, min(MAX_AUTO_WORKERS, others)))

    def _requests_in_flight(self, workers: int) -> Iterator[int]:
        """Yield the maximum number of requests in flight of the following process and of each
        worker.

        The sum is NODERPC_UPSTREAM_CONCURRENCY. The following process gets half of it, or less
        if a worker would otherwise get none.
        """
        total = self.settings.of(CompanionSettings).upstream_concurrency
        following = int(self.settings.produce)
        if total < workers + following:
            raise InvalidSetting(
                f"--upstream-concurrency: expected at least {workers + following}, one request"
                f" in flight for each process, got {total}; raise it"
                " (NODERPC_UPSTREAM_CONCURRENCY), or lower --workers"
            )
        of_follower = following * max(1, min(total // 2, total - workers))
        if following:
            yield of_follower
        each, rest = divmod(total - of_follower, workers)
        for number in range(workers):
            yield each + (number < rest)

    @contextmanager
    def watch(
        self, dialect: str, *, has_bars: bool
    ) -> Iterator[Callable[[], Mapping[str, Any]]]:
        """Yield a function that shows the backfill's progress and returns changed settings:
        the nodes' dialect after an upgrade."""
        store = open_store(self.path, read_only=True)
        is_pinned = bool(self.settings.of(CompanionSettings).upstream_dialect)
        watch = CompanionWatch(store, "" if is_pinned else dialect, has_bars=has_bars)
        try:
            yield watch.changes
        finally:
            watch.close()
