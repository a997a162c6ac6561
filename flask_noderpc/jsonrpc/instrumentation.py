"""Reports of calls: to the signal ``rpc_called``, the log of calls and a tracer."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..errors import RPCError
from ..signals import emit, rpc_called
from .context import ANONYMOUS, Context, Permissions
from .reply import as_rpc_error

if TYPE_CHECKING:
    from .tracing import CallSpan

_NO_REPORT = nullcontext()


class Instrumentation:
    """Reports the calls of one dispatcher when they are answered.

    ``names`` are its methods, and ``code`` returns the code of an error.
    """

    def __init__(
        self, context: Context, names: Collection[str], code: Callable[[RPCError], int]
    ) -> None:
        self._context, self._names, self._code = context, names, code
        self._tracing: Any = None
        # Without opentelemetry-api nothing is traced.
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
        """Return the context of a call.

        ``is_session_method`` is true of a method that is not in the table, ``in_steps`` of a
        call between whose steps others run.
        """
        context = self._context
        is_known = is_session_method or method in self._names
        span: CallSpan | None = None
        # Asked here, as most processes set no tracer provider.
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
        # Around the log and the receivers, too: what they report belongs to the call.
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
                # Not by the signal: its sender is the backend, which other mounts may share.
                if self._context.log_call is not None:
                    self._context.log_call(**report)
                emit(rpc_called, self._context.backend, **report)
                if span is not None:
                    span.end(outcome)
