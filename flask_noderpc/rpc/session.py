"""One client's subscriptions: what it asked for, and what waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from .. import json
from ..errors import Busy, NodeRPCError, RPCError, ValueNotAllowed
from ..events.query import Query, check_length, parse
from ..wire.envelope import BadCall, Call
from ..wire.params import Text
from .dispatch import Dispatcher
from .params import NoParams, Params, param
from .subscriptions import Hub, Ring

# CometBFT: the code of a notice that a subscription has ended.
_SERVER_ERROR = -32000
_EMPTY = b"{}"


@dataclass(frozen=True, slots=True)
class QueryParams(Params):
    """Of ``subscribe`` and ``unsubscribe``."""

    query: str = param(Text(), doc="The event query.")


WEBSOCKET_METHODS: dict[str, type[Params]] = {
    "subscribe": QueryParams,
    "unsubscribe": QueryParams,
    "unsubscribe_all": NoParams,
}
"""What only a websocket answers, and its parameters."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one client may ask for; each is a setting that its error names."""

    clients: int
    per_client: int
    query_bytes: int


@dataclass(slots=True)
class _Subscription:
    """A place in a ring, and what stands around each event for this subscriber."""

    id: bytes
    ring: Ring
    cursor: int
    head: bytes

    def take(self) -> Iterator[bytes] | None:
        bodies = self.ring.since(self.cursor)
        if bodies is None:
            return None
        self.cursor += len(bodies)
        # Made one by one as they are written: all subscribers share the bodies.
        return (self.head + body + b"}}" for body in bodies)


class Session:
    """Answers one connection's messages, and gathers its notifications.

    ``follow`` sees to it that events are read, ``send`` sends a reply, ``wake`` says that
    there is something to :meth:`pull`. A subscription begins once its reply is sent, so
    the reply is always read before the first event.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        hub: Hub,
        limits: Limits,
        *,
        follow: Callable[[], None],
        send: Callable[[bytes], None],
        wake: Callable[[], None],
        may_write: bool = True,
    ) -> None:
        self._dispatcher = dispatcher
        self._envelope = dispatcher.envelope
        self._hub = hub
        self._limits = limits
        self._follow = follow
        self._send = send
        self._wake = wake
        self._may_write = may_write
        self._query_params = dispatcher.loader(QueryParams)
        self._no_params = dispatcher.loader(NoParams)
        self._lock = threading.Lock()
        self._subscriptions: dict[Query, _Subscription] = {}
        steps = (self._subscribe, self._unsubscribe, self._unsubscribe_all)
        self._own = dict(zip(WEBSOCKET_METHODS, steps, strict=True))

    def receive(self, body: bytes) -> None:
        """Answer one message; a notification gets no answer."""
        try:
            # CometBFT: no batches on a websocket.
            call = self._envelope.parse_one(body)
        except RPCError as error:
            self._send(self._envelope.failure(None, error))
            return
        if isinstance(call, BadCall):
            self._send(self._envelope.failure(call.id, call.error))
        elif call.id is not None and call.method in self._own:
            self._answer(call, call.id)
        elif call.id is not None:
            self._send(
                self._dispatcher.over_websocket(call, call.id, may_write=self._may_write)
            )

    def _answer(self, call: Call, own_id: bytes) -> None:
        try:
            begin = self._own[call.method](own_id, call.params)
        except Exception as error:
            self._send(self._dispatcher.failure_over_websocket(own_id, error))
            return
        self._send(self._envelope.success(own_id, _EMPTY, error_member=False))
        if begin is not None:
            with self._lock:
                self._subscriptions[begin.ring.query] = begin
            self._wake()

    def _subscribe(self, own_id: bytes, params: bytes) -> _Subscription:
        text = self._query_params.from_json(params).query
        # CometBFT: in this order.
        if not self._subscriptions and self._hub.clients >= self._limits.clients:
            raise Busy(
                f"max_subscription_clients {self._limits.clients} reached",
                "NODERPC_MAX_SUBSCRIPTION_CLIENTS raises it",
            )
        if len(self._subscriptions) >= self._limits.per_client:
            raise Busy(
                f"max_subscriptions_per_client {self._limits.per_client} reached",
                "NODERPC_MAX_SUBSCRIPTIONS_PER_CLIENT raises it",
            )
        query = self._parsed(text)
        if query in self._subscriptions:
            raise ValueNotAllowed("already subscribed")
        ring, cursor = self._hub.join(query, self._wake)
        try:
            self._follow()
        except Exception:
            self._hub.leave(ring, self._wake)
            raise
        head = b'{"jsonrpc":"2.0","id":' + own_id + b',"result":{"query":' + json.encode(text)
        return _Subscription(own_id, ring, cursor, head + b',"data":')

    def _parsed(self, text: str) -> Query:
        check_length(text, self._limits.query_bytes)
        try:
            return parse(text)
        except NodeRPCError as error:
            raise ValueNotAllowed(f"failed to parse query: {error}") from None

    def _unsubscribe(self, own_id: bytes, params: bytes) -> None:
        query = self._parsed(self._query_params.from_json(params).query)
        if query not in self._subscriptions:
            raise ValueNotAllowed("subscription not found")
        self._end(query)

    def _unsubscribe_all(self, own_id: bytes, params: bytes) -> None:
        self._no_params.from_json(params)
        if not self._subscriptions:
            raise ValueNotAllowed("subscription not found")
        self.close()

    def _end(self, query: Query) -> None:
        with self._lock:
            ended = self._subscriptions.pop(query, None)
        if ended is not None:
            self._hub.leave(ended.ring, self._wake)

    def close(self) -> None:
        """End every subscription."""
        for query in list(self._subscriptions):
            self._end(query)

    def pull(self) -> Iterator[bytes]:
        """What waits; a subscription that fell behind ends with a notice."""
        waiting: list[Iterable[bytes]] = []
        # The copy is made in one step, so it needs no lock.
        for subscription in tuple(self._subscriptions.values()):
            found = subscription.take()
            if found is None:
                self._end(subscription.ring.query)
                waiting.append((self._envelope.failure(subscription.id, _cancelled()),))
            else:
                waiting.append(found)
        return chain.from_iterable(waiting)


def _cancelled() -> RPCError:
    return RPCError(
        # CometBFT: rpc/core/events.go.
        "subscription was canceled (reason: internal subscription event buffer is out of"
        " capacity)",
        "NODERPC_EVENT_BUFFER and NODERPC_EVENT_BUFFER_BYTES keep more",
        code=_SERVER_ERROR,
        message="Server error",
    )
