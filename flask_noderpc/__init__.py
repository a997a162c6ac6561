"""Serve a blockchain node's RPC from any Flask app."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .backends.base.application import Application
    from .backends.base.backend import ChainBackend
    from .backends.base.store import CommittedBlock
    from .backends.memory import MemoryBackend
    from .backends.sqlite import SQLiteBackend
    from .chain.embedded import EmbeddedChain
    from .cometbft.routes import COMETBFT_ROUTES
    from .errors import ConfigurationError, NodeRPCError
    from .extension import NodeRPC, get_backend, hang_up, may_write, noderpc_bp
    from .jsonrpc.route import Route, RouteTable
    from .web.client import request_cost
    from .wire.dialects import DIALECTS

    __version__: str

# Where each public name lives. They are loaded when they are asked for: pytest and flask
# import this package in every run, for its plugins, whether it is used or not.
_HOMES = {
    "DIALECTS": "wire.dialects",
    "COMETBFT_ROUTES": "cometbft.routes",
    "Application": "backends.base.application",
    "ChainBackend": "backends.base.backend",
    "CommittedBlock": "backends.base.store",
    "ConfigurationError": "errors",
    "EmbeddedChain": "chain.embedded",
    "MemoryBackend": "backends.memory",
    "NodeRPC": "extension",
    "NodeRPCError": "errors",
    "Route": "jsonrpc.route",
    "RouteTable": "jsonrpc.route",
    "SQLiteBackend": "backends.sqlite",
    "get_backend": "extension",
    "hang_up": "extension",
    "may_write": "extension",
    "noderpc_bp": "extension",
    "request_cost": "web.client",
}

__all__ = [
    "COMETBFT_ROUTES",
    "DIALECTS",
    "Application",
    "ChainBackend",
    "CommittedBlock",
    "ConfigurationError",
    "EmbeddedChain",
    "MemoryBackend",
    "NodeRPC",
    "NodeRPCError",
    "Route",
    "RouteTable",
    "SQLiteBackend",
    "get_backend",
    "hang_up",
    "may_write",
    "noderpc_bp",
    "request_cost",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("flask-noderpc")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
