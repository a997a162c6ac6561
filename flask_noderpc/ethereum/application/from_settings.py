"""Application ``evm`` with a mount's settings."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

from ...backends.base.application import AppState
from ...errors import ConfigurationError
from ...lru import CacheMemory
from ...settings import Settings
from ..settings import EthereumSettings, takes_unprotected_txs
from .application import EvmApplication
from .state import EvmRuntime, ExecutionLimits

# Packages that the EVM engine needs, by imported module.
_ENGINE = {
    "eth": "py-evm",
    "py_arkworks_bls12381": "py-arkworks-bls12381",
}


def evm(
    settings: Settings, path: str, memory: CacheMemory
) -> Callable[[AppState], EvmApplication]:
    """Return the factory of the application; raise
    :exc:`~flask_noderpc.errors.ConfigurationError` if a package is missing."""
    own = settings.of(EthereumSettings)
    # Executor processes import these packages, and without this check would fail later.
    for module, package in _ENGINE.items():
        if find_spec(module) is None:
            raise ConfigurationError(
                f"NODERPC_APPLICATION = 'evm' needs {package}: pip install 'flask-noderpc[evm]'"
            )
    limits = ExecutionLimits(own.evm_executors, call_s=own.evm_timeout)
    return lambda state: EvmApplication(
        state,
        EvmRuntime(state, path, limits, memory, keeps_names=settings.dev),
        own.evm_chain_id,
        dev=settings.dev,
        takes_unprotected_txs=takes_unprotected_txs(settings),
        code_size_limit=own.evm_code_size_limit,
    )
