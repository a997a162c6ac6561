"""Prometheus metrics, counted from the signals of :mod:`flask_noderpc.signals`.

The metrics are in ``prometheus_client``'s default registry, which an app may serve itself.
With ``PROMETHEUS_MULTIPROC_DIR``, values of all processes are combined.
"""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from flask import Response, request
from prometheus_client import (
    REGISTRY,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from .. import signals
from ..backends.base.backend import ChainBackend
from ..backends.base.health import Measure
from ..backends.base.reads import ChainReads
from ..backends.base.uptime import WINDOW, Uptime, uptimes
from ..domain.time import SECOND
from ..domain.validator import Validator
from ..errors import NodeRPCError
from ..lru import CacheMemory

_CALLS = Counter(
    "noderpc_calls", "Calls that got a response.", ["method", "outcome", "transport"]
)
_SECONDS = Histogram(
    "noderpc_call_seconds", "Seconds that calls took.", ["method", "transport"]
)
_WEBSOCKETS = Gauge("noderpc_websockets", "Open websockets.", multiprocess_mode="livesum")
_SUBSCRIPTIONS = Gauge(
    "noderpc_subscriptions", "Subscriptions of websockets.", multiprocess_mode="livesum"
)
_WAITING = Gauge(
    "noderpc_waiting_calls", "Calls that wait for a block.", multiprocess_mode="livesum"
)
_ASYNC_REFUSED = Counter(
    "noderpc_async_txs_refused",
    "Transactions that the store refused after broadcast_tx_async had responded.",
)
_HEIGHT = Gauge(
    "noderpc_height", "The latest height.", ["chain"], multiprocess_mode="mostrecent"
)
_LOWEST = Gauge(
    "noderpc_lowest_height",
    "Lowest height that has blocks, results or index entries (label of).",
    ["chain", "of"],
    multiprocess_mode="mostrecent",
)
_AGE = Gauge(
    "noderpc_block_age_seconds",
    "Seconds since the time of the newest block, by the clock of this machine.",
    ["chain"],
    multiprocess_mode="mostrecent",
)
_CACHE = Gauge("noderpc_cache_bytes", "Memory in caches.", multiprocess_mode="liveall")
_CACHE_LIMIT = Gauge(
    "noderpc_cache_limit_bytes",
    "Maximum memory in caches (NODERPC_CACHE_BYTES).",
    multiprocess_mode="liveall",
)
_MULTIPROCESS = "PROMETHEUS_MULTIPROC_DIR"


class _ResidentMemory(Collector):
    """Resident size of each process, on systems with ``/proc``."""

    def collect(self) -> Iterator[Metric]:
        """Yield the current sizes by process ID."""
        found = GaugeMetricFamily("noderpc_resident_bytes", "Resident memory.", labels=["pid"])
        for pid in _pids():
            with suppress(OSError):
                pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
                found.add_metric([pid], int(pages) * mmap.PAGESIZE)
        yield found


def _pids() -> list[str]:
    """Return the IDs of the processes whose metrics are reported together."""
    folder = os.environ.get(_MULTIPROCESS)
    if folder is None:
        return [str(os.getpid())]
    # Each running process has such a file; the supervisor removes it when a process ends.
    names = Path(folder).glob("gauge_liveall_*.db")
    return sorted(name.stem.rpartition("_")[2] for name in names)


class _Measures(Collector):
    """Latest measures that backends report in their health, by name and labels."""

    def __init__(self) -> None:
        self._last: dict[str, dict[tuple[tuple[str, str], ...], Measure]] = {}

    def show(self, measures: Iterable[Measure]) -> None:
        """Store these measures; a measure with the same name and labels is replaced."""
        for measure in measures:
            by_labels = self._last.setdefault(measure.name, {})
            by_labels[tuple(measure.labels.items())] = measure

    def collect(self) -> Iterator[Metric]:
        """Yield the latest values of each name."""
        for name, by_labels in list(self._last.items()):
            measures = list(by_labels.values())
            kind = CounterMetricFamily if measures[0].is_counter else GaugeMetricFamily
            found = kind(name, measures[0].doc, labels=[*measures[0].labels])
            for measure in measures:
                found.add_metric([*measure.labels.values()], measure.value)
            yield found


# Maximum number of validators with metrics: those with the most power.
_MAX_VALIDATORS = 200


class _Validators(Collector):
    """Voting power and missed blocks of the validators of each chain, at its latest height."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[int, list[tuple[Validator, Uptime | None]]]] = {}

    def show(self, reads: ChainReads) -> None:
        """Read the values of a chain, unless it has no new block."""
        chain_id, height = reads.chain_id(), reads.latest_height()
        if height and self._last.get(chain_id, (0, []))[0] != height:
            members = reads.validators(height).validators[:_MAX_VALIDATORS]
            found = uptimes(reads, height)
            self._last[chain_id] = height, [(each, found.get(each.address)) for each in members]

    def collect(self) -> Iterator[Metric]:
        """Yield both values of each validator."""
        labels = ["chain", "validator"]
        power = GaugeMetricFamily("noderpc_validator_power", "Voting power.", labels=labels)
        missed = GaugeMetricFamily(
            "noderpc_validator_missed_blocks",
            f"Blocks of the last {WINDOW} that the validator was to sign and did not.",
            labels=labels,
        )
        for chain_id, (_, members) in list(self._last.items()):
            for member, own in members:
                values = [chain_id, member.address.hex().upper()]
                power.add_metric(values, member.voting_power)
                if own is not None:
                    missed.add_metric(values, len(own.missed))
        yield from (power, missed)


_MEASURES = _Measures()
_VALIDATORS = _Validators()
# Collectors whose values cover all processes, so multiprocess mode must not combine them.
_COLLECTORS = (_ResidentMemory(), _MEASURES, _VALIDATORS)
for _collector in _COLLECTORS:
    REGISTRY.register(_collector)


def _count_call(
    sender: object, *, method: str, seconds: float, outcome: int, transport: str
) -> None:
    _CALLS.labels(method, outcome, transport).inc()
    _SECONDS.labels(method, transport).observe(seconds)


def _one_more_websocket(sender: object) -> None:
    _WEBSOCKETS.inc()


def _one_websocket_less(sender: object) -> None:
    _WEBSOCKETS.dec()


def _one_more_subscription(sender: object) -> None:
    _SUBSCRIPTIONS.inc()


def _one_subscription_less(sender: object, *, reason: str) -> None:
    _SUBSCRIPTIONS.dec()


def _one_async_tx_refused(sender: object, *, error: Exception) -> None:
    _ASYNC_REFUSED.inc()


def _one_more_waits(sender: object) -> None:
    _WAITING.inc()


def _one_waits_less(sender: object) -> None:
    _WAITING.dec()


def _show_cache(memory: CacheMemory) -> None:
    _CACHE.set(memory.used)
    _CACHE_LIMIT.set(memory.limit)


def count(backend: ChainBackend, memory: CacheMemory) -> None:
    """Connect the counters to a backend's signals; several calls for a backend count once."""
    memory.watch = _show_cache
    _show_cache(memory)
    for signal, receiver in (
        (signals.rpc_called, _count_call),
        (signals.websocket_opened, _one_more_websocket),
        (signals.websocket_closed, _one_websocket_less),
        (signals.subscription_opened, _one_more_subscription),
        (signals.subscription_closed, _one_subscription_less),
        (signals.async_tx_refused, _one_async_tx_refused),
        (signals.wait_began, _one_more_waits),
        (signals.wait_ended, _one_waits_less),
    ):
        signal.connect(receiver, sender=backend)


def page(backend: ChainBackend, memory: CacheMemory) -> Response:
    """Return the metrics page; it lacks heights and measures if the store can't be read."""
    with suppress(NodeRPCError):
        backend.start()
        _show_heights(backend)
        _MEASURES.show(backend.health.measures())
        _VALIDATORS.show(backend.reads)
    _show_cache(memory)
    registry = REGISTRY
    if _MULTIPROCESS in os.environ:
        registry = CollectorRegistry()
        MultiProcessCollector(registry)
        for each in _COLLECTORS:
            registry.register(each)
    encode, content_type = _encoder(request.headers.get("Accept", ""))
    return Response(encode(registry), headers={"Vary": "Accept"}, content_type=content_type)


def _show_heights(backend: ChainBackend) -> None:
    chain_id = backend.reads.chain_id()
    height = backend.reads.latest_height()
    _HEIGHT.labels(chain_id).set(height)
    if height:
        newest = backend.reads.block_meta(height).header.time
        _AGE.labels(chain_id).set((time.time_ns() - newest) / SECOND)
    _LOWEST.labels(chain_id, "blocks").set(backend.reads.base_height())
    _LOWEST.labels(chain_id, "results").set(backend.reads.lowest_results())
    _LOWEST.labels(chain_id, "index").set(backend.reads.lowest_indexed())


def _encoder(accept: str) -> tuple[Callable[[CollectorRegistry], bytes], str]:
    """Return the encoder and the content type for an ``Accept`` header: OpenMetrics or
    Prometheus text."""
    try:
        return choose_encoder(accept)
    except (TypeError, ValueError):
        # The header has a version that is not a number.
        return choose_encoder("")
