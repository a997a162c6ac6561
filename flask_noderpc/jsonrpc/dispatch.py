"""From a call to its encoded answer, the same way for every transport.

1. A transport reads bytes, or the name and values of a GET.
2. The dialect's envelope makes calls of a body.
3. The dispatcher finds the route's endpoint, reads its parameters, and calls the handler.
4. The dialect encodes the result, and the envelope is put around it.

Whatever a handler or a backend raises becomes an error object by
:func:`.failures.to_rpc_error`; here alone everything is caught, but for what servers raise
while a body is read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from typing import Any

from ..concurrency import next_turn
from ..errors import AnswerTooLarge, NodeRPCError, OriginRefused, RPCError, SigningRefused
from ..signals import emit, rpc_called
from ..wire.dialect import Dialect
from ..wire.envelope import URI_ID, BadCall, Call, Calls
from .batch_budget import BatchBudget
from .chain_view import BatchView, ChainView
from .context import ANONYMOUS, Context, Sender
from .failures import as_rpc_error, to_rpc_error
from .guard import OPEN, Guard
from .params import MemoizedLoader, P, ParamLoader, Params
from .reply import Answer, Reply, Reproducible
from .result_cache import CachedResult, ResultCache
from .route import Route, RouteTable, StartedCall

# Of a batch, before other requests are looked at.
_CALLS_A_TURN = 20


_LEFT_OUT = "NODERPC_ALLOW_METHODS and NODERPC_DENY_METHODS leave it out"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A route, ready to be called in one dialect."""

    route: Route[Any]
    loader: ParamLoader[Any]
    from_query: Callable[[bytes], Any]
    from_json: Callable[[bytes], Any]
    error_member: bool


SessionMethods = Mapping[str, Callable[[bytes], bytes]]
"""Methods of one connection: parameters to the encoded result."""


@dataclass(frozen=True, slots=True)
class _Caller:
    """Who calls and how, what it sees, and what only its connection answers."""

    sender: Sender
    transport: str
    chain_view: ChainView
    own: SessionMethods | None = None


_NO_CALLER = nullcontext()


class Dispatcher:
    """Answers calls of one mount; ``ready`` is asked before each, and may raise.

    ``cures`` says of methods that are not there what would bring them.
    """

    def __init__(
        self,
        routes: RouteTable,
        dialect: Dialect,
        context: Context,
        ready: Callable[[], None],
        cures: Mapping[str, str] | None = None,
        max_batch: int | None = None,
        guard: Guard = OPEN,
    ) -> None:
        self.guard = guard
        self._max_batch = max_batch or context.settings.max_batch
        dialect.require({route.name: route.result for route in routes})
        self._dialect = dialect
        self.envelope = dialect.envelope
        self._posts_cacheable = dialect.http.posts_cacheable and not guard.asks
        self._context = context
        self.backend = context.backend
        self._ready = ready
        self._cures = cures or {}
        most = context.settings.cache_bytes
        self._kept = ResultCache(most, context.memory) if most else None
        self._remembered = MemoizedLoader()
        self._loaders: dict[tuple[type[Any], tuple[str, ...]], ParamLoader[Any]] = {}
        self._names = {route.name for route in routes}
        self._endpoints = {
            route.name: self._made(route) for route in routes if guard.has(route.name)
        }

    def _made(self, route: Route[Any]) -> Endpoint:
        loader = self.loader(route.params, self._dialect.ignored.get(route.name, ()))
        # What is kept is found by its parameters: those are plain values.
        readers = (loader.from_query, loader.from_json)
        from_query, from_json = (
            map(self._remembered.reader, readers) if route.chain_only else readers
        )
        error_member = route.result in self._dialect.error_member
        return Endpoint(route, loader, from_query, from_json, error_member)

    def loader(self, params: type[P], ignored: tuple[str, ...] = ()) -> ParamLoader[P]:
        """Reads parameters as the dialect does; made once, whoever asks."""
        key = (params, ignored)
        if key not in self._loaders:
            self._loaders[key] = ParamLoader(params, self._dialect.params, ignored)
        return self._loaders[key]

    def get(
        self, name: str, values: bytes | Mapping[str, str], sender: Sender = ANONYMOUS
    ) -> Reply:
        """The answer to a GET with a query string, or with values that came in two ways."""
        try:
            with self.instrumented(name, "get"):
                caller = _Caller(sender, "get", ChainView(self.backend))
                endpoint = self._endpoint(name, caller)
                self._make_ready(endpoint)
                if isinstance(values, bytes):
                    params = endpoint.from_query(values)
                else:
                    params = endpoint.loader.from_uri(values)
                answer = self._call(caller, endpoint, params, URI_ID)
            reproducible = Reproducible(self, endpoint.route, answer.encoded, "get")
            cacheable = answer.cacheable and not self.guard.asks
            return Reply(
                HTTPStatus.OK, answer.body, cacheable, answer.encoded.etag, reproducible
            )
        except Exception as error:
            self._propagate(error)
            return self.failed(URI_ID, error)

    def failed(self, request_id: bytes | None, error: Exception) -> Reply:
        """The answer to a GET that failed, or to whoever may not read here."""
        status = self._dialect.status_of(error)
        return Reply(status, self.envelope.failure(request_id, to_rpc_error(error)))

    def refused(self, error: RPCError, request_id: bytes | None = None) -> Reply:
        """The answer to what stands in the place of a body with a call."""
        return Reply(self.envelope.status_of(error), self.envelope.failure(request_id, error))

    def post(
        self,
        body: bytes,
        sender: Sender = ANONYMOUS,
        own: SessionMethods | None = None,
    ) -> Reply:
        """The answer to a JSON-RPC body; empty when it holds notifications only."""
        try:
            calls = self.envelope.parse(body, self._max_batch)
        except RPCError as error:
            return Reply(self.envelope.status_of(error), self.envelope.refusal(error))
        chain_view = BatchView(self.backend) if calls.is_batch else ChainView(self.backend)
        # Only a connection has methods of its own.
        caller = _Caller(sender, "post" if own is None else "websocket", chain_view, own)
        if not calls.is_batch:
            return self._alone(calls.items[0], caller)
        try:
            answers = self._answers(calls, caller)
        finally:
            chain_view.invalidate()
        if not answers:
            return Reply(HTTPStatus.OK, b"")
        cacheable = self._posts_cacheable and all(answer.cacheable for answer in answers)
        if len(answers) == 1 and self.envelope.lone_reply_is_bare:
            return Reply(HTTPStatus.OK, answers[0].body, cacheable)
        replies = [answer.body for answer in answers]
        return Reply(HTTPStatus.OK, self.envelope.batch(replies), cacheable)

    def _alone(self, item: Call | BadCall, caller: _Caller) -> Reply:
        if isinstance(item, BadCall):
            return self.refused(item.error, item.id)
        if item.id is None:
            self._notified(item, caller)
            return Reply(HTTPStatus.OK, b"")
        answer = self._answer(item, item.id, caller)
        cacheable = answer.cacheable and self._posts_cacheable
        reproducible = (
            Reproducible(self, answer.route, answer.encoded, "post") if answer.route else None
        )
        return Reply(HTTPStatus.OK, answer.body, cacheable, reproducible=reproducible)

    def _answers(self, calls: Calls, caller: _Caller) -> list[Answer]:
        answers: list[Answer] = []
        allowance = BatchBudget(self._context.settings)
        for number, item in enumerate(calls.items):
            if number and number % _CALLS_A_TURN == 0:
                # A moment of the store is held for no longer than a turn.
                caller.chain_view.invalidate()
                next_turn()
            if isinstance(item, BadCall):
                answers.append(Answer(self.envelope.failure(item.id, item.error)))
            elif item.id is not None:
                answers.append(self._within(allowance, item, item.id, caller))
            elif allowance.spent() is None:
                self._notified(item, caller)
        return answers

    def _within(
        self, allowance: BatchBudget, call: Call, request_id: bytes, caller: _Caller
    ) -> Answer:
        refusal = allowance.spent()
        if refusal is not None:
            # Nothing more is worked out, to be thrown away.
            return Answer(self.envelope.failure(request_id, refusal))
        answer = self._answer(call, request_id, caller)
        if allowance.takes(len(answer.body)):
            return answer
        return Answer(self.envelope.failure(request_id, AnswerTooLarge()))

    def _notified(self, call: Call, caller: _Caller) -> None:
        if self.envelope.runs_notifications:
            self._answer(call, b"null", caller)

    def _answer(self, call: Call, request_id: bytes, caller: _Caller) -> Answer:
        try:
            return self._called(call, request_id, caller)
        except Exception as error:
            if caller.transport == "post":
                self._propagate(error)
            return Answer(self.envelope.failure(request_id, to_rpc_error(error)))

    def _propagate(self, error: Exception) -> None:
        """Raise what is a bug and no answer, where the app wants to see it; calls of a
        websocket are answered, as the others of that connection would be lost."""
        if not isinstance(error, NodeRPCError) and self._context.propagates():
            raise error

    def over_websocket(
        self, call: Call, request_id: bytes, sender: Sender = ANONYMOUS
    ) -> bytes:
        """The reply to one call that came over a websocket."""
        try:
            caller = _Caller(sender, "websocket", ChainView(self.backend))
            return self._called(call, request_id, caller).body
        except Exception as error:
            return self.failure_over_websocket(request_id, error)

    def begins(self, method: str) -> bool:
        """Return true if :meth:`begin_over_websocket` takes calls of a method."""
        endpoint = self._endpoints.get(method)
        return endpoint is not None and endpoint.route.begin is not None

    def begin_over_websocket(
        self, call: Call, request_id: bytes, sender: Sender = ANONYMOUS
    ) -> StartedCall[bytes]:
        """Do what can be done of a call at once; the reply comes later."""
        steps = self._in_two_steps(call, request_id, sender)
        first = next(steps)
        if isinstance(first, bytes):
            return StartedCall(lambda: first)
        return StartedCall(partial(next, steps), first)

    def _in_two_steps(self, call: Call, request_id: bytes, sender: Sender) -> Iterator[Any]:
        """Yield the ``is_ready`` of a call that has begun, and then its reply."""
        try:
            with self.instrumented(call.method, "websocket"):
                caller = _Caller(sender, "websocket", ChainView(self.backend))
                endpoint = self._endpoint(call.method, caller)
                self._make_ready(endpoint)
                params = endpoint.from_json(call.params)
                assert endpoint.route.begin is not None
                begun = endpoint.route.begin(self._context_of(caller), params)
                yield begun.is_ready
                result = self._dialect.encode(begun.finish())
                reply = self.envelope.success(request_id, result, endpoint.error_member)
        except Exception as error:
            reply = self.failure_over_websocket(request_id, error)
        yield reply

    def failure_over_websocket(self, request_id: bytes | None, error: Exception) -> bytes:
        """The reply to what could not be done over a websocket."""
        said = self.envelope.over_websocket(to_rpc_error(error))
        return self.envelope.failure(request_id, said)

    def _called(self, call: Call, request_id: bytes, caller: _Caller) -> Answer:
        own = caller.own.get(call.method) if caller.own else None
        with self.instrumented(
            call.method, caller.transport, is_session_method=own is not None
        ):
            if own is not None:
                self.check_own(call.method)
                self._ready()
                # A subscription begins now, whatever was told before it.
                caller.chain_view.invalidate()
                result = own(call.params)
                return Answer(self.envelope.success(request_id, result, error_member=False))
            endpoint = self._endpoint(call.method, caller)
            if not caller.chain_view.is_held:
                self._make_ready(endpoint)
            params = endpoint.from_json(call.params)
            return self._call(caller, endpoint, params, request_id)

    def instrumented(
        self, method: str, transport: str, *, is_session_method: bool = False
    ) -> AbstractContextManager[None]:
        """Tells of a call that is answered meanwhile, to whoever listens.

        ``is_session_method`` is of a method that a connection has beside the table.
        """
        if not rpc_called.receivers and self._context.log_call is None:
            return _NO_CALLER
        return self._instrumented(
            method if is_session_method or method in self._names else "unknown", transport
        )

    @contextmanager
    def _instrumented(self, method: str, transport: str) -> Iterator[None]:
        began, outcome = time.perf_counter(), 0
        try:
            yield
        except Exception as error:
            outcome = self.envelope.code(as_rpc_error(error))
            raise
        finally:
            said = {
                "method": method,
                "seconds": time.perf_counter() - began,
                "outcome": outcome,
                "transport": transport,
            }
            # Not by the signal: its sender is the backend, which other mounts may share.
            if self._context.log_call is not None:
                self._context.log_call(**said)
            emit(rpc_called, self.backend, **said)

    def _make_ready(self, endpoint: Endpoint) -> None:
        # What is always the same is answered also where the store can't be read.
        if not endpoint.route.is_immutable:
            self._ready()

    def _call(
        self, caller: _Caller, endpoint: Endpoint, params: Params, request_id: bytes
    ) -> Answer:
        encoded = self._result(caller, endpoint, params)
        if request_id is URI_ID and encoded.reply:
            return Answer(encoded.reply, encoded, endpoint.route)
        body = self.envelope.success(request_id, encoded.result, endpoint.error_member)
        return Answer(body, encoded, endpoint.route)

    def _result(self, caller: _Caller, endpoint: Endpoint, params: Params) -> CachedResult:
        route = endpoint.route
        if not route.is_chain_only(self._context, params):
            caller.chain_view.invalidate()
            return self._compute(caller, route, params)
        if route.reads_index:
            caller.chain_view.invalidate()
        version = caller.chain_view.now() if route.reads_index else caller.chain_view.version()
        if version is None or self._kept is None:
            return self._compute(caller, route, params)
        found = self._kept.find(route.name, route.cache, params, version)
        if found is not None:
            return found
        encoded = self._compute(caller, route, params)
        if caller.chain_view.now() != version:
            # A block came meanwhile: of which chain this was told is not known.
            return encoded
        around = self.envelope.around(URI_ID, endpoint.error_member)
        return self._kept.put(route.name, params, version, encoded, around)

    def _compute(self, caller: _Caller, route: Route[Any], params: Params) -> CachedResult:
        answer = route.call(self._context_of(caller), params)
        return CachedResult(self._dialect.encode(answer), route.cache.allows(params, answer))

    def _context_of(self, caller: _Caller) -> Context:
        return replace(self._context, client=caller.sender.client)

    def check_own(self, name: str) -> None:
        """The same of a method that a connection answers itself."""
        if not self.guard.has(name):
            raise self.envelope.unknown_method(name, _LEFT_OUT)
        self.guard.check(name)

    def _endpoint(self, name: str, caller: _Caller) -> Endpoint:
        endpoint = self._endpoints.get(name)
        if endpoint is None:
            hint = self._cures.get(name, "") if self.guard.has(name) else _LEFT_OUT
            raise self.envelope.unknown_method(name, hint)
        self.guard.check(name)
        if endpoint.route.writes and not caller.sender.may_write:
            raise OriginRefused(
                "pages of another site may not change state here (NODERPC_WRITE_ORIGINS allows"
                " their origin)"
            )
        if endpoint.route.signs and not caller.sender.may_sign:
            raise SigningRefused
        return endpoint
