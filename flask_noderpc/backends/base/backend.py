"""Backend that the routes use: a chain that they read, and optional capabilities.

The author of a read-only backend implements the abstract methods of
:class:`~flask_noderpc.backends.base.reads.ChainReads`. Everything else a backend can do is an
object of its own with a refusing default, which a subclass replaces.
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
    """A backend of a mount: it has the reads of a chain, and capabilities."""

    def __init__(self, reads: ChainReads) -> None:
        if not isinstance(reads, ChainReads):
            raise ConfigurationError(f"reads is {short_repr(reads)}: a ChainReads is needed")
        self.reads = reads
        """The chain, as the routes read it."""

    # Capabilities, each built once.

    @cached_property
    def mempool(self) -> Mempool:
        """Pending transactions; by default there are none."""
        return Mempool()

    @cached_property
    def evidence(self) -> EvidencePool:
        """Pending evidence; by default there is none."""
        return EvidencePool()

    @property
    def application(self) -> ApplicationAccess:
        """The application behind the chain; by default there is none."""
        return _NO_APPLICATION

    @cached_property
    def network(self) -> Network:
        """The node and its peers; by default a node without peers."""
        return Network(self.reads.chain_id)

    @property
    def filters(self) -> Filters:
        """Polled filters; by default those of this process in memory."""
        # Of several threads that come first together, one's object is stored.
        stored: dict[str, MemoryFilters] = self.__dict__
        return stored.setdefault("_memory_filters", MemoryFilters())

    @property
    def control(self) -> Control:
        """Development control; raise :exc:`~flask_noderpc.errors.NotSupported` without it."""
        raise no_control()

    @property
    def capabilities(self) -> Mapping[Capability[Any], Any]:
        """What else the backend can do, by keys, some of which features define; by default
        nothing."""
        return {}

    # Helpers.

    def chain_time(self) -> int:
        """Return the time of the chain's clock in nanoseconds since 1970; by default the
        machine's."""
        return time.time_ns()

    @property
    def health(self) -> Health:
        """Health of what the chain depends on; by default that its height can be read."""
        return Health()

    def backfill_progress(self) -> BackfillProgress | None:
        """Return the progress of a backfill from other nodes; by default there is none."""
        return None

    # Lifecycle.

    def start(self) -> None:
        """Begin what runs beside the calls, unless it has begun in this process.

        Called before every call, so it is quick when there is nothing to do.
        """

    def follow(self) -> None:
        """Follow the chain of other nodes in threads, as soon as no other process does.

        A process that serves nothing calls it. By default no other nodes are followed.
        """

    def check_ready(self) -> None:
        """Raise :exc:`~flask_noderpc.errors.BackendError` if calls can't be answered, or
        :attr:`health` has a problem."""
        self.reads.latest_height()
        if problem := self.health.problem():
            raise NotReady(problem)

    def check_disk_space(self) -> None:
        """Raise :exc:`~flask_noderpc.errors.BackendError` if the store is full and can
        commit no block; the default never raises."""

    def has_all_rounds(self) -> bool:
        """Return true if all rounds of consensus made a block, so that none timed out."""
        return True

    def awaits_first_block(self) -> bool:
        """Return true if the first block is to come, and is made without a transaction."""
        return False

    def close(self) -> None:
        """Close files and stop threads; the next call opens them again."""
        self.reads.close()


_NO_APPLICATION = ApplicationAccess()
