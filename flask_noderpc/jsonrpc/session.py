"""Websocket sessions: the base class for all APIs, and the session of the node RPC."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, repeat, takewhile
from math import inf
from typing import Generic, Protocol, TypeVar

from .. import jsoncodec
from ..concurrency import Pending
from ..errors import Busy, NodeRPCError, RPCError, ValueNotAllowed
from ..events.messages import check_events_available
from ..events.query import Query, check_length, parse
from ..wire.envelope import BadCall
from ..wire.params import Text
from .context import ANONYMOUS, Permissions
from .dispatch import Dispatcher
from .params import NoParams, Params, param
from .subscriptions import (
    ClientSubscriptions,
    EventBuffer,
    EventBuffers,
    QueryHub,
    Subscription,
)

K = TypeVar("K", bound=Hashable)
T = TypeVar("T", bound=Hashable)


class Peer(Protocol):
    """The open connection of a session."""

    def send(self, *payloads: bytes) -> None:
        """Send messages."""

    def wake(self) -> None:
        """Signal that the session has messages to send."""

    def drop(self, reason: str) -> None:
        """Close the connection, whose client is too slow."""


class WebSocketSession(ABC, Generic[K, T]):
    """Executor of one connection's messages, with its subscriptions.

    ``K`` is the type of subscription names, and ``T`` the type of topics. ``follow`` starts
    the feed of a topic's events.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        hub: EventBuffers[T],
        *,
        peer: Peer,
        follow: Callable[[T], None],
        permissions: Permissions,
    ) -> None:
        self._dispatcher = dispatcher
        self._buffers = hub
        self._follow = follow
        self._send = peer.send
        # This callback also identifies the client in the event buffers.
        self._wake = peer.wake
        self._permissions = permissions
        self._subscriptions = ClientSubscriptions[K](hub, self._wake, dispatcher.backend)

    @abstractmethod
    def receive(self, body: bytes) -> None:
        """Execute a message of the client, and send the response."""

    @abstractmethod
    def overflowed(self, subscription: Subscription) -> Iterable[bytes]:
        """Return the last messages of a subscription that fell behind its event buffer."""

    def _open(
        self,
        name: K,
        topic: T,
        request_id: bytes,
        head: bytes,
        make: Callable[[bytes, EventBuffer[T], int, bytes], Subscription] = Subscription,
    ) -> None:
        """Add a subscription to a topic; ``head`` is the JSON before each of its events."""
        buffer, cursor = self._buffers.join(topic, self._wake)
        try:
            self._follow(topic)
            made = make(request_id, buffer, cursor, head)
        except Exception:
            self._buffers.leave(buffer, self._wake)
            raise
        self._subscriptions.add(name, made)

    def settle(self, seconds: float) -> bool:
        """Send the responses of calls that wait for the store, waiting at most ``seconds``;
        return true if some calls still wait."""
        return False

    def pull(self) -> Iterator[bytes]:
        """Yield the messages to send; a subscription that fell behind ends."""
        return self._subscriptions.pull(self.overflowed)

    def cancel(self) -> Iterable[bytes]:
        """End all subscriptions, as the client does not read; return a notice for each."""
        return ()

    def close(self) -> None:
        """End all subscriptions."""
        self._subscriptions.close("disconnected")


# CometBFT: error code of the notice that a subscription was canceled.
_SERVER_ERROR = -32000
_EMPTY = b"{}"
# Maximum number of messages, and of their bytes, to read while the store handles earlier ones.
_MAX_STARTED, _MAX_STARTED_BYTES = 512, 1 << 18
# Number of messages after which finished responses are sent.
_GROUP = 64


@dataclass(frozen=True, slots=True)
class QueryParams(Params):
    """Parameters of ``subscribe`` and ``unsubscribe``."""

    query: str = param(Text(), doc="The event query.")


WEBSOCKET_METHODS: dict[str, type[Params]] = {
    "subscribe": QueryParams,
    "unsubscribe": QueryParams,
    "unsubscribe_all": NoParams,
}
"""Methods that exist only on a websocket, with their parameters."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on subscriptions: clients that have any, and subscriptions per client."""

    clients: int
    per_client: int


class Session(WebSocketSession[Query, Query]):
    """Session of the node RPC's websocket; the name of a subscription is its query.

    A subscription begins after its response is sent, so the client reads the response before
    the first event.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        hub: QueryHub,
        limits: Limits,
        *,
        peer: Peer,
        follow: Callable[[], None],
        permissions: Permissions = ANONYMOUS,
    ) -> None:
        super().__init__(
            dispatcher, hub, peer=peer, follow=lambda _: follow(), permissions=permissions
        )
        self._envelope = dispatcher.envelope
        self._hub = hub
        self._limits = limits
        self._query_params = dispatcher.loader(QueryParams)
        self._no_params = dispatcher.loader(NoParams)
        self._started: list[tuple[Pending[bytes], int]] = []
        """Calls that wait for the store, with the size of their messages in bytes."""
        steps = (self._subscribe, self._unsubscribe, self._unsubscribe_all)
        self._methods = dict(zip(WEBSOCKET_METHODS, steps, strict=True))

    def receive(self, body: bytes) -> None:
        """Execute one message, or start its call if that waits for the store; a notification
        gets no response."""
        try:
            # Parse a single call, as CometBFT accepts no batches on a websocket.
            call = self._envelope.parse_one(body)
        except RPCError as error:
            self.settle()
            self._send(self._envelope.failure(None, error))
            return
        waits = not isinstance(call, BadCall) and self._dispatcher.waits(call.method)
        if not waits:
            self.settle()
        if isinstance(call, BadCall):
            self._send(self._envelope.failure(call.id, call.error))
        elif call.id is not None:
            begun = self._dispatcher.begin(call, call.id, self._permissions, self._methods)
            if waits:
                self._add(begun, len(body))
            else:
                self._send(begun.result())
                self._subscriptions.begin()

    def _add(self, begun: Pending[bytes], size: int) -> None:
        self._started.append((begun, size))
        if len(self._started) % _GROUP and size < _MAX_STARTED_BYTES // _GROUP:
            return
        is_full = len(self._started) >= _MAX_STARTED
        if is_full or sum(size for _, size in self._started) >= _MAX_STARTED_BYTES:
            self.settle()
        else:
            self.settle(0)

    def settle(self, seconds: float = inf) -> bool:
        """Send the responses of started calls in order, waiting for the store at most
        ``seconds``; return true if some calls still wait."""
        count = len(self._started)
        if seconds != inf:
            timeouts = chain((seconds,), repeat(0.0))
            calls = (call for call, _ in self._started)
            pairs = zip(calls, timeouts, strict=False)
            count = sum(1 for _ in takewhile(lambda pair: pair[0].is_done(pair[1]), pairs))
        done, self._started = self._started[:count], self._started[count:]
        if done:
            self._send(*[call.result() for call, _ in done])
        return bool(self._started)

    def _subscribe(self, request_id: bytes, params: bytes) -> bytes:
        text = self._query_params.from_json(params).query
        # The order of these checks is CometBFT's.
        if not self._subscriptions and self._hub.clients >= self._limits.clients:
            raise Busy(
                f"max_subscription_clients {self._limits.clients} reached",
                "raise NODERPC_MAX_SUBSCRIPTION_CLIENTS",
            )
        if len(self._subscriptions) >= self._limits.per_client:
            raise Busy(
                f"max_subscriptions_per_client {self._limits.per_client} reached",
                "raise NODERPC_MAX_SUBSCRIPTIONS_PER_CLIENT",
            )
        query = self._parsed(text)
        if query in self._subscriptions:
            raise ValueNotAllowed("already subscribed")
        check_events_available(self._dispatcher.backend, query)
        head = (
            b'{"jsonrpc":"2.0","id":'
            + request_id
            + b',"result":{"query":'
            + jsoncodec.encode(text)
        )
        self._open(query, query, request_id, head + b',"data":')
        return _EMPTY

    def _parsed(self, text: str) -> Query:
        check_length(text)
        try:
            return parse(text)
        except NodeRPCError as error:
            raise ValueNotAllowed(f"failed to parse query: {error}") from None

    def _unsubscribe(self, request_id: bytes, params: bytes) -> bytes:
        query = self._parsed(self._query_params.from_json(params).query)
        if not self._subscriptions.end(query, "unsubscribed"):
            raise ValueNotAllowed("subscription not found")
        return _EMPTY

    def _unsubscribe_all(self, request_id: bytes, params: bytes) -> bytes:
        self._no_params.from_json(params)
        if not self._subscriptions:
            raise ValueNotAllowed("subscription not found")
        self._subscriptions.close("unsubscribed")
        return _EMPTY

    def close(self) -> None:
        """Send the responses of all started calls, and end all subscriptions."""
        try:
            self.settle()
        finally:
            super().close()

    def overflowed(self, subscription: Subscription) -> Iterable[bytes]:
        """Return CometBFT's notice that a subscription was canceled."""
        reason = subscription.reason
        hint = "the events have been replaced; read the blocks again, and subscribe again"
        if not reason:
            reason = "internal subscription event buffer is out of capacity"
            hint = "read events faster, or raise NODERPC_EVENT_BUFFER"
        error = _cancelled(reason, hint)
        return (self._envelope.failure(subscription.id, error),)

    def cancel(self) -> list[bytes]:
        """End all subscriptions, as the client does not read; return a notice for each."""
        error = _cancelled("slow client", "read events as they arrive")
        return self._subscriptions.cancel(lambda each: self._envelope.failure(each.id, error))


def _cancelled(reason: str, hint: str) -> RPCError:
    # CometBFT: rpc/core/events.go.
    text = f"subscription was canceled (reason: {reason})"
    return RPCError(text, hint, code=_SERVER_ERROR, message="Server error")
