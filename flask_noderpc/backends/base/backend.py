"""Backend that the routes read: a few required reads, and optional capabilities.

The author of a read-only backend implements the abstract methods of
:class:`~flask_noderpc.backends.base.reads.ChainReads`. Everything else a backend can do is an
object of its own with a refusing default, which a backend replaces.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from ...domain.block import Evidence, LightClientAttackEvidence
from ...domain.genesis import GenesisSource
from ...domain.network import BackfillProgress
from ...domain.validator import ED25519, PublicKey, Validator
from ...errors import GenesisNotAvailable, NotFound, NotReady
from .application import ApplicationAccess
from .capabilities import (
    Capability,
    Control,
    Mempool,
    Network,
    no_control,
)
from .evidence import EvidencePool
from .filters import Clock, Filters, MemoryFilters
from .health import Health
from .reads import SearchedChain


class ChainBackend(SearchedChain):
    """A chain that the routes read, with its capabilities."""

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
        return Network(self.chain_id)

    @property
    def filters(self) -> Filters:
        """Polled filters; by default those of this process in memory."""
        # Of several threads that come first together, one's object is stored.
        stored: dict[str, MemoryFilters] = self.__dict__
        return stored.setdefault("_memory_filters", MemoryFilters(self.filter_clock))

    filter_clock: Clock = time.time_ns
    """Clock of the filters' deadlines."""

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

    def reorgs_since(self, number: int) -> tuple[int, int | None]:
        """Return the number of the last reorg, and the lowest height left since reorg
        ``number``; ``None`` where there was none."""
        return number, None

    def refuted_since(self, number: int) -> tuple[int, tuple[int, ...]]:
        """Return the number of refutations of results, and the heights of those after number
        ``number``; by default results are final."""
        return number, ()

    def genesis_source(self) -> GenesisSource | None:
        """Return where the chunks of the genesis document are from, if they are stored as
        another node sent them; by default they are not."""
        return None

    def genesis_chunk(self, number: int) -> bytes:
        """Return such a chunk; raise :exc:`~flask_noderpc.errors.GenesisNotAvailable`."""
        raise GenesisNotAvailable

    @property
    def health(self) -> Health:
        """Health of what the chain depends on; by default nothing but :meth:`latest_height`."""
        return Health()

    def backfill_progress(self) -> BackfillProgress | None:
        """Return the progress of a backfill from other nodes; by default there is none."""
        return None

    def byzantine_validators(self, evidence: Evidence) -> tuple[Validator, ...]:
        """The validators that a piece of evidence accuses, as they were at its height."""
        if isinstance(evidence, LightClientAttackEvidence):
            return evidence.byzantine_validators
        address = evidence.vote_a.validator_address
        try:
            known = self.validators(evidence.height).by_address.get(address)
        except NotFound:
            known = None
        # Where that set was pruned, the address is all that is known.
        unknown = Validator(address, PublicKey(ED25519, b""), evidence.validator_power)
        return (known[1] if known else unknown,)

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
        self.latest_height()
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


_NO_APPLICATION = ApplicationAccess()
