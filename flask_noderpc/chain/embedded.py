"""``EmbeddedChain``: a chain with a store, an application, a home folder and a block
producer."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from ..backends import open_store
from ..backends.base.application import Application, ApplicationAccess, AppState
from ..backends.base.backend import ChainBackend
from ..backends.base.capabilities import Capability, Control, Mempool, MempoolLimits
from ..backends.base.evidence import EvidencePool
from ..backends.base.filters import Filters
from ..backends.base.health import Health
from ..backends.base.location import check_identity
from ..backends.sql.store import ChainStore
from ..concurrency import is_patched_late
from ..domain.block import Evidence
from ..domain.genesis import Genesis
from ..domain.network import NodeInfo, NodeOther, ProtocolVersion
from ..errors import FULL, InvalidSetting, StoreError
from . import home as node_home
from .applications.kvstore import KVStore
from .batch_state import BatchState
from .beginning import begin, open_home
from .block_scheduler import BlockSchedule, BlockScheduler, ChainHealth
from .clock import Clock, ShiftedClock, SystemClock
from .control import DevControl
from .producer import Producer
from .proposal import replay
from .signer import Signer, StoredChain

log = logging.getLogger("flask_noderpc.chain")

# Channels of a full node of CometBFT, for node_info.
_CHANNELS = bytes.fromhex("40202122233038606100")


class EmbeddedChain(ChainBackend):
    """Backend that produces its own blocks in a store.

    ``database`` is a :class:`~flask_noderpc.backends.sql.store.ChainStore`, or the file name
    or URL of one, which is opened with ``limits``, ``max_pages``, ``poll_s`` and
    ``read_database``. ``application`` is a function that creates the application from its
    committed state; it is not called if the given store has an application already. ``home`` is
    the folder of the keys and the genesis document, by default the store's folder.

    ``chain_id`` and ``app_state`` are written to a new genesis document; ``dialect`` names the
    version of CometBFT by whose rules the document is read, such as ``comet-0.38``.
    ``on_start`` is called with the chain's genesis once in each process. Files are opened by
    :meth:`start` or the first call. ``schedule`` sets when blocks are produced; with
    ``produce=False`` this process only produces blocks when :meth:`produce` is called. With
    ``dev`` the chain has a ``control``, which sets its clock and produces blocks.
    ``retain_blocks`` is the number of latest blocks to
    retain; by default all blocks are retained. With ``development_keys`` or ``dev``, the
    validator key of a new home may sign a height twice; if the store has lost blocks that such
    a key signed, ``accept_loss`` lets the chain continue without them.
    """

    def __init__(  # noqa: PLR0913  # keywords, each with a default
        self,
        database: str | os.PathLike[str] | ChainStore,
        *,
        home: str | os.PathLike[str] | None = None,
        application: Callable[[AppState], Application] = KVStore,
        chain_id: str | None = None,
        app_state: bytes = b"",
        dialect: str = "",
        on_start: Callable[[Genesis], None] | None = None,
        moniker: str = "flask-noderpc",
        rpc_address: str = "tcp://127.0.0.1:26657",
        clock: Clock | None = None,
        schedule: BlockSchedule | None = None,
        produce: bool = True,
        limits: MempoolLimits | None = None,
        max_pages: int | None = None,
        poll_s: float = 0.05,
        read_database: str | None = None,
        dev: bool = False,
        retain_blocks: int | None = None,
        development_keys: bool = False,
        accept_loss: bool = False,
    ) -> None:
        if not isinstance(database, ChainStore):
            database = open_store(
                database,
                limits=limits,
                max_pages=max_pages,
                poll_s=poll_s,
                read_database=read_database,
            )
        super().__init__(database.reads)
        self.store = database
        """Store of the chain: blocks, index, state and mempool."""
        state = BatchState(database.app_state)
        self._batch_state = state if database.abci is None else None
        self._app = database.abci or application(state)
        database.abci = self._app
        folder = home if home is not None else database.location.folder
        if folder is None:
            raise InvalidSetting(
                "NODERPC_HOME (home=): expected a folder for the keys of a chain whose store is"
                " not a file, got nothing; set it"
            )
        self.home = Path(folder)
        self.clock = clock or SystemClock()
        self._control: DevControl | None = None
        self._has_development_keys = development_keys or dev
        self._accept_loss = accept_loss
        if dev:
            self.clock = shifted = ShiftedClock(self.clock)
            self._control = DevControl(self.store, self, shifted)
        self._genesis_chain_id = chain_id
        self._genesis_app_state = app_state
        self._dialect = dialect
        self._on_start = on_start
        self._moniker = moniker
        self.rpc_address = rpc_address
        """RPC address that ``status`` shows."""
        self._block_schedule = schedule or BlockSchedule()
        min_blocks = self._app.needs_blocks
        if retain_blocks is not None and retain_blocks < min_blocks:
            raise InvalidSetting(
                f"NODERPC_RETAIN_BLOCKS: expected at least {min_blocks}, as the application"
                f" needs, got {retain_blocks}"
            )
        self.retain_blocks = retain_blocks
        self._produces = produce
        self._start_lock = threading.Lock()
        self._started_pid = 0
        self._block_scheduler: BlockScheduler | None = None
        self._prepare_keys: Callable[[], None] | None = None
        self._is_copy = False

    @cached_property
    def mempool(self) -> Mempool:
        return self.store.mempool

    @cached_property
    def evidence(self) -> EvidencePool:
        return self.store.evidence

    @property
    def filters(self) -> Filters:
        return self.store.filters

    @property
    def application(self) -> ApplicationAccess:
        return self._app

    @property
    def capabilities(self) -> Mapping[Capability[Any], Any]:
        return self.store.capabilities

    @property
    def _shown(self) -> str:
        return self.store.location.display_name

    def start(self) -> None:
        """Open or create the store and the home, and start producing blocks.

        Do nothing if this process has already started the chain. Raise
        :exc:`~flask_noderpc.errors.ConfigurationError` or
        :exc:`~flask_noderpc.errors.StoreError`.
        """
        if self._started_pid != os.getpid():
            with self._start_lock:
                if self._started_pid != os.getpid():
                    self._start()
                    self._started_pid = os.getpid()

    def _start(self) -> None:
        if is_patched_late():
            log.warning(
                "gevent patched the standard library after this package was imported, so that"
                " requests may block each other forever: call gevent.monkey.patch_all() first,"
                " with gunicorn --preload in its configuration file"
            )
        self._check_identity()
        self._is_copy = self._is_read_only_copy()
        if self._is_copy:
            if node_home.has_genesis(self.home):
                self._set_node_info(node_home.load(self.home, self.clock.now(), self._dialect))
            return
        home = self.open_home()
        signer = Signer(home.keys)
        self._guard_keys(signer, home.genesis)
        home = self._begin(home)
        if self._control is not None and self._app.keeps_chain_time:
            self._control.continue_time(home.genesis.genesis_time)
        replay(self.store.reads, self._app)
        self._set_node_info(home)
        if self._on_start is not None:
            self._on_start(home.genesis)
        producer = Producer(
            self.store,
            self._app,
            signer,
            self.clock,
            self._block_schedule.lease_s,
            sender=self,
            genesis_time=home.genesis.genesis_time,
            uses_clock_time=self._control is not None and signer.is_development,
            retain=self.retain_blocks,
            batch_state=self._batch_state,
        )
        self._block_scheduler = BlockScheduler(producer, self.store, self._block_schedule)
        if self._produces:
            if risk := self.store.risk_of_loss():
                log.warning("%s", risk)
            self._block_scheduler.start()

    def _begin(self, home: node_home.Home) -> node_home.Home:
        try:
            begin(self.store, self._app, home, self.home, produces=self._produces)
        except StoreError:
            # Read the home again, because another process may have begun the chain meanwhile,
            # with a genesis time of its own.
            home = self.open_home()
            begin(self.store, self._app, home, self.home, produces=self._produces)
        return home

    def _check_identity(self) -> None:
        stored = self.store.identity()
        if stored is not None:
            check_identity(stored, self._shown, self._app.name, self._genesis_chain_id)

    def _is_read_only_copy(self) -> bool:
        """Return true if the store is read-only, or if another host has the keys and produces
        the blocks."""
        if self.store.read_only:
            return True
        # If the store is on a database server, another host may have the keys.
        is_shared = self.store.location.folder is None
        if self._produces and not is_shared:
            return False
        is_without_keys = self.store.has_chain() and not node_home.has_genesis(self.home)
        if is_without_keys and self._produces:
            log.warning(
                "%s has no keys in %s/config: this host serves the chain and accepts"
                " transactions, while another host with the keys produces the blocks",
                self._shown,
                self.home,
            )
        return is_without_keys

    def prove_blocks(self) -> None:
        """Make the chain produce a block after each change of the app hash; to be called
        before the start."""
        self._block_schedule = replace(self._block_schedule, proof_blocks=True)

    def open_home(self) -> node_home.Home:
        """Return the genesis and keys in the home; create them if they are missing; raise
        ``ConfigurationError``."""
        new = node_home.NewChain(
            self._genesis_chain_id,
            self._genesis_app_state,
            self._dialect,
            self._has_development_keys,
            self._app.new_genesis,
        )
        home = open_home(self.store, self.home, self.clock, new)
        if self._control is None:
            return home
        return node_home.mark_old_development_key(
            self.home, home, self._genesis_app_state, has_blocks=self._has_own_blocks()
        )

    def _guard_keys(self, signer: Signer, genesis: Genesis) -> None:
        """Check the heights that our keys have signed against the store.

        A process that only serves a chain postpones the check until it has to produce a block.
        Raise :exc:`~flask_noderpc.errors.ConfigurationError` if a key must not sign.
        """
        stored_chain = partial(self._stored_chain, genesis, is_ours=self._has_own_chain())
        self._prepare_keys = partial(
            signer.prepare, stored_chain, accept_loss=self._accept_loss
        )
        # A process that only serves must check before it begins a chain: the process that
        # produces blocks would find the chain and take it for its own, even if a key's record
        # forbids it.
        if self._produces or not self.store.has_chain():
            self._check_keys()

    def _has_own_chain(self) -> bool:
        """Return true if an embedded chain of our application produced the stored blocks.

        The store of a followed or imported chain has no name of an application.
        """
        stored, app = self.store.identity(), self._app
        is_named = stored is not None and stored.application == app.name
        return is_named or bool(app.info().last_block_height)

    def _has_own_blocks(self) -> bool:
        return (
            self.store.has_chain()
            and not self.store.head().is_genesis
            and self._has_own_chain()
        )

    def _stored_chain(self, genesis: Genesis, *, is_ours: bool) -> StoredChain:
        """Return the heights that our keys have signed according to the store."""
        if not self.store.has_chain():
            before = genesis.initial_height - 1
            return StoredChain(self._shown, before, before, None)
        head = self.store.head()
        made = head if is_ours and not head.is_genesis else None
        return StoredChain(self._shown, head.height, head.height + 1, made)

    def _set_node_info(self, home: node_home.Home) -> None:
        """Set the node info from the home's keys and the application."""
        self.network.key = home.validator_keys[0].public
        self.network.info = NodeInfo(
            id=home.node_key.address,
            network=home.genesis.chain_id,
            moniker=self._moniker,
            protocol_version=ProtocolVersion(app=self._app.info().app_version),
            listen_addr="tcp://0.0.0.0:26656",
            channels=_CHANNELS,
            other=NodeOther(rpc_address=self.rpc_address),
        )

    def produce(self, evidence: tuple[Evidence, ...] = ()) -> int:
        """Produce one block and return its height; raise the errors of
        :meth:`Producer.produce`."""
        self.store.wait_until_stored()
        return self.block_scheduler().producer.produce(evidence)

    def block_scheduler(self) -> BlockScheduler:
        """Return the scheduler of a started chain.

        Raise :exc:`~flask_noderpc.errors.StoreError` if this process only reads the chain.
        """
        self.start()
        if self._block_scheduler is None:
            raise StoreError(
                "this process can't produce blocks: its store is read-only, or NODERPC_HOME has"
                " no keys of the chain",
                self.store.location.path,
            )
        self._check_keys()
        return self._block_scheduler

    def _check_keys(self) -> None:
        """If not done yet, check whether our keys may sign the next block; raise
        :exc:`~flask_noderpc.errors.ConfigurationError` if they may not."""
        if self._prepare_keys is not None:
            self._prepare_keys()
            self._prepare_keys = None

    @property
    def health(self) -> Health:
        if self._is_copy and (self.store.read_only or self.store.location.folder is not None):
            # A read-only copy gets no new blocks, so blocks are never late.
            return Health()
        return self._health()

    def _health(self) -> ChainHealth:
        return ChainHealth(
            self.store,
            self._block_schedule,
            self._block_scheduler,
            self.clock.now,
            is_timed=self._control is None,
        )

    def check_disk_space(self) -> None:
        """Raise :exc:`~flask_noderpc.errors.StoreError` if the disk has no space for a block.

        The error of another process that produces blocks is taken from the lease.
        """
        if self._is_copy:
            return
        scheduler_error = self._block_scheduler.last_error if self._block_scheduler else ""
        last_error = scheduler_error or self.store.lease_state().last_error
        if last_error.startswith(FULL):
            raise StoreError(last_error, self.store.location.path)
        # Check here as well, because the producing process may lack the space to store its
        # error.
        if not self.store.has_free_space():
            raise StoreError(FULL, self.store.location.path)

    def awaits_first_block(self) -> bool:
        """Return true if the first block is due without a transaction, and not produced yet;
        false if an error prevents that."""
        if (
            self._is_copy
            or not self._block_schedule.produces_first_block
            or self.reads.latest_height()
        ):
            return False
        scheduler = self._block_scheduler
        if scheduler is not None and scheduler.producer.reason_not_begun():
            return False
        return not self._health().not_producing()

    @property
    def control(self) -> Control:
        """Control of a development chain; raise :exc:`~flask_noderpc.errors.NotSupported` if
        the chain has no ``dev``."""
        return super().control if self._control is None else self._control

    def chain_time(self) -> int:
        """Return the time of the chain's clock, which may be shifted on a development chain."""
        return self.clock.now()

    def close(self) -> None:
        """Stop the block producer, release the lease, and close the files."""
        with self._start_lock:
            block_scheduler, self._block_scheduler = self._block_scheduler, None
            if block_scheduler is not None and self._started_pid == os.getpid():
                block_scheduler.stop()
            self._started_pid = 0
            self.store.close()
