"""Dispatch of calls to their handlers, for every transport.

1. A transport reads a body, or the name and values of a GET. 2. The dialect's envelope parses
the calls in the body. 3. The dispatcher finds the endpoint of the method, parses the
parameters and calls the handler. 4. The dialect encodes the result, and the envelope makes the
response.

:func:`.reply.to_rpc_error` turns exceptions of handlers and backends into error objects. Only
this module catches all exceptions.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, NamedTuple

from ..backends.base import reads
from ..backends.base.reads import ChainVersion
from ..concurrency import Pending, next_turn
from ..errors import (
    AnswerTooLarge,
    InvalidRequest,
    NodeRPCError,
    NotAuthorized,
    OriginRefused,
    ParseError,
    RPCError,
    SigningRefused,
)
from ..wire.dialect import Dialect
from ..wire.envelope import URI_ID, BadCall, Call, Calls
from .context import ANONYMOUS, BatchBudget, BatchView, Context, Permissions
from .guard import OPEN, Guard
from .params import MemoizedLoader, P, ParamLoader, Params
from .reply import CallReply, Instrumentation, Reply, Reproducible, to_rpc_error
from .results import CachedResult, ResultCache, Running
from .route import Route, RouteTable

# Number of calls of a batch after which the snapshot is closed and other requests can run.
_CALLS_BEFORE_YIELD = 20


# Maximum number of cached contexts, one per client.
_MAX_CONTEXTS = 1024

_EXCLUDED = "NODERPC_ALLOW_METHODS or NODERPC_DENY_METHODS excludes it"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A route with the parsers of its parameters for one dialect."""

    route: Route[Any]
    loader: ParamLoader[Any]
    from_query: Callable[[bytes], Any]
    from_json: Callable[[bytes], Any]
    error_member: bool


SessionMethods = Mapping[str, Callable[[bytes, bytes], bytes]]
"""Methods that a websocket session handles: functions that return the encoded result, given
the request's ID and its encoded parameters."""

_NO_METHODS: SessionMethods = MappingProxyType({})

RawParams = bytes | Mapping[str, str]
"""Unparsed parameters: JSON, a query string, or the values of a URI and a form by name."""

_Steps = Generator[Pending[Any], None, CallReply]
"""Generator of a call: yields the work that the call waits for, if any, and returns its
response."""


class _Caller(NamedTuple):
    """Permissions and transport of a call, the methods of its session, and the view of the
    chain that its batch shares."""

    permissions: Permissions
    transport: str
    session_methods: SessionMethods = _NO_METHODS
    view: BatchView | None = None

    def close_view(self) -> None:
        """Close the batch's view, so that its next calls see a newer chain."""
        if self.view is not None:
            self.view.close()


class Dispatcher:
    """Executor of the calls of one mount.

    ``ready`` is called before each call, and raises if the backend can't start. ``hints`` say,
    for methods that are not served, which setting enables them.
    """

    def __init__(
        self,
        routes: RouteTable,
        dialect: Dialect,
        context: Context,
        ready: Callable[[], None],
        hints: Mapping[str, str] | None = None,
        max_batch: int | None = None,
        guard: Guard = OPEN,
    ) -> None:
        self.guard = guard
        self._max_batch = max_batch or context.settings.max_batch
        dialect.require({route.name: route.result for route in routes})
        self._dialect = dialect
        self.envelope = dialect.envelope
        self._posts_cacheable = dialect.http.posts_cacheable
        self._context = context
        self._context_of_client = lru_cache(_MAX_CONTEXTS)(
            lambda client: replace(context, client=client)
        )
        self.backend = context.backend
        self.ready = ready
        """Function that starts the backend, unless this process has already started it."""
        self._hints = hints or {}
        cache_bytes = context.settings.cache_bytes
        self._cache = ResultCache(cache_bytes, context.memory) if cache_bytes else None
        self._running = Running()
        self._memoized = MemoizedLoader()
        self._loaders: dict[tuple[type[Any], tuple[str, ...]], ParamLoader[Any]] = {}
        names = {route.name for route in routes}
        self.instrumented = Instrumentation(context, names, self.envelope.code)
        self._endpoints = {
            route.name: self._endpoint_of(route) for route in routes if guard.has(route.name)
        }

    def _endpoint_of(self, route: Route[Any]) -> Endpoint:
        loader = self.loader(route.params, self._dialect.ignored.get(route.name, ()))
        # Cache the parsed parameters of routes with cached results, as they are part of the
        # key of a cached result.
        readers = (loader.from_query, loader.from_json)
        from_query, from_json = (
            map(self._memoized.reader, readers) if route.chain_only else readers
        )
        error_member = route.result in self._dialect.error_member
        return Endpoint(route, loader, from_query, from_json, error_member)

    def loader(self, params: type[P], ignored: tuple[str, ...] = ()) -> ParamLoader[P]:
        """Return the loader for a type of parameters by the dialect's rules; loaders are
        cached."""
        key = (params, ignored)
        if key not in self._loaders:
            self._loaders[key] = ParamLoader(params, self._dialect.params, ignored)
        return self._loaders[key]

    def get(self, name: str, values: RawParams, permissions: Permissions = ANONYMOUS) -> Reply:
        """Return the response to a GET of the route ``name``."""
        try:
            caller = _Caller(permissions, "get")
            answer = _finished(self._execute(name, values, URI_ID, caller))
            return self._reply(answer, caller, is_cacheable=permissions.denial is None)
        except Exception as error:
            self._propagate(error)
            return self._get_error_reply(URI_ID, error)

    def _get_error_reply(self, request_id: bytes | None, error: Exception) -> Reply:
        """Return the error response to a GET."""
        if isinstance(error, NotAuthorized):
            return self._denied(error, self.envelope.failure(request_id, to_rpc_error(error)))
        status = self._dialect.status_of(error)
        return Reply(status, self.envelope.failure(request_id, to_rpc_error(error)))

    def _denied(self, error: NotAuthorized, body: bytes) -> Reply:
        """Return a response with the status and headers that the app's ``authorize`` chose."""
        return Reply(HTTPStatus(error.status), body, headers=tuple(error.headers.items()))

    def _reply(self, answer: CallReply, caller: _Caller, *, is_cacheable: bool) -> Reply:
        """Return the response to a single call."""
        if answer.denied is not None:
            return self._denied(answer.denied, bytes(answer.body))
        etag, reproducible = "", None
        if answer.route is not None:
            reproducible = Reproducible(
                answer.route,
                answer.encoded,
                caller.transport,
                self.backend.reads,
                self.instrumented,
            )
            etag = answer.encoded.etag if caller.transport == "get" else ""
        return Reply(
            HTTPStatus.OK,
            answer.body,
            answer.encoded.cacheable and is_cacheable,
            etag,
            reproducible,
            answer.encoded.marks,
        )

    def error_reply(self, error: NodeRPCError, request_id: bytes | None = None) -> Reply:
        """Return the error response to a request that is invalid, or is refused before its
        body is read."""
        if isinstance(error, InvalidRequest | ParseError):
            return self._invalid_reply(error)
        return self._get_error_reply(request_id, error)

    def _invalid_reply(self, error: RPCError, request_id: bytes | None = None) -> Reply:
        """Return the error response to an invalid call."""
        return Reply(self.envelope.status_of(error), self.envelope.failure(request_id, error))

    def post(
        self,
        body: bytes,
        permissions: Permissions = ANONYMOUS,
        session_methods: SessionMethods | None = None,
    ) -> Reply:
        """Execute a JSON-RPC body; return the response, which is empty for notifications.

        ``session_methods`` is not ``None`` if the body is a websocket message.
        """
        try:
            calls = self.envelope.parse(body, self._max_batch)
        except RPCError as error:
            return Reply(
                self.envelope.status_of(error), self.envelope.invalid_body_response(error)
            )
        caller = _Caller(
            permissions,
            "post" if session_methods is None else "websocket",
            session_methods or _NO_METHODS,
            BatchView(self.backend.reads) if calls.is_batch else None,
        )
        if not calls.is_batch:
            return self._answer_single(calls.items[0], caller)
        try:
            answers = self._answers(calls, caller)
        finally:
            caller.close_view()
        if not answers:
            return Reply(HTTPStatus.OK, b"")
        return self._batch_reply(answers, caller)

    def _batch_reply(self, answers: list[CallReply], caller: _Caller) -> Reply:
        is_bare = len(answers) == 1 and self.envelope.lone_reply_is_bare
        replies = [bytes(answer.body) for answer in answers]
        body = replies[0] if is_bare else self.envelope.batch(replies)
        first = answers[0].denied
        if first is not None and all(answer.denied for answer in answers):
            return self._denied(first, body)
        encoded = [answer.encoded for answer in answers]
        cacheable = self._is_cacheable(caller) and all(each.cacheable for each in encoded)
        headers = tuple(dict.fromkeys(mark for each in encoded for mark in each.marks))
        return Reply(HTTPStatus.OK, body, cacheable, headers=headers)

    def _is_cacheable(self, caller: _Caller) -> bool:
        # If authorize decides per sender, caches must not send its response to another sender.
        return self._posts_cacheable and caller.permissions.denial is None

    def _answer_single(self, item: Call | BadCall, caller: _Caller) -> Reply:
        if isinstance(item, BadCall):
            return self._invalid_reply(item.error, item.id)
        if item.id is None:
            self._notify(item, caller)
            return Reply(HTTPStatus.OK, b"")
        answer = self._answer(item, item.id, caller)
        return self._reply(answer, caller, is_cacheable=self._is_cacheable(caller))

    def _answers(self, calls: Calls, caller: _Caller) -> list[CallReply]:
        answers: list[CallReply] = []
        budget = BatchBudget(self._context.settings)
        for number, item in enumerate(calls.items):
            if number and number % _CALLS_BEFORE_YIELD == 0:
                # Close the snapshot, as the store must not hold it for long.
                caller.close_view()
                next_turn()
            if isinstance(item, BadCall):
                answers.append(CallReply(self.envelope.failure(item.id, item.error)))
            elif item.id is not None:
                answers.append(self._answer_within(budget, item, item.id, caller))
            elif budget.spent() is None:
                self._notify(item, caller)
        return answers

    def _answer_within(
        self, budget: BatchBudget, call: Call, request_id: bytes, caller: _Caller
    ) -> CallReply:
        refusal = budget.spent()
        if refusal is not None:
            # Don't execute further calls, as their results would be dropped.
            return CallReply(self.envelope.failure(request_id, refusal))
        answer = self._answer(call, request_id, caller)
        if budget.consume(len(answer.body)):
            return answer
        return CallReply(self.envelope.failure(request_id, AnswerTooLarge()))

    def _notify(self, call: Call, caller: _Caller) -> None:
        if self.envelope.runs_notifications:
            self._answer(call, b"null", caller)

    def _answer(self, call: Call, request_id: bytes, caller: _Caller) -> CallReply:
        try:
            return _finished(self._execute(call.method, call.params, request_id, caller))
        except Exception as error:
            if caller.transport == "post":
                self._propagate(error)
            return self._failed(error, request_id, caller)

    def _failed(self, error: Exception, request_id: bytes, caller: _Caller) -> CallReply:
        """Return the error response to a call that raised an exception."""
        denied = error if isinstance(error, NotAuthorized) else None
        rpc_error = to_rpc_error(error)
        if caller.transport == "websocket":
            rpc_error = self.envelope.over_websocket(rpc_error)
        return CallReply(self.envelope.failure(request_id, rpc_error), denied=denied)

    def _propagate(self, error: Exception) -> None:
        """Raise an unexpected exception if the app propagates exceptions.

        This is not called for a websocket, whose other calls would be lost.
        """
        if not isinstance(error, NodeRPCError) and self._context.propagates():
            raise error

    def waits(self, method: str) -> bool:
        """Return true if calls of a method may wait for the store."""
        endpoint = self._endpoints.get(method)
        return endpoint is not None and endpoint.route.waits

    def begin(
        self,
        call: Call,
        request_id: bytes,
        permissions: Permissions,
        session_methods: SessionMethods,
    ) -> Pending[bytes]:
        """Execute one call of a websocket until it waits for the store or has ended; return
        its pending response."""
        caller = _Caller(permissions, "websocket", session_methods)
        steps = self._execute(call.method, call.params, request_id, caller)

        def reply() -> bytes:
            try:
                return bytes(_finished(steps).body)
            except Exception as error:
                return bytes(self._failed(error, request_id, caller).body)

        try:
            waited = next(steps)
        except StopIteration as done:
            body = bytes(done.value.body)
        except Exception as error:
            body = bytes(self._failed(error, request_id, caller).body)
        else:
            return Pending(reply, waited.is_done)
        return Pending(lambda: body)

    def _execute(
        self, name: str, given: RawParams, request_id: bytes, caller: _Caller
    ) -> _Steps:
        """Return the steps of a call of any transport, which raise the errors of the call."""
        method = caller.session_methods.get(name)
        endpoint = self._endpoints.get(name)
        waits = endpoint is not None and endpoint.route.waits
        with self.instrumented(
            name,
            caller.transport,
            caller.permissions,
            is_session_method=method is not None,
            in_steps=waits and caller.transport == "websocket",
        ):
            if method is not None:
                self._check_session_method(name, caller.permissions)
                # Close the batch's view, as a subscription starts at the current block.
                caller.close_view()
                assert isinstance(given, bytes)
                result = method(request_id, given)
                return CallReply(self.envelope.success(request_id, result, error_member=False))
            endpoint = self._permitted(name, endpoint, caller.permissions)
            if caller.view is None or not caller.view.is_held:
                self._make_ready(endpoint)
            params = self._params(endpoint, given, caller)
            if waits:
                caller.close_view()
                pending = endpoint.route.call(
                    self._context_of_client(caller.permissions.client), params
                )
                yield pending
                encoded = CachedResult(self._dialect.encode(pending.result()))
            else:
                encoded = self._result(caller, endpoint, params)
            if request_id is URI_ID and encoded.reply:
                return CallReply(encoded.reply, encoded, endpoint.route)
            body = self.envelope.success(request_id, encoded.result, endpoint.error_member)
            return CallReply(body, encoded, endpoint.route)

    def _make_ready(self, endpoint: Endpoint) -> None:
        # Don't start the backend for immutable results, which need no store.
        if not endpoint.route.is_immutable:
            self.ready()

    def _params(self, endpoint: Endpoint, given: RawParams, caller: _Caller) -> Params:
        found: Params
        if not isinstance(given, bytes):
            found = endpoint.loader.from_uri(given)
        elif caller.transport == "get":
            found = endpoint.from_query(given)
        else:
            found = endpoint.from_json(given)
        return found

    def _result(self, caller: _Caller, endpoint: Endpoint, params: Params) -> CachedResult:
        route, reads = endpoint.route, self.backend.reads
        chain_only = route.chain_only
        if callable(chain_only):
            chain_only = chain_only(self._context, params)
        if route.reads_index or not chain_only:
            caller.close_view()
        if not chain_only:
            return self._compute(caller, route, params)
        view = None if route.reads_index else caller.view
        version = reads.version() if view is None else view.version()
        if version is None or self._cache is None:
            return self._compute(caller, route, params)
        cached = self._cache.find(route.name, route.cache, params, version)
        if cached is not None:
            return cached
        if view is not None:
            # Don't wait for other calls while a batch holds a snapshot of the store.
            return self._computed(caller, endpoint, params, version)
        return self._running.shared(
            (route.name, params, version),
            lambda: self._computed(caller, endpoint, params, version),
        )

    def _computed(
        self, caller: _Caller, endpoint: Endpoint, params: Params, version: ChainVersion
    ) -> CachedResult:
        """Compute a result, and cache it unless a block was committed meanwhile."""
        encoded = self._compute(caller, endpoint.route, params)
        if self._cache is None or encoded.marks or self.backend.reads.version() != version:
            return encoded
        frame = self.envelope.result_frame(URI_ID, endpoint.error_member)
        return self._cache.put(endpoint.route.name, params, version, encoded, frame)

    def _compute(self, caller: _Caller, route: Route[Any], params: Params) -> CachedResult:
        # Decide before the data is read, as a new block may replace provisional data
        # meanwhile.
        cacheable = route.cache.allows(params, self.backend.reads)
        reads.begin_reads()
        answer = route.call(self._context_of_client(caller.permissions.client), params)
        if caller.transport == "websocket":
            reads.check_complete()
        marks = reads.marks()
        is_final = route.cache.final
        cacheable = cacheable and not marks and (is_final is None or is_final(answer))
        return CachedResult(self._dialect.encode(answer), cacheable, marks=marks)

    def admit(self, name: str, permissions: Permissions) -> tuple[Route[Any], Context]:
        """Return a route and its context for a page that calls the handler itself.

        Raise the same errors as a call with these permissions before its handler runs.
        """
        endpoint = self._permitted(name, self._endpoints.get(name), permissions)
        self._make_ready(endpoint)
        return endpoint.route, self._context_of_client(permissions.client)

    def call(self, name: str, params: Params, permissions: Permissions, transport: str) -> Any:
        """Return the result of a call by a protocol other than JSON-RPC; raise the errors of
        the call."""
        with self.instrumented(name, transport, permissions):
            route, ctx = self.admit(name, permissions)
            found = route.call(ctx, params)
            return found.result() if route.waits else found

    def _check_session_method(self, name: str, permissions: Permissions) -> None:
        """Raise an error unless a session method is served and the sender may call it."""
        # Check permissions first, so that others can't find out which methods exist.
        permissions.check(name)
        if not self.guard.has(name):
            raise self.envelope.unknown_method(name, _EXCLUDED)

    def _permitted(
        self, name: str, endpoint: Endpoint | None, permissions: Permissions
    ) -> Endpoint:
        """Return the endpoint of a method; raise an error unless the sender may call it."""
        permissions.check(name)
        if endpoint is None:
            hint = self._hints.get(name, "") if self.guard.has(name) else _EXCLUDED
            raise self.envelope.unknown_method(name, hint)
        if endpoint.route.writes and not permissions.may_write:
            raise OriginRefused(
                "pages of another site may not change state through this node; add their"
                " origin to NODERPC_WRITE_ORIGINS"
            )
        if endpoint.route.signs and not permissions.may_sign:
            raise SigningRefused
        return endpoint


def _finished(steps: _Steps) -> CallReply:
    """Run all steps of a call, waiting for its work; return the response."""
    try:
        while True:
            next(steps)
    except StopIteration as done:
        answer: CallReply = done.value
        return answer
