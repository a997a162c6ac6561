"""Interface of backends, which the routes use: the reads of a chain, and optional
capabilities.

A read-only backend only has to implement the abstract methods of
:class:`~flask_noderpc.backends.base.reads.ChainReads`. Each other capability, such as the
mempool, is a separate object, whose default refuses every call; a subclass may replace it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from ...domain.network import BackfillProgress
from ...errors import ConfigurationError, NotReady, short_repr
from .application import ApplicationAccess
from .capabilities import (
    Capability,
    Control,
    Mempool,
    Network,
    no_control,
)
from .evidence import EvidencePool
from .filters import Filters, MemoryFilters
from .health import Health
from .reads import ChainReads


class ChainBackend:
    """Backend of a mount: the reads of a chain, and capabilities."""

    def __init__(self, reads: ChainReads) -> None:
        if not isinstance(reads, ChainReads):
            raise ConfigurationError(f"reads: expected a ChainReads, got {short_repr(reads)}")
        self.reads = reads
        """Reads of the chain that the routes use."""

    # Capabilities; each object is created once.

    @cached_property
    def mempool(self) -> Mempool:
        """Pending transactions; the default mempool refuses all."""
        return Mempool()

    @cached_property
    def evidence(self) -> EvidencePool:
        """Pending evidence; the default pool refuses all."""
        return EvidencePool()

    @property
    def application(self) -> ApplicationAccess:
        """Application behind the chain; the default refuses every call."""
        return _NO_APPLICATION

    @cached_property
    def network(self) -> Network:
        """Data of the node and its peers; the default is a node without peers."""
        return Network(self.reads.chain_id)

    @property
    def filters(self) -> Filters:
        """Filters that clients poll; by default stored in this process's memory."""
        # setdefault makes all threads use the same object, even if several create one.
        stored: dict[str, MemoryFilters] = self.__dict__
        return stored.setdefault("_memory_filters", MemoryFilters())

    @property
    def control(self) -> Control:
        """Development control; raise :exc:`~flask_noderpc.errors.NotSupported` if the chain has
        no such control."""
        raise no_control()

    @property
    def capabilities(self) -> Mapping[Capability[Any], Any]:
        """Further capabilities by key, some of which features define; empty by default."""
        return {}

    # Clock, health and backfill.

    def chain_time(self) -> int:
        """Return the time of the chain's clock in nanoseconds since 1970; by default the
        machine's time."""
        return time.time_ns()

    @property
    def health(self) -> Health:
        """Health of the services that the chain depends on; by default there are no such
        services."""
        return Health()

    def backfill_progress(self) -> BackfillProgress | None:
        """Return the progress of a backfill from other nodes; ``None`` by default."""
        return None

    # Start and stop.

    def start(self) -> None:
        """Start background work, unless it is already running in this process.

        Called before every request, so it must return quickly if there is nothing to do.
        """

    def follow(self) -> None:
        """Follow the chain of other nodes in background threads, once no other process follows
        it.

        Processes that serve no requests call this method. By default no other nodes are
        followed.
        """

    def check_ready(self) -> None:
        """Raise :exc:`~flask_noderpc.errors.BackendError` if the chain's height can't be read,
        or if :attr:`health` reports a problem."""
        self.reads.latest_height()
        if problem := self.health.problem():
            raise NotReady(problem)

    def check_disk_space(self) -> None:
        """Raise :exc:`~flask_noderpc.errors.BackendError` if the disk is full, so that no block
        can be committed; the default never raises."""

    def has_all_rounds(self) -> bool:
        """Return true if no consensus round so far timed out, which means that each one
        produced a block."""
        return True

    def awaits_first_block(self) -> bool:
        """Return true if the first block does not exist yet and will be produced without a
        transaction."""
        return False

    def close(self) -> None:
        """Close files and stop threads; the next call opens the files again."""
        self.reads.close()


_NO_APPLICATION = ApplicationAccess()
