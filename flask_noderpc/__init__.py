"""Serve a blockchain node's RPC from any Flask app."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flask import Blueprint

    from .backends.base.application import (
        Application,
        AppState,
        BlockExecution,
        BlockRequest,
        InitChain,
    )
    from .backends.base.backend import ChainBackend
    from .backends.base.new_blocks import CommittedBlock
    from .backends.base.reads import ChainReads
    from .backends.memory import MemoryChain
    from .backends.sqlite import SQLiteBackend
    from .chain.embedded import EmbeddedChain
    from .cometbft.routes import COMETBFT_ROUTES
    from .errors import ConfigurationError, NodeRPCError
    from .extension import NodeRPC, get_backend, hang_up, may_write, noderpc_bp
    from .jsonrpc.context import Context
    from .jsonrpc.guard import Denied
    from .jsonrpc.params import NoParams, param
    from .jsonrpc.route import Route, RouteTable
    from .web.views import request_cost
    from .wire.dialect import Dialect
    from .wire.dialects import DIALECTS
    from .wire.schema import WireSchema

    __version__: str
    explorer_bp: Blueprint

# Module of each public name, imported at first use: every run of pytest and flask imports this
# package for its plugins, even if it is not used.
_HOMES = {
    "COMETBFT_ROUTES": "cometbft.routes",
    "DIALECTS": "wire.dialects",
    "AppState": "backends.base.application",
    "Application": "backends.base.application",
    "BlockExecution": "backends.base.application",
    "BlockRequest": "backends.base.application",
    "ChainBackend": "backends.base.backend",
    "ChainReads": "backends.base.reads",
    "CommittedBlock": "backends.base.new_blocks",
    "ConfigurationError": "errors",
    "Context": "jsonrpc.context",
    "Denied": "jsonrpc.guard",
    "Dialect": "wire.dialect",
    "EmbeddedChain": "chain.embedded",
    "InitChain": "backends.base.application",
    "MemoryChain": "backends.memory",
    "NoParams": "jsonrpc.params",
    "NodeRPC": "extension",
    "NodeRPCError": "errors",
    "Route": "jsonrpc.route",
    "RouteTable": "jsonrpc.route",
    "SQLiteBackend": "backends.sqlite",
    "WireSchema": "wire.schema",
    "explorer_bp": "explorer.blueprint",
    "get_backend": "extension",
    "hang_up": "extension",
    "may_write": "extension",
    "noderpc_bp": "extension",
    "param": "jsonrpc.params",
    "request_cost": "web.views",
}

__all__ = [
    "COMETBFT_ROUTES",
    "DIALECTS",
    "AppState",
    "Application",
    "BlockExecution",
    "BlockRequest",
    "ChainBackend",
    "ChainReads",
    "CommittedBlock",
    "ConfigurationError",
    "Context",
    "Denied",
    "Dialect",
    "EmbeddedChain",
    "InitChain",
    "MemoryChain",
    "NoParams",
    "NodeRPC",
    "NodeRPCError",
    "Route",
    "RouteTable",
    "SQLiteBackend",
    "WireSchema",
    "explorer_bp",
    "get_backend",
    "hang_up",
    "may_write",
    "noderpc_bp",
    "param",
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
