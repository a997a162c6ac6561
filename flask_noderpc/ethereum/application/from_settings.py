"""Construction of the application ``evm`` from settings."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from urllib.parse import urlsplit

from ...backends.base.application import AppState
from ...errors import InvalidSetting
from ...feature import features, load
from ...lru import CacheMemory
from ...settings import Settings
from ..api import check_fork
from ..domain.forks import fork_named
from ..settings import EthereumSettings, caps_tx_gas, records_calls, takes_unprotected_txs
from .application import EvmApplication
from .commands import check_libraries, fork_cache
from .forked import ForkedChain
from .state import ChainRules, EvmRuntime, ExecutionLimits, fork_point


def _fork(settings: Settings, path: str) -> Callable[[AppState], ForkedChain] | None:
    """Return a function that makes the chain that the settings fork, or ``None``; it asks no
    node yet."""
    own = settings.of(EthereumSettings)
    check_fork(settings)
    cache = fork_cache(settings, path)
    if not cache:
        if own.fork_url:
            raise InvalidSetting(
                "NODERPC_FORK_CACHE: expected a file, got nothing; set it, as the store has no"
                " folder"
            )
        return None
    if not (own.fork_url or cache.exists()):
        if own.fork_cache or own.fork_block_number is not None:
            raise InvalidSetting(
                "NODERPC_FORK_URL: expected the URL of a node of the chain to fork, got"
                " nothing; set it (noderpc start: --fork-url)"
            )
        return None
    make = next(feature.evm_calls for feature in features() if feature.evm_calls)
    connect = partial(load(make), settings, own.fork_url, "NODERPC_FORK_URL")
    nodes = ", ".join(map(_without_credentials, own.fork_url))
    return lambda state: ForkedChain(
        cache,
        nodes,
        own.fork_block_number,
        connect if nodes else None,
        lambda: _begun_after(state),
    )


def _begun_after(state: AppState) -> tuple[int, bytes] | None:
    """Return height and hash of the block after which a stored chain was forked."""
    point = fork_point(state)
    return point and (point.number, point.hash)


def _without_credentials(url: str) -> str:
    parts = urlsplit(url if "://" in url else f"http://{url}")
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def evm(
    settings: Settings, path: str, memory: CacheMemory
) -> Callable[[AppState], EvmApplication]:
    """Return a function that makes the application ``evm`` for its stored state; raise
    :exc:`~flask_noderpc.errors.ConfigurationError` if a package is missing."""
    own = settings.of(EthereumSettings)
    check_libraries()
    fork = _fork(settings, path)
    limits = ExecutionLimits(own.evm_executors, call_s=own.evm_timeout)
    return lambda state: EvmApplication(
        state,
        EvmRuntime(
            state, path, limits, memory, keeps_names=settings.dev, fork=fork and fork(state)
        ),
        own.evm_chain_id,
        dev=settings.dev,
        takes_unprotected_txs=takes_unprotected_txs(settings),
        rules=ChainRules(
            fork_named(own.evm_hardfork),
            own.evm_forks,
            caps_tx_gas=caps_tx_gas(settings),
            code_size_limit=own.evm_code_size_limit,
            records_calls=records_calls(settings),
        ),
    )
