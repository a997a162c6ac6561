"""Construction of the embedded chain from a mount's settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..backends.base.application import Application, AppState
from ..backends.base.capabilities import MempoolLimits
from ..backends.base.location import location_of
from ..domain.genesis import Genesis
from ..errors import ConfigurationError, InvalidSetting
from ..lru import CacheMemory
from ..settings import Settings
from .applications.kvstore import kvstore_of
from .applications.merkle_kvstore import MerkleKVStore
from .block_scheduler import AT_ONCE_S, BlockSchedule
from .comet_settings import warn_of_ignored
from .embedded import EmbeddedChain

Make = Callable[[AppState], Application]

# Packages of the EVM's engine, by the module that is imported.
_ENGINE = {
    "eth": "py-evm",
    "py_arkworks_bls12381": "py-arkworks-bls12381",
}


def _evm(settings: Settings, path: str, memory: CacheMemory) -> Make:
    try:
        # Only this application needs the extra's packages.
        from ..ethereum.application.application import EvmApplication
        from ..ethereum.application.state import EvmRuntime, ExecutionLimits
    except ModuleNotFoundError as error:
        raise ConfigurationError(f"NODERPC_APPLICATION = 'evm': {error}") from None
    # The executor processes import them: without this check they would fail later.
    for module, package in _ENGINE.items():
        if find_spec(module) is None:
            raise ConfigurationError(
                f"NODERPC_APPLICATION = 'evm' needs {package}: pip install 'flask-noderpc[evm]'"
            )
    limits = ExecutionLimits(
        settings.evm_executors,
        call_s=settings.evm_timeout,
        per_client=settings.max_waiting_calls_per_client,
    )
    return lambda state: EvmApplication(
        state,
        EvmRuntime(state, path, limits, memory, keeps_names=settings.dev),
        settings.evm_chain_id,
        dev=settings.dev,
        takes_unprotected_txs=settings.takes_unprotected_txs,
        code_size_limit=settings.evm_code_size_limit,
    )


def _bank(settings: Settings, path: str, memory: CacheMemory) -> Make:
    try:
        # Only this application needs the extra's packages.
        from ..cosmos.bank.application import Bank
    except ModuleNotFoundError as error:
        raise ConfigurationError(f"NODERPC_APPLICATION = 'bank': {error}") from None
    return partial(Bank, prefix=settings.bank_prefix, retained_heights=settings.bank_heights)


APPLICATIONS: dict[str, Callable[[Settings, str, CacheMemory], Make]] = {
    "kvstore": lambda settings, path, memory: kvstore_of(settings.dialect),
    "merkle": lambda settings, path, memory: MerkleKVStore,
    "evm": _evm,
    "bank": _bank,
}
"""The applications that NODERPC_APPLICATION names."""

CHAIN_SETTINGS = (
    "read_database",
    "home",
    "application",
    "chain_id",
    "moniker",
    "produce",
    "accept_loss",
    "block_interval",
    "empty_blocks",
    "lease_seconds",
    "retain_blocks",
    "max_tx_bytes",
    "mempool_size",
    "rpc_laddr",
    "evm_chain_id",
    "evm_allow_unprotected_txs",
    "evm_code_size_limit",
    "evm_executors",
    "evm_timeout",
    "max_waiting_calls_per_client",
    "dev",
    "bank_prefix",
    "bank_coins",
    "bank_heights",
)
"""Settings of the chain itself, the same for each mount that serves it."""


def _on_start(settings: Settings, home: Path, genesis: Genesis) -> None:
    """Log what the process that produces the blocks has to say of its home."""
    if settings.produce:
        warn_of_ignored(home, settings)
    if settings.dev and settings.application == "bank":
        from ..cosmos.bank import dev as bank

        bank.log_accounts(genesis, new=(settings.bank_prefix, settings.bank_coins))
    elif settings.dev:
        from ..ethereum.application import dev

        dev.log_accounts(genesis)


def _dev(settings: Settings) -> dict[str, Any]:
    """Return the arguments of :class:`EmbeddedChain` for NODERPC_DEV."""
    if not settings.dev:
        return {}
    if settings.application == "bank":
        from ..cosmos.bank import dev as bank

        state = bank.app_state(settings.bank_prefix, settings.bank_coins)
        return {"app_state": state, "dev": True}
    if settings.application != "evm":
        raise InvalidSetting(
            f"NODERPC_DEV brings accounts of Ethereum or of the Cosmos SDK, and"
            f" NODERPC_APPLICATION is {settings.application!r}: set it to 'evm' or 'bank', or"
            " NODERPC_DEV to false"
        )
    from ..ethereum.application import dev

    return {"app_state": dev.app_state(), "dev": True}


def _block_schedule(settings: Settings) -> BlockSchedule:
    schedule = BlockSchedule(
        interval_s=settings.block_interval,
        empty_blocks=settings.empty_blocks,
        # CosmJS connects to no chain without a block.
        first_block=settings.application == "bank",
        lease_s=settings.lease_seconds,
    )
    if settings.dev and schedule.at_once:
        # The same as after evm_setAutomine: a transaction does not wait for the interval.
        return replace(schedule, interval_s=AT_ONCE_S)
    return schedule


def chain_path(settings: Settings, folder: Path) -> str:
    """Return the database: NODERPC_DATABASE, or a file of a default name in the folder.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` for a URL that names no store.
    """
    return location_of(settings.database or folder / "noderpc.db").path


def chain_from_settings(
    settings: Settings, folder: Path, memory: CacheMemory | None = None
) -> EmbeddedChain:
    """Return a chain that is not yet opened, with its caches counted in ``memory``.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` for settings that don't fit.
    """
    path = chain_path(settings, folder)
    memory = memory or CacheMemory(settings.cache_bytes)
    application = APPLICATIONS[settings.application](settings, path, memory)
    home = Path(settings.home or location_of(path).folder or folder)
    return EmbeddedChain(
        path,
        home=home,
        application=application,
        on_start=partial(_on_start, settings, home),
        **_dev(settings),
        chain_id=settings.chain_id,
        dialect=settings.dialect,
        moniker=settings.moniker,
        rpc_address=settings.rpc_laddr,
        schedule=_block_schedule(settings),
        produce=settings.produce,
        accept_loss=settings.accept_loss,
        limits=MempoolLimits(settings.max_tx_bytes, settings.mempool_size),
        read_database=settings.read_database,
        retain_blocks=settings.retain_blocks,
    )
