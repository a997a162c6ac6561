"""Create an embedded chain from a mount's settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from ..backends.base.application import Application, AppState
from ..backends.base.capabilities import MempoolLimits
from ..backends.base.location import location_of
from ..domain.genesis import Genesis
from ..errors import ConfigurationError, InvalidSetting
from ..feature import application_kinds, load
from ..lru import CacheMemory
from ..settings import Settings
from .applications.kvstore import kvstore_of
from .applications.merkle_kvstore import MerkleKVStore
from .block_scheduler import AT_ONCE_S, BlockSchedule
from .comet_config import warn_of_ignored
from .embedded import EmbeddedChain
from .source import DevAccounts, dev_accounts_of

ApplicationFactory = Callable[[AppState], Application]


def kvstore(settings: Settings, path: str, memory: CacheMemory) -> ApplicationFactory:
    """Return a function that creates the application ``kvstore`` from its state."""
    return kvstore_of(settings.dialect)


def merkle(settings: Settings, path: str, memory: CacheMemory) -> ApplicationFactory:
    """Return a function that creates the application ``merkle`` from its state."""
    return MerkleKVStore


def application_named(
    name: str, settings: Settings, path: str, memory: CacheMemory
) -> ApplicationFactory:
    """Return a function that creates the application ``name`` from its state.

    ``path`` is the store's, and ``memory`` counts the bytes of caches. Raise
    :exc:`~flask_noderpc.errors.ConfigurationError` if a package of the application's extra is
    not installed.
    """
    try:
        # Load only this application's module, which may need the packages of an extra.
        from_settings = load(application_kinds()[name].make)
    except ModuleNotFoundError as error:
        raise ConfigurationError(f"NODERPC_APPLICATION = {name!r}: {error}") from None
    make: ApplicationFactory = from_settings(settings, path, memory)
    return make


def _on_start(
    settings: Settings, home: Path, accounts: DevAccounts | None, genesis: Genesis
) -> None:
    """Log warnings about the home's config.toml and the application's genesis, in the process
    that produces blocks, and the development accounts."""
    warn = application_kinds()[settings.application].warn
    if settings.produce:
        warn_of_ignored(home, settings)
        if warn and accounts is None:
            load(warn)(home, genesis)
    if accounts is not None:
        accounts.log(settings, genesis)


def _dev_accounts(settings: Settings) -> DevAccounts | None:
    """Return the accounts that NODERPC_DEV adds; ``None`` if it is not set."""
    if not settings.dev:
        return None
    found = dev_accounts_of(application_kinds()[settings.application])
    if found is None:
        having = [repr(name) for name, kind in application_kinds().items() if kind.dev_accounts]
        cure = f"set it to {' or '.join(having)}, or" if having else "set"
        raise InvalidSetting(
            "NODERPC_DEV: expected an application with funded accounts, got"
            f" NODERPC_APPLICATION = {settings.application!r}; {cure} NODERPC_DEV to false"
        )
    return found


def _block_schedule(settings: Settings) -> BlockSchedule:
    schedule = BlockSchedule(
        interval_s=settings.block_interval,
        empty_blocks=settings.empty_blocks,
        first_block=application_kinds()[settings.application].makes_first_block,
    )
    if settings.dev and schedule.at_once:
        # Include a transaction at once, without waiting for the block interval, as after
        # evm_setAutomine.
        return replace(schedule, interval_s=AT_ONCE_S)
    return schedule


def chain_path(settings: Settings, folder: Path) -> str:
    """Return the path or URL of the store: NODERPC_DATABASE, by default ``noderpc.db`` in the
    folder.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` for a URL that names no store.
    """
    return location_of(settings.database or folder / "noderpc.db").path


def chain_from_settings(
    settings: Settings, folder: Path, memory: CacheMemory | None = None
) -> EmbeddedChain:
    """Return a chain that is not opened yet; ``memory`` counts the bytes of its caches.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` for settings that contradict each
    other.
    """
    path = chain_path(settings, folder)
    memory = memory or CacheMemory(settings.cache_bytes)
    application = application_named(settings.application, settings, path, memory)
    accounts = _dev_accounts(settings)
    home = Path(settings.home or location_of(path).folder or folder)
    return EmbeddedChain(
        path,
        home=home,
        application=application,
        on_start=partial(_on_start, settings, home, accounts),
        app_state=accounts.app_state(settings) if accounts else b"",
        dev=settings.dev,
        chain_id=settings.chain_id,
        dialect=settings.dialect,
        moniker=settings.moniker,
        rpc_address=settings.rpc_laddr,
        schedule=_block_schedule(settings),
        produce=settings.produce,
        accept_loss=settings.accept_loss,
        limits=MempoolLimits(settings.max_tx_bytes, settings.mempool_size),
        read_database=settings.replica(),
        retain_blocks=settings.retain_blocks,
    )
