"""Serve a blockchain node's RPC from any Flask app."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .backend.application import Application
    from .backend.base import ChainBackend
    from .backend.memory import MemoryBackend
    from .backend.sqlite import SQLiteBackend
    from .backend.store import CommittedBlock
    from .chain.embedded import EmbeddedChain
    from .errors import ConfigurationError, NodeRPCError
    from .extension import NodeRPC, get_backend, hang_up, may_write, noderpc_bp
    from .node.table import NODE_ROUTES
    from .rpc.route import Route, RouteTable
    from .transports.client import request_cost
    from .wire.dialects import DIALECTS

    __version__: str

# Where each public name lives. They are loaded when they are asked for: pytest and flask
# import this package in every run, for its plugins, whether it is used or not.
_HOMES = {
    "DIALECTS": "wire.dialects",
    "NODE_ROUTES": "node.table",
    "Application": "backend.application",
    "ChainBackend": "backend.base",
    "CommittedBlock": "backend.store",
    "ConfigurationError": "errors",
    "EmbeddedChain": "chain.embedded",
    "MemoryBackend": "backend.memory",
    "NodeRPC": "extension",
    "NodeRPCError": "errors",
    "Route": "rpc.route",
    "RouteTable": "rpc.route",
    "SQLiteBackend": "backend.sqlite",
    "get_backend": "extension",
    "hang_up": "extension",
    "may_write": "extension",
    "noderpc_bp": "extension",
    "request_cost": "transports.client",
}

__all__ = [
    "DIALECTS",
    "NODE_ROUTES",
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
