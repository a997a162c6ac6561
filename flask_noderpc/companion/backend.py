"""``CompanionBackend``: serves a followed chain from a store, and forwards other calls to
nodes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import cached_property, partial
from typing import Any, TypeVar

from ..backends.base.application import ApplicationAccess
from ..backends.base.backend import ChainBackend
from ..backends.base.capabilities import FORWARDED_CALLS, Capability, Mempool
from ..backends.base.evidence import EvidencePool
from ..backends.base.filters import Filters
from ..backends.base.health import Health
from ..backends.sql.store import ChainStore
from ..domain.network import BackfillProgress
from ..signals import emit, results_refuted
from . import shared_state
from .agreement import check_chain
from .chain_health import CompanionHealth
from .evm import ForwardedEvm
from .follower import Follower, FollowOptions
from .forward import (
    ForwardedApplication,
    ForwardedEvidence,
    ForwardedMempool,
    ForwardedNetwork,
)
from .forward_pool import ForwardUpstreams, Reserve
from .pool import Upstreams
from .reads import CompanionReads

T = TypeVar("T")


class CompanionBackend(ChainBackend):
    """A backend that serves the chain of running nodes.

    Blocks, results and searches are read from ``store``; mempool, application and network are
    read from the nodes. ``connect`` returns the upstreams to follow, ``connect_forward`` the
    upstreams for calls of clients, and ``connect_evm`` a client of their EVM JSON-RPC. Only
    the following process calls :meth:`follow`; serving processes only read.
    """

    def __init__(
        self,
        store: ChainStore,
        connect: Callable[[], Upstreams],
        connect_forward: Callable[[], ForwardUpstreams],
        options: FollowOptions,
        connect_evm: Callable[[], ForwardedEvm] | None = None,
    ) -> None:
        super().__init__(
            CompanionReads(
                store,
                lambda: self._forward,
                options,
                # Use a lambda, as reading the property ``network`` makes the upstreams.
                lambda: self.network.last_error(),  # noqa: PLW0108
            )
        )
        self.store = store
        """Store into which the chain is followed."""
        self._connect, self._connect_forward = connect, connect_forward
        self._connect_evm, self._options = connect_evm, options
        self.reserve: Reserve = nullcontext
        """Function that returns a context in which a server thread waits for a node."""
        self._start_lock = threading.Lock()
        self._started_pid = 0
        self._follower: Follower | None = None

    # Capabilities whose calls are forwarded to the nodes.

    @cached_property
    def _forward(self) -> Upstreams:
        upstreams = self._connect_forward()
        upstreams.check = partial(check_chain, self.store, self._options.fetch.chain_id)
        upstreams.reserve, upstreams.refused_elsewhere = self.reserve, self._refused
        return upstreams

    def _refused(self) -> dict[str, str]:
        # The store is created when a node first reports its chain; before, nothing is
        # recorded.
        return shared_state.refused_upstreams(self.store) if self.store.is_made() else {}

    @cached_property
    def mempool(self) -> Mempool:
        return ForwardedMempool(self._forward)

    @cached_property
    def evidence(self) -> EvidencePool:
        return ForwardedEvidence(self._forward)

    @cached_property
    def application(self) -> ApplicationAccess:
        return ForwardedApplication(self._forward, self.reads.latest_height)

    @cached_property
    def network(self) -> ForwardedNetwork:
        return ForwardedNetwork(
            self.reads.chain_id,
            self._forward,
            self.reads.latest_height,
            self._options.head_delay,
        )

    @property
    def filters(self) -> Filters:
        return self.store.filters

    @property
    def capabilities(self) -> Mapping[Capability[Any], Any]:
        forwarded = {FORWARDED_CALLS: self._evm} if self._connect_evm else {}
        return {**self.store.capabilities, **forwarded}

    @cached_property
    def _evm(self) -> ForwardedEvm:
        assert self._connect_evm is not None
        nodes = self._connect_evm()
        nodes.reserve, nodes.known_block = self.reserve, self._latest_block
        return nodes

    def _latest_block(self) -> tuple[int, bytes] | None:
        height = self.reads.latest_height()
        return (height, self.reads.hash_at(height)) if height else None

    # Start and end.

    def follow(self) -> None:
        with self._start_lock:
            if self._started_pid != os.getpid():
                self._follower = Follower(
                    self.store, self._connect(), self._options, self._emit_refuted
                )
                self._follower.start()
                self._started_pid = os.getpid()

    def backfill_progress(self) -> BackfillProgress | None:
        return shared_state.backfill(self.store)

    def _emit_refuted(self, height: int) -> None:
        emit(results_refuted, self, height=height)

    @property
    def health(self) -> Health:
        return CompanionHealth(self.store, self.network)

    def has_all_rounds(self) -> bool:
        return False

    def awaits_first_block(self) -> bool:
        """Return true until the first block is stored, unless an error prevents that."""
        return self.reads.latest_height() == 0 and not self.store.lease_state().last_error

    def close(self) -> None:
        """Stop following the chain, and close connections and files."""
        with self._start_lock:
            follower, self._follower = self._follower, None
            if follower is not None and self._started_pid == os.getpid():
                follower.stop()
            self._started_pid = 0
            forward = self.__dict__.pop("_forward", None)
            if forward is not None:
                forward.close()
            for name in (
                "network",
                "application",
                "mempool",
                "evidence",
            ):
                self.__dict__.pop(name, None)
            evm = self.__dict__.pop("_evm", None)
            if evm is not None:
                evm.close()
            super().close()
            self.store.close()
