"""Conversion of exceptions to JSON-RPC error objects."""

from __future__ import annotations

import logging

from ..errors import (
    CallFailed,
    ConfigurationError,
    InternalError,
    NodeRPCError,
    RPCError,
    StoreError,
)

log = logging.getLogger("flask_noderpc.jsonrpc")


def to_rpc_error(error: Exception) -> RPCError:
    """Return the error object of an exception, and log the exception; only our own
    exceptions show their text."""
    match error:
        case StoreError():
            # The path of the store is for the operator only.
            log.error("%s", error)
        case ConfigurationError():
            log.error("the node can't start: %s", error)
        case NodeRPCError():
            pass
        case _:
            log.error("a call failed", exc_info=error)
    return as_rpc_error(error)


def as_rpc_error(error: Exception) -> RPCError:
    """Return the error object of an exception without logging."""
    match error:
        case RPCError():
            return error
        case StoreError():
            return CallFailed(error.reason)
        case ConfigurationError():
            return InternalError("the node can't start; the server's log says why")
        case NodeRPCError():
            return CallFailed(error.text, error.hint)
        case _:
            return InternalError("the call failed; the server's log says why")
