"""Responses of a dispatcher, conversion of exceptions to error objects, and reports of calls
to the signal ``rpc_called``, the log of calls and a tracer."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from http import HTTPStatus
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from ..backends.base.reads import ChainReads
from ..errors import (
    CallFailed,
    ConfigurationError,
    Forbidden,
    InternalError,
    NodeRPCError,
    NotAuthorized,
    QuerySyntaxError,
    RPCError,
    StoreError,
    ValueNotAllowed,
    ValueRefused,
)
from ..signals import emit, rpc_called
from ..wire.envelope import ResponseBody
from .context import ANONYMOUS, Context, Permissions
from .results import CachedResult
from .route import Route

if TYPE_CHECKING:
    from .tracing import CallSpan

log = logging.getLogger("flask_noderpc.jsonrpc")


_FORBIDDEN = -32001
_QUERY_HINT = "query: expected conditions such as tx.height > 5 AND app.key = 'name'"


def to_rpc_error(error: Exception) -> RPCError:
    """Return the error object for an exception, and log the exception if it is the server's
    fault.

    Only the texts of this package's exceptions are shown to the client.
    """
    match error:
        case StoreError():
            # Log the text with the path of the store, which clients don't get.
            log.error("%s", error)
        case ConfigurationError():
            log.error("the node can't start: %s", error)
        case NodeRPCError():
            pass
        case _:
            log.error("unexpected error in a call", exc_info=error)
    return as_rpc_error(error)


def as_rpc_error(error: Exception) -> RPCError:
    """Return the error object for an exception without logging it."""
    match error:
        case RPCError():
            return error
        case StoreError():
            return CallFailed(error.reason)
        case ConfigurationError():
            return InternalError("the node can't start; the server's log says why")
        case Forbidden():
            # JSON-RPC 2.0 reserves codes from -32000 to -32099 for servers.
            return CallFailed(error.text, error.hint, code=_FORBIDDEN, message="Forbidden")
        case QuerySyntaxError():
            return ValueRefused(error.text, _QUERY_HINT)
        case ValueNotAllowed():
            return ValueRefused(error.text, error.hint)
        case NodeRPCError():
            return CallFailed(error.text, error.hint)
        case _:
            return InternalError("the call failed; the server's log says why")


_EMPTY_RESULT = CachedResult(b"")


class Reply(NamedTuple):
    """Response to a request: status and body."""

    status: HTTPStatus
    body: ResponseBody
    cacheable: bool = False
    etag: str = ""
    """ETag of the result; empty if it has none."""
    reproducible: Reproducible | None = None
    headers: tuple[tuple[str, str], ...] = ()
    """Additional headers, from the app's refusal or from the marks of a result."""


class CallReply(NamedTuple):
    """Response to one call; if it succeeded, with its result and its route."""

    body: ResponseBody
    encoded: CachedResult = _EMPTY_RESULT
    route: Route[Any] | None = None
    denied: NotAuthorized | None = None
    """Refusal of the call by the app's ``authorize``."""


class Reproducible(NamedTuple):
    """Result of one call, with what is needed to decide if a cached response is still
    valid."""

    route: Route[Any]
    encoded: CachedResult
    transport: str
    reads: ChainReads
    instrumented: Callable[[str, str], AbstractContextManager[None]]
    """Function that returns a context that reports a call, given its method and transport."""

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
        """Return a context that reports a cached response to ``rpc_called`` and the log of
        calls."""
        return self.instrumented(self.route.name, self.transport)


_NO_REPORT = nullcontext()


class Instrumentation:
    """Reporter of one dispatcher's calls.

    ``names`` are the dispatcher's methods, and ``code`` returns the JSON-RPC code of an error.
    """

    def __init__(
        self, context: Context, names: Collection[str], code: Callable[[RPCError], int]
    ) -> None:
        self._context, self._names, self._code = context, names, code
        self._tracing: Any = None
        # Create no spans if opentelemetry-api is not installed.
        with suppress(ModuleNotFoundError):
            self._tracing = import_module(".tracing", __package__)

    def __call__(
        self,
        method: str,
        transport: str,
        permissions: Permissions = ANONYMOUS,
        *,
        is_session_method: bool = False,
        in_steps: bool = False,
    ) -> AbstractContextManager[None]:
        """Return a context that reports the call executed in it.

        ``is_session_method`` is true for a method of a websocket session, ``in_steps`` if
        other calls may run between the steps of this call.
        """
        context = self._context
        is_known = is_session_method or method in self._names
        span: CallSpan | None = None
        # Check this before starting a span, as most processes have no tracer provider.
        if (tracing := self._tracing) and not isinstance(
            tracing.trace.get_tracer_provider(), tracing.trace.ProxyTracerProvider
        ):
            span = tracing.start_span(
                method if is_known else "", method, transport, permissions.fields
            )
        if span is None and not rpc_called.receivers and context.log_call is None:
            return _NO_REPORT
        current = _NO_REPORT if span is None or in_steps else span.current()
        return self._report(method if is_known else "unknown", transport, span, current)

    @contextmanager
    def _report(
        self,
        method: str,
        transport: str,
        span: CallSpan | None,
        current: AbstractContextManager[object],
    ) -> Iterator[None]:
        began, outcome = time.perf_counter(), 0
        # Include the log and the receivers of the signal in the span, as they belong to the
        # call.
        with current:
            try:
                yield
            except Exception as error:
                outcome = self._code(as_rpc_error(error))
                raise
            finally:
                report = {
                    "method": method,
                    "seconds": time.perf_counter() - began,
                    "outcome": outcome,
                    "transport": transport,
                }
                # Don't log by the signal: its sender is the backend, which several mounts may
                # share.
                if self._context.log_call is not None:
                    self._context.log_call(**report)
                emit(rpc_called, self._context.backend, **report)
                if span is not None:
                    span.end(outcome)
