"""Replies of a dispatcher, errors included, and those that a response cache may store."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from http import HTTPStatus
from typing import Any, NamedTuple

from ..backends.base.reads import ChainReads
from ..errors import (
    CallFailed,
    ConfigurationError,
    Forbidden,
    InternalError,
    NodeRPCError,
    NotAuthorized,
    RPCError,
    StoreError,
)
from .route import CachedResult, Route

log = logging.getLogger("flask_noderpc.jsonrpc")


_FORBIDDEN = -32001


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
        case Forbidden():
            # JSON-RPC 2.0: -32000 to -32099 are the server's own.
            return CallFailed(error.text, error.hint, code=_FORBIDDEN, message="Forbidden")
        case NodeRPCError():
            return CallFailed(error.text, error.hint)
        case _:
            return InternalError("the call failed; the server's log says why")


_EMPTY_RESULT = CachedResult(b"")


class Reply(NamedTuple):
    """Reply to a request: status and body."""

    status: HTTPStatus
    body: bytes
    cacheable: bool = False
    etag: str = ""
    """ETag of the result; empty where there is none."""
    reproducible: Reproducible | None = None
    headers: tuple[tuple[str, str], ...] = ()
    """Further headers: of a host's refusal, or the marks of a result."""


class Answer(NamedTuple):
    """Reply to one call, with its result and its route unless it failed."""

    body: bytes
    encoded: CachedResult = _EMPTY_RESULT
    route: Route[Any] | None = None
    denied: NotAuthorized | None = None
    """The host's refusal of the call."""


class Reproducible(NamedTuple):
    """Result of one call, with what is needed to decide if it is still valid."""

    route: Route[Any]
    encoded: CachedResult
    transport: str
    reads: ChainReads
    instrumented: Callable[[str, str], AbstractContextManager[None]]
    """Returns the context of a call, by its method and transport."""

    @property
    def may_hold(self) -> bool:
        """True if the response may be cached."""
        return self.route.is_immutable or self.encoded.version is not None

    def holds(self) -> bool:
        """Return true if the result is still valid."""
        if self.route.is_immutable:
            return True
        return self.encoded.holds(self.reads.version())

    def reported(self) -> AbstractContextManager[None]:
        """Report a cached response to ``rpc_called`` and the log of calls."""
        return self.instrumented(self.route.name, self.transport)
