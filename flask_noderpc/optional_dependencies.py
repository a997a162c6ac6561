"""Parts of a mount that need an optional dependency, imported when they are enabled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from flask import Response

from .backends.base.backend import ChainBackend
from .errors import ConfigurationError, InvalidSetting
from .jsonrpc.context import CallSpan, Context
from .jsonrpc.guard import Guard
from .jsonrpc.route import Route
from .lru import CacheMemory

if TYPE_CHECKING:
    from .ethereum.rpc.layer import EvmLayer

_EVM_NAMES = (
    "eth",
    "web3",
    "net",
    "txpool",
    "debug",
    "trace",
    "evm",
    "anvil",
    "hardhat",
    "personal",
)
EVM_NAMESPACES = tuple(f"{name}_" for name in _EVM_NAMES)
"""How the names of the EVM layer's methods begin, known without the extra."""


def check_evm_api(names: Iterable[str]) -> None:
    """Raise :exc:`~flask_noderpc.errors.InvalidSetting` for a namespace that is not known,
    where the EVM layer, which checks them otherwise, is not enabled."""
    for name in names:
        if name not in _EVM_NAMES:
            raise InvalidSetting(
                f"NODERPC_EVM_API: no namespace {name!r}; known are {', '.join(_EVM_NAMES)}"
            )


def evm_layer(
    context: Context,
    start: Callable[[], None],
    guard: Guard,
    routes: Iterable[Route[Any]] = (),
) -> EvmLayer:
    """Return the EVM layer over the same backend, with rows of the host's.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` if the extra is not installed.
    """
    try:
        # Only this layer needs the extra.
        from .ethereum.rpc.layer import EvmLayer
    except ModuleNotFoundError as error:
        raise ConfigurationError(f"NODERPC_JSON_RPC_ENABLE: {error}") from None
    return EvmLayer(context, start, guard, routes)


def metrics_page(backend: ChainBackend, memory: CacheMemory) -> Callable[[], Response]:
    """Count the calls and blocks of a backend; return the view of its metrics.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` if the extra is not installed.
    """
    try:
        from .web.metrics import count, page
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"NODERPC_METRICS: {error}; pip install 'flask-noderpc[metrics]'"
        ) from None
    count(backend, memory)
    return lambda: page(backend, memory)


def span_starter() -> Callable[[str, str, str, Mapping[str, Any]], CallSpan | None] | None:
    """Return what starts the spans of calls; ``None`` without ``opentelemetry-api``."""
    try:
        from .web.tracing import start_span
    except ModuleNotFoundError:
        return None
    return start_span
