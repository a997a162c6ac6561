"""From a call to its encoded answer, the same way for every transport.

1. A transport reads bytes, or the name and values of a GET.
2. :mod:`.messages` makes calls of a body.
3. The dispatcher finds the route's endpoint, reads its parameters, and calls the handler.
4. The dialect encodes the result, and the envelope is put around it.

Whatever a handler or a backend raises becomes an error object in :func:`to_rpc_error`,
the only place that catches everything.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from ..errors import (
    BackendError,
    ConfigurationError,
    InternalError,
    InvalidRequest,
    MethodNotFound,
    NodeRPCError,
    OriginRefused,
    ParseError,
    RPCError,
    StoreError,
)
from ..wire.dialect import Dialect
from . import messages
from .context import Context
from .messages import BadCall
from .params import P, ParamLoader, Params
from .route import Route, RouteTable

log = logging.getLogger("flask_noderpc.rpc")

_LONGEST_NAME_SHOWN = 64


@dataclass(frozen=True, slots=True)
class Reply:
    """What a transport sends."""

    status: HTTPStatus
    body: bytes
    cacheable: bool = False


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A route, ready to be called in one dialect."""

    route: Route[Any]
    loader: ParamLoader[Any]
    error_member: bool


class Dispatcher:
    """Answers calls of one mount; ``ready`` is asked before each, and may raise."""

    def __init__(
        self, routes: RouteTable, dialect: Dialect, context: Context, ready: Callable[[], None]
    ) -> None:
        dialect.require({route.name: route.result for route in routes})
        self._dialect = dialect
        self._context = context
        self._ready = ready
        self._loaders: dict[tuple[type[Params], tuple[str, ...]], ParamLoader[Any]] = {}
        self._endpoints = {
            route.name: Endpoint(
                route,
                self.loader(route.params, dialect.ignored.get(route.name, ())),
                route.result in dialect.error_member,
            )
            for route in routes
        }

    def loader(self, params: type[P], ignored: tuple[str, ...] = ()) -> ParamLoader[P]:
        """Reads parameters as the dialect does; made once, whoever asks."""
        key = (params, ignored)
        if key not in self._loaders:
            self._loaders[key] = ParamLoader(params, self._dialect.params, ignored)
        return self._loaders[key]

    def get(self, name: str, values: Mapping[str, str], *, may_write: bool = True) -> Reply:
        """The answer to a GET."""
        try:
            endpoint = self._endpoint(name, may_write)
            self._ready()
            params = endpoint.loader.from_uri(values)
            answer = endpoint.route.call(self._context, params)
            body = self._reply(endpoint, answer, messages.URI_ID)
            return Reply(HTTPStatus.OK, body, endpoint.route.cache.allows(params, answer))
        except Exception as error:
            status = self._dialect.status_of(error) if isinstance(error, NodeRPCError) else None
            return Reply(
                status or HTTPStatus.INTERNAL_SERVER_ERROR,
                messages.failure(messages.URI_ID, to_rpc_error(error)),
            )

    def post(self, body: bytes, *, may_write: bool = True) -> Reply:
        """The answer to a JSON-RPC body; empty when it holds notifications only."""
        try:
            calls = messages.parse(body, self._context.settings.max_batch)
        except (ParseError, InvalidRequest) as error:
            return Reply(HTTPStatus.BAD_REQUEST, messages.failure(messages.NO_ID, error))
        replies = self._replies(calls, may_write)
        if not replies:
            return Reply(HTTPStatus.OK, b"")
        lone = len(replies) == 1 and self._context.rules.lone_reply_is_bare
        if lone or not calls.is_batch:
            bad = not calls.is_batch and isinstance(calls.items[0], BadCall)
            return Reply(HTTPStatus.BAD_REQUEST if bad else HTTPStatus.OK, replies[0])
        return Reply(HTTPStatus.OK, messages.batch(replies))

    def _replies(self, calls: messages.Calls, may_write: bool) -> list[bytes]:
        replies: list[bytes] = []
        room = self._context.settings.max_batch_response_bytes
        for item in calls.items:
            if isinstance(item, BadCall):
                replies.append(messages.failure(item.id, item.error))
            elif item.id is not None:
                # CometBFT: a notification, which has no id, is not even executed.
                reply = b""
                if room > 0:
                    reply = self.call(item.method, item.params, item.id, may_write=may_write)
                room -= len(reply)
                if calls.is_batch and room <= 0:
                    # From here on nothing more is worked out, to be thrown away.
                    room, reply = 0, messages.failure(item.id, _too_much())
                replies.append(reply)
        return replies

    def call(
        self, method: str, params: bytes, own_id: bytes, *, may_write: bool = True
    ) -> bytes:
        """The reply to one call."""
        try:
            endpoint = self._endpoint(method, may_write)
            self._ready()
            answer = endpoint.route.call(self._context, endpoint.loader.from_json(params))
            return self._reply(endpoint, answer, own_id)
        except Exception as error:
            return messages.failure(own_id, to_rpc_error(error))

    def _endpoint(self, name: str, may_write: bool) -> Endpoint:
        try:
            endpoint = self._endpoints[name]
        except KeyError:
            raise MethodNotFound(f"no method {name[:_LONGEST_NAME_SHOWN]!r}") from None
        if endpoint.route.writes and not may_write:
            raise OriginRefused(
                "pages of another site may not change state here (NODERPC_WRITE_ORIGINS allows"
                " their origin)"
            )
        return endpoint

    def _reply(self, endpoint: Endpoint, answer: object, own_id: bytes) -> bytes:
        return messages.success(own_id, self._dialect.encode(answer), endpoint.error_member)


def _too_much() -> RPCError:
    return InternalError(
        "the answer to the batch is too large (NODERPC_MAX_BATCH_RESPONSE_BYTES raises it)"
    )


def to_rpc_error(error: Exception) -> RPCError:
    """The error object of an exception; only what we raised ourselves shows its text."""
    match error:
        case RPCError():
            return error
        case StoreError():
            # Where the store lies is for the operator alone.
            log.error("%s", error)
            return InternalError(error.reason)
        case BackendError():
            return InternalError(str(error))
        case ConfigurationError():
            log.error("the node can't start: %s", error)
            return InternalError("the node can't start; the server's log says why")
        case _:
            log.error("a call failed", exc_info=error)
            return InternalError("the call failed; the server's log says why")
