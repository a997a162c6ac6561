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
from ..errors import (
    AnswerTooLarge,
    NodeRPCError,
    OriginRefused,
    RPCError,
    SigningRefused,
)
from ..signals import rpc_called, tell
from ..wire.dialect import Dialect
from ..wire.envelope import URI_ID, BadCall, Call, Calls
from .allowance import Allowance
from .context import ANYBODY, Context, Sender
from .failures import as_rpc_error, to_rpc_error
from .guard import OPEN, Guard
from .kept_answers import Encoded, KeptAnswers
from .params import P, ParamLoader, Params, Remembered
from .reply import Answer, Reply, Told
from .route import Begun, Route, RouteTable
from .sight import SharedSight, Sight

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


OwnMethods = Mapping[str, Callable[[bytes], bytes]]
"""Methods of one connection: parameters to the encoded result."""


@dataclass(frozen=True, slots=True)
class _Caller:
    """Who calls and how, what it sees, and what only its connection answers."""

    sender: Sender
    transport: str
    sight: Sight
    own: OwnMethods | None = None


_UNHEARD = nullcontext()


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
        self._posts_may_be_kept = dialect.http.posts_may_be_kept and not guard.asks
        self._context = context
        self.backend = context.backend
        self._ready = ready
        self._cures = cures or {}
        most = context.settings.cache_bytes
        self._kept = KeptAnswers(most, context.memory) if most else None
        self._remembered = Remembered()
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
            map(self._remembered.reader, readers) if route.of_chain else readers
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
        self, name: str, values: bytes | Mapping[str, str], sender: Sender = ANYBODY
    ) -> Reply:
        """The answer to a GET with a query string, or with values that came in two ways."""
        try:
            with self.telling(name, "get"):
                caller = _Caller(sender, "get", Sight(self.backend))
                endpoint = self._endpoint(name, caller)
                self._make_ready(endpoint)
                if isinstance(values, bytes):
                    params = endpoint.from_query(values)
                else:
                    params = endpoint.loader.from_uri(values)
                answer = self._call(caller, endpoint, params, URI_ID)
            told = Told(self, endpoint.route, answer.encoded, "get")
            cacheable = answer.cacheable and not self.guard.asks
            return Reply(HTTPStatus.OK, answer.body, cacheable, answer.encoded.etag, told)
        except Exception as error:
            self._propagate(error)
            return self.failed(URI_ID, error)

    def failed(self, own_id: bytes | None, error: Exception) -> Reply:
        """The answer to a GET that failed, or to whoever may not read here."""
        status = self._dialect.status_of(error)
        return Reply(status, self.envelope.failure(own_id, to_rpc_error(error)))

    def refused(self, error: RPCError, own_id: bytes | None = None) -> Reply:
        """The answer to what stands in the place of a body with a call."""
        return Reply(self.envelope.status_of(error), self.envelope.failure(own_id, error))

    def post(
        self,
        body: bytes,
        sender: Sender = ANYBODY,
        own: OwnMethods | None = None,
    ) -> Reply:
        """The answer to a JSON-RPC body; empty when it holds notifications only."""
        try:
            calls = self.envelope.parse(body, self._max_batch)
        except RPCError as error:
            return Reply(self.envelope.status_of(error), self.envelope.refusal(error))
        sight = SharedSight(self.backend) if calls.is_batch else Sight(self.backend)
        # Only a connection has methods of its own.
        caller = _Caller(sender, "post" if own is None else "websocket", sight, own)
        if not calls.is_batch:
            return self._alone(calls.items[0], caller)
        try:
            answers = self._answers(calls, caller)
        finally:
            sight.forget()
        if not answers:
            return Reply(HTTPStatus.OK, b"")
        cacheable = self._posts_may_be_kept and all(answer.cacheable for answer in answers)
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
        may_be_kept = answer.cacheable and self._posts_may_be_kept
        told = Told(self, answer.route, answer.encoded, "post") if answer.route else None
        return Reply(HTTPStatus.OK, answer.body, may_be_kept, told=told)

    def _answers(self, calls: Calls, caller: _Caller) -> list[Answer]:
        answers: list[Answer] = []
        allowance = Allowance(self._context.settings)
        for number, item in enumerate(calls.items):
            if number and number % _CALLS_A_TURN == 0:
                # A moment of the store is held for no longer than a turn.
                caller.sight.forget()
                next_turn()
            if isinstance(item, BadCall):
                answers.append(Answer(self.envelope.failure(item.id, item.error)))
            elif item.id is not None:
                answers.append(self._within(allowance, item, item.id, caller))
            elif allowance.spent() is None:
                self._notified(item, caller)
        return answers

    def _within(
        self, allowance: Allowance, call: Call, own_id: bytes, caller: _Caller
    ) -> Answer:
        refusal = allowance.spent()
        if refusal is not None:
            # Nothing more is worked out, to be thrown away.
            return Answer(self.envelope.failure(own_id, refusal))
        answer = self._answer(call, own_id, caller)
        if allowance.takes(len(answer.body)):
            return answer
        return Answer(self.envelope.failure(own_id, AnswerTooLarge()))

    def _notified(self, call: Call, caller: _Caller) -> None:
        if self.envelope.runs_notifications:
            self._answer(call, b"null", caller)

    def _answer(self, call: Call, own_id: bytes, caller: _Caller) -> Answer:
        try:
            return self._called(call, own_id, caller)
        except Exception as error:
            if caller.transport == "post":
                self._propagate(error)
            return Answer(self.envelope.failure(own_id, to_rpc_error(error)))

    def _propagate(self, error: Exception) -> None:
        """Raise what is a bug and no answer, where the app wants to see it; calls of a
        websocket are answered, as the others of that connection would be lost."""
        if not isinstance(error, NodeRPCError) and self._context.propagates():
            raise error

    def over_websocket(self, call: Call, own_id: bytes, sender: Sender = ANYBODY) -> bytes:
        """The reply to one call that came over a websocket."""
        try:
            caller = _Caller(sender, "websocket", Sight(self.backend))
            return self._called(call, own_id, caller).body
        except Exception as error:
            return self.failure_over_websocket(own_id, error)

    def begins(self, method: str) -> bool:
        """Return true if :meth:`begin_over_websocket` takes calls of a method."""
        endpoint = self._endpoints.get(method)
        return endpoint is not None and endpoint.route.begin is not None

    def begin_over_websocket(
        self, call: Call, own_id: bytes, sender: Sender = ANYBODY
    ) -> Begun[bytes]:
        """Do what can be done of a call at once; the reply comes later."""
        steps = self._in_two_steps(call, own_id, sender)
        first = next(steps)
        if isinstance(first, bytes):
            return Begun(lambda: first)
        return Begun(partial(next, steps), first)

    def _in_two_steps(self, call: Call, own_id: bytes, sender: Sender) -> Iterator[Any]:
        """Yield the ``is_ready`` of a call that has begun, and then its reply."""
        try:
            with self.telling(call.method, "websocket"):
                caller = _Caller(sender, "websocket", Sight(self.backend))
                endpoint = self._endpoint(call.method, caller)
                self._make_ready(endpoint)
                params = endpoint.from_json(call.params)
                assert endpoint.route.begin is not None
                begun = endpoint.route.begin(self._context_of(caller), params)
                yield begun.is_ready
                result = self._dialect.encode(begun.finish())
                reply = self.envelope.success(own_id, result, endpoint.error_member)
        except Exception as error:
            reply = self.failure_over_websocket(own_id, error)
        yield reply

    def failure_over_websocket(self, own_id: bytes | None, error: Exception) -> bytes:
        """The reply to what could not be done over a websocket."""
        said = self.envelope.over_websocket(to_rpc_error(error))
        return self.envelope.failure(own_id, said)

    def _called(self, call: Call, own_id: bytes, caller: _Caller) -> Answer:
        own = caller.own.get(call.method) if caller.own else None
        with self.telling(call.method, caller.transport, is_own=own is not None):
            if own is not None:
                self.check_own(call.method)
                self._ready()
                # A subscription begins now, whatever was told before it.
                caller.sight.forget()
                result = own(call.params)
                return Answer(self.envelope.success(own_id, result, error_member=False))
            endpoint = self._endpoint(call.method, caller)
            if not caller.sight.is_held:
                self._make_ready(endpoint)
            params = endpoint.from_json(call.params)
            return self._call(caller, endpoint, params, own_id)

    def telling(
        self, method: str, transport: str, *, is_own: bool = False
    ) -> AbstractContextManager[None]:
        """Tells of a call that is answered meanwhile, to whoever listens.

        ``is_own`` is of a method that a connection has beside the table.
        """
        if not rpc_called.receivers and self._context.log_call is None:
            return _UNHEARD
        return self._telling(
            method if is_own or method in self._names else "unknown", transport
        )

    @contextmanager
    def _telling(self, method: str, transport: str) -> Iterator[None]:
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
            tell(rpc_called, self.backend, **said)

    def _make_ready(self, endpoint: Endpoint) -> None:
        # What is always the same is answered also where the store can't be read.
        if not endpoint.route.is_fixed:
            self._ready()

    def _call(
        self, caller: _Caller, endpoint: Endpoint, params: Params, own_id: bytes
    ) -> Answer:
        encoded = self._result(caller, endpoint, params)
        if own_id is URI_ID and encoded.reply:
            return Answer(encoded.reply, encoded, endpoint.route)
        body = self.envelope.success(own_id, encoded.result, endpoint.error_member)
        return Answer(body, encoded, endpoint.route)

    def _result(self, caller: _Caller, endpoint: Endpoint, params: Params) -> Encoded:
        route = endpoint.route
        if not route.is_of_chain(self._context, params):
            caller.sight.forget()
            return self._worked_out(caller, route, params)
        if route.searches:
            caller.sight.forget()
        version = caller.sight.now() if route.searches else caller.sight.version()
        if version is None or self._kept is None:
            return self._worked_out(caller, route, params)
        found = self._kept.find(route.name, route.cache, params, version)
        if found is not None:
            return found
        encoded = self._worked_out(caller, route, params)
        if caller.sight.now() != version:
            # A block came meanwhile: of which chain this was told is not known.
            return encoded
        around = self.envelope.around(URI_ID, endpoint.error_member)
        return self._kept.keep(route.name, params, version, encoded, around)

    def _worked_out(self, caller: _Caller, route: Route[Any], params: Params) -> Encoded:
        answer = route.call(self._context_of(caller), params)
        return Encoded(self._dialect.encode(answer), route.cache.allows(params, answer))

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
            cure = self._cures.get(name, "") if self.guard.has(name) else _LEFT_OUT
            raise self.envelope.unknown_method(name, cure)
        self.guard.check(name)
        if endpoint.route.writes and not caller.sender.may_write:
            raise OriginRefused(
                "pages of another site may not change state here (NODERPC_WRITE_ORIGINS allows"
                " their origin)"
            )
        if endpoint.route.signs and not caller.sender.may_sign:
            raise SigningRefused
        return endpoint
