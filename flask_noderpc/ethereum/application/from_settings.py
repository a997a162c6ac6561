"""Construction of the application ``evm`` from settings."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

from ...backends.base.application import AppState
from ...errors import ConfigurationError
from ...lru import CacheMemory
from ...settings import Settings
from ..domain.forks import fork_named
from ..settings import EthereumSettings, caps_tx_gas, records_calls, takes_unprotected_txs
from .application import EvmApplication
from .state import ChainRules, EvmRuntime, ExecutionLimits


def evm(
    settings: Settings, path: str, memory: CacheMemory
) -> Callable[[AppState], EvmApplication]:
    """Return a function that makes the application ``evm`` for its stored state; raise
    :exc:`~flask_noderpc.errors.ConfigurationError` if a package is missing."""
    own = settings.of(EthereumSettings)
    # Check now, as otherwise the executor processes, which import this package, fail later.
    if find_spec("py_arkworks_bls12381") is None:
        raise ConfigurationError(
            "NODERPC_APPLICATION = 'evm' needs py-arkworks-bls12381: pip install"
            " 'flask-noderpc[evm]'"
        )
    limits = ExecutionLimits(own.evm_executors, call_s=own.evm_timeout)
    return lambda state: EvmApplication(
        state,
        EvmRuntime(state, path, limits, memory, keeps_names=settings.dev),
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
