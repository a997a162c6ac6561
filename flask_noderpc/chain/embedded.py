"""A whole chain in one SQLite file: store, application, home and producer."""

from __future__ import annotations

import logging
import os
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ..backends.base.application import Application, AppState, InitChain
from ..backends.base.control import Control
from ..backends.base.identity import check_identity
from ..backends.base.store import FULL
from ..backends.sqlite import MempoolLimits, SQLiteBackend
from ..concurrency import is_patched_late
from ..domain.block import Evidence
from ..domain.genesis import Genesis
from ..domain.network import NodeInfo, NodeOther, ProtocolVersion
from ..errors import ConfigurationError, NotReady, StoreError
from . import home as node_home
from .applications.kvstore import KVStore
from .block_scheduler import BlockSchedule, BlockScheduler
from .clock import Clock, ShiftedClock, SystemClock
from .control import DevControl
from .producer import Producer
from .readiness import not_producing_reason
from .replay import replay

log = logging.getLogger("flask_noderpc.chain")

# CometBFT: the channels that a full node speaks.
_CHANNELS = bytes.fromhex("40202122233038606100")
# A block's transaction takes some pages at least.
_MIN_FREE_BYTES = 1 << 16


class EmbeddedChain(SQLiteBackend):
    """A :class:`SQLiteBackend` that makes its own blocks.

    ``chain_id`` and ``app_state`` are for the genesis that it writes where there is none;
    ``began`` is told of the one that there is, once in each process.
    Nothing is opened before :meth:`start` or the first call. With ``produce=False`` this
    process makes no block by itself; :meth:`produce` still makes one by hand. With ``dev``
    the chain can be driven by hand. ``retain_blocks`` is how many of the latest blocks are
    kept; all when not given.
    """

    def __init__(  # noqa: PLR0913  # keywords, each with a default
        self,
        database: str | os.PathLike[str],
        *,
        home: str | os.PathLike[str] | None = None,
        application: Callable[[AppState], Application] = KVStore,
        chain_id: str | None = None,
        app_state: bytes = b"",
        began: Callable[[Genesis], None] | None = None,
        moniker: str = "flask-noderpc",
        rpc_address: str = "tcp://127.0.0.1:26657",
        clock: Clock | None = None,
        schedule: BlockSchedule | None = None,
        produce: bool = True,
        limits: MempoolLimits | None = None,
        max_pages: int | None = None,
        poll_s: float = 0.05,
        dev: bool = False,
        retain_blocks: int | None = None,
    ) -> None:
        super().__init__(
            database,
            application=application,
            limits=limits,
            max_pages=max_pages,
            poll_s=poll_s,
        )
        self.home = Path(home) if home is not None else self._store.folder
        self.clock = clock or SystemClock()
        self._control: DevControl | None = None
        if dev:
            self.clock = shifted = ShiftedClock(self.clock)
            self._control = DevControl(self, self, shifted)
        self._genesis_chain_id = chain_id
        self._genesis_app_state = app_state
        self._began = began
        self._moniker = moniker
        self.rpc_address = rpc_address
        """What ``status`` shows as the address of the RPC."""
        self._block_schedule = schedule or BlockSchedule()
        least = self.application.needs_blocks if self.application else 1
        if retain_blocks is not None and retain_blocks < least:
            raise ConfigurationError(
                f"NODERPC_RETAIN_BLOCKS = {retain_blocks}: the application needs {least}"
            )
        self.retain_blocks = retain_blocks
        self._produces = produce
        self._starting = threading.Lock()
        self._started_in = 0
        self._block_scheduler: BlockScheduler | None = None
        self._is_copy = False

    def start(self) -> None:
        """Open the store and the home, making what is missing, and begin to produce.

        Does nothing in a process where it was done. Raise
        :exc:`~flask_noderpc.errors.ConfigurationError` or
        :exc:`~flask_noderpc.errors.StoreError`.
        """
        if self._started_in != os.getpid():
            with self._starting:
                if self._started_in != os.getpid():
                    self._begin()
                    self._started_in = os.getpid()

    def _begin(self) -> None:
        if is_patched_late():
            log.warning(
                "gevent patched the standard library after this package was imported, and"
                " requests may stop each other for ever: call gevent.monkey.patch_all() first,"
                " with gunicorn --preload in its configuration file"
            )
        self._check_identity()
        self._is_copy = self._is_read_only_copy()
        if self._is_copy:
            if node_home.exists(self.home):
                self._set_node_info(node_home.load(self.home, self.clock.now()))
            return
        home = self.open_home()
        self.init_chain(home.genesis, self._initial_state(home.genesis))
        replay(self, self._app())
        self._set_node_info(home)
        if self._began is not None:
            self._began(home.genesis)
        producer = Producer(
            self,
            self._app(),
            home.validator_keys,
            self.clock,
            self._block_schedule.lease_s,
            timely=self._control is not None,
            retain=self.retain_blocks,
        )
        self._block_scheduler = BlockScheduler(producer, self, self._block_schedule)
        if self._produces:
            self._block_scheduler.start()

    def _check_identity(self) -> None:
        stored = self.identity()
        if stored is not None:
            check_identity(stored, self._store.shown, self._app().name, self._genesis_chain_id)

    def _is_read_only_copy(self) -> bool:
        """Whether this is a copy to read from, which needs no keys."""
        if self._store.read_only:
            return True
        return not self._produces and self.has_chain() and not node_home.exists(self.home)

    def _initial_state(self, genesis: Genesis) -> InitChain:
        # ABCI: an application that has kept blocks is not told of the genesis again.
        if self.latest_height() and self._app().info().last_block_height:
            return InitChain()
        return self._app().init_chain(genesis)

    def prove_blocks(self) -> None:
        """Have each new hash of the application's state in a block, from :meth:`start` on."""
        self._block_schedule = replace(self._block_schedule, proof_blocks=True)

    def open_home(self) -> node_home.Home:
        """Genesis and keys, written where they are missing; raise ``ConfigurationError``."""
        # In this order: another process may be making both, the home before the chain.
        if self.has_chain() and not node_home.exists(self.home):
            raise ConfigurationError(
                f"{self._store.shown} holds a chain, and its keys are not in"
                f" {self.home}/config: point NODERPC_HOME at them, or NODERPC_DATABASE at a"
                " new file"
            )
        return node_home.create(
            self.home, self._genesis_chain_id, self.clock.now(), self._genesis_app_state
        )

    def _set_node_info(self, home: node_home.Home) -> None:
        """Fill in the node's card from its keys and its application."""
        self.own_key = home.validator_keys[0].public
        self.node = NodeInfo(
            id=home.node_key.address,
            network=home.genesis.chain_id,
            moniker=self._moniker,
            protocol_version=ProtocolVersion(app=self._app().info().app_version),
            listen_addr="tcp://0.0.0.0:26656",
            channels=_CHANNELS,
            other=NodeOther(rpc_address=self.rpc_address),
        )

    def produce(self, evidence: tuple[Evidence, ...] = ()) -> int:
        """Make one block by hand; its height. Raise as :meth:`Producer.produce` does."""
        self.settle()
        return self.block_scheduler().producer.produce(evidence)

    def block_scheduler(self) -> BlockScheduler:
        """What has the blocks made; raise :exc:`~flask_noderpc.errors.StoreError`."""
        self.start()
        if self._block_scheduler is None:
            raise StoreError(
                "no block is made here: it is read-only, or has no keys", self.path
            )
        return self._block_scheduler

    def check_ready(self) -> None:
        """Raise as the base does; nobody makes blocks of a copy."""
        super().check_ready()
        if not self._is_copy:
            # The lease's times are those of the system, whatever the chain's clock says.
            reason = not_producing_reason(
                self.lease_state(), self._block_scheduler, time.time_ns()
            )
            if reason:
                raise NotReady(reason)

    def check_room(self) -> None:
        """Raise :exc:`~flask_noderpc.errors.StoreError` where blocks can't be written, here
        or by the process that makes them."""
        if self._is_copy:
            return
        own = self._block_scheduler.complaint if self._block_scheduler else ""
        complaint = own or self.lease_state().last_error
        if complaint.startswith(FULL):
            raise StoreError(complaint, self.path)
        # The producer of another process may have no room to write why it makes no block.
        if shutil.disk_usage(self._store.folder).free < _MIN_FREE_BYTES:
            raise StoreError(FULL, self.path)

    def awaits_first_block(self) -> bool:
        """As the base; not while something keeps it from being made."""
        if self._is_copy or not self._block_schedule.begins_alone or self.latest_height():
            return False
        return not not_producing_reason(
            self.lease_state(), self._block_scheduler, time.time_ns()
        )

    def control(self) -> Control:
        """What drives a chain of tests."""
        return super().control() if self._control is None else self._control

    def chain_time(self) -> int:
        """Return the time of the chain's clock, which a development chain may have shifted."""
        return self.clock.now()

    def close(self) -> None:
        """Stop producing, give the lease back, and close the files."""
        with self._starting:
            block_scheduler, self._block_scheduler = self._block_scheduler, None
            if block_scheduler is not None and self._started_in == os.getpid():
                block_scheduler.stop()
            self._started_in = 0
            super().close()
