"""Serve a blockchain node's RPC from any Flask app."""

from .backend.base import Application, ChainBackend, CommittedBlock
from .backend.memory import MemoryBackend
from .backend.sqlite import SQLiteBackend
from .chain.embedded import EmbeddedChain
from .errors import ConfigurationError, NodeRPCError
from .extension import NodeRPC, get_backend, noderpc_bp
from .node.table import NODE_ROUTES
from .rpc.route import Route, RouteTable
from .wire.dialects import DIALECTS

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
    "noderpc_bp",
]
