"""One client's subscriptions: what it asked for, and what waits for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, repeat, takewhile
from math import inf

from .. import jsoncodec
from ..errors import Busy, NodeRPCError, RPCError, ValueNotAllowed
from ..events.query import Query, check_length, parse
from ..wire.envelope import BadCall, Call
from ..wire.params import Text
from .client_subscriptions import ClientSubscriptions, Subscription
from .context import ANONYMOUS, Sender
from .dispatch import Dispatcher
from .params import NoParams, Params, param
from .route import StartedCall
from .subscriptions import QueryHub

# CometBFT: the code of a notice that a subscription has ended.
_SERVER_ERROR = -32000
_EMPTY = b"{}"
# Messages, and their bytes, that are read while the store takes those before them.
_MOST_BEGUN, _MOST_BEGUN_BYTES = 64, 1 << 18


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


class Session:
    """Answers one connection's messages, and gathers its notifications.

    ``follow`` sees to it that events are read, ``send`` sends replies, ``wake`` says that
    there is something to :meth:`pull`. A subscription begins once its reply is sent, so
    the reply is always read before the first event.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        hub: QueryHub,
        limits: Limits,
        *,
        follow: Callable[[], None],
        send: Callable[..., None],
        wake: Callable[[], None],
        sender: Sender = ANONYMOUS,
    ) -> None:
        self._dispatcher = dispatcher
        self._envelope = dispatcher.envelope
        self._hub = hub
        self._limits = limits
        self._follow = follow
        self._send = send
        self._wake = wake
        self._sender = sender
        self._query_params = dispatcher.loader(QueryParams)
        self._no_params = dispatcher.loader(NoParams)
        self._held = ClientSubscriptions[Query](hub, wake, dispatcher.backend)
        self._begun: list[StartedCall[bytes]] = []
        """Calls that are not answered yet."""
        self._begun_bytes = 0
        steps = (self._subscribe, self._unsubscribe, self._unsubscribe_all)
        self._own = dict(zip(WEBSOCKET_METHODS, steps, strict=True))

    def receive(self, body: bytes) -> None:
        """Answer one message, or begin to; a notification gets no answer."""
        try:
            # CometBFT: no batches on a websocket.
            call = self._envelope.parse_one(body)
        except RPCError as error:
            self.settle()
            self._send(self._envelope.failure(None, error))
            return
        if not isinstance(call, BadCall) and self._dispatcher.begins(call.method):
            if call.id is not None:
                self._begin(call, call.id, len(body))
            return
        self.settle()
        if isinstance(call, BadCall):
            self._send(self._envelope.failure(call.id, call.error))
        elif call.id is not None and call.method in self._own:
            self._answer(call, call.id)
        elif call.id is not None:
            self._send(self._dispatcher.over_websocket(call, call.id, self._sender))

    def _begin(self, call: Call, request_id: bytes, size: int) -> None:
        self._begun.append(
            self._dispatcher.begin_over_websocket(call, request_id, self._sender)
        )
        self._begun_bytes += size
        if len(self._begun) >= _MOST_BEGUN or self._begun_bytes >= _MOST_BEGUN_BYTES:
            self.settle()

    def settle(self, seconds: float = inf) -> bool:
        """Answer the calls that have begun, in their order, once the store has taken them or
        so many seconds on; whether any still wait."""
        ready = len(self._begun)
        if seconds != inf:
            patience = chain((seconds,), repeat(0.0))
            pairs = zip(self._begun, patience, strict=False)
            ready = sum(1 for _ in takewhile(lambda pair: pair[0].is_ready(pair[1]), pairs))
        done, self._begun = self._begun[:ready], self._begun[ready:]
        if done:
            self._send(*[begun.finish() for begun in done])
        if not self._begun:
            self._begun_bytes = 0
        return bool(self._begun)

    def _answer(self, call: Call, request_id: bytes) -> None:
        try:
            with self._dispatcher.instrumented(
                call.method, "websocket", is_session_method=True
            ):
                self._dispatcher.check_own(call.method)
                self._own[call.method](request_id, call.params)
        except Exception as error:
            self._send(self._dispatcher.failure_over_websocket(request_id, error))
            return
        self._send(self._envelope.success(request_id, _EMPTY, error_member=False))
        self._held.begin()

    def _subscribe(self, request_id: bytes, params: bytes) -> None:
        text = self._query_params.from_json(params).query
        # CometBFT: in this order.
        if not self._held and self._hub.clients >= self._limits.clients:
            raise Busy(
                f"max_subscription_clients {self._limits.clients} reached",
                "NODERPC_MAX_SUBSCRIPTION_CLIENTS raises it",
            )
        if len(self._held) >= self._limits.per_client:
            raise Busy(
                f"max_subscriptions_per_client {self._limits.per_client} reached",
                "NODERPC_MAX_SUBSCRIPTIONS_PER_CLIENT raises it",
            )
        query = self._parsed(text)
        if query in self._held:
            raise ValueNotAllowed("already subscribed")
        ring, cursor = self._hub.join(query, self._wake)
        try:
            self._follow()
        except Exception:
            self._hub.leave(ring, self._wake)
            raise
        head = (
            b'{"jsonrpc":"2.0","id":'
            + request_id
            + b',"result":{"query":'
            + jsoncodec.encode(text)
        )
        self._held.add(query, Subscription(request_id, ring, cursor, head + b',"data":'))

    def _parsed(self, text: str) -> Query:
        check_length(text, self._limits.query_bytes)
        try:
            return parse(text)
        except NodeRPCError as error:
            raise ValueNotAllowed(f"failed to parse query: {error}") from None

    def _unsubscribe(self, request_id: bytes, params: bytes) -> None:
        query = self._parsed(self._query_params.from_json(params).query)
        if not self._held.end(query, "unsubscribed"):
            raise ValueNotAllowed("subscription not found")

    def _unsubscribe_all(self, request_id: bytes, params: bytes) -> None:
        self._no_params.from_json(params)
        if not self._held:
            raise ValueNotAllowed("subscription not found")
        self._held.close("unsubscribed")

    def close(self) -> None:
        """Leave no call unfinished, and end every subscription."""
        self.settle()
        self._held.close("disconnected")

    def pull(self) -> Iterator[bytes]:
        """What waits; a subscription that fell behind ends with a notice."""
        return self._held.pull(self._notice)

    def _notice(self, subscription: Subscription) -> Iterable[bytes]:
        hint = "NODERPC_EVENT_BUFFER and NODERPC_EVENT_BUFFER_BYTES keep more"
        error = _cancelled("internal subscription event buffer is out of capacity", hint)
        return (self._envelope.failure(subscription.id, error),)

    def cancel(self) -> list[bytes]:
        """The notices for a client that reads nothing; its subscriptions have ended."""
        error = _cancelled("slow client", "read what is sent as it comes")
        return self._held.cancel(lambda each: self._envelope.failure(each.id, error))


def _cancelled(reason: str, hint: str) -> RPCError:
    # CometBFT: rpc/core/events.go.
    text = f"subscription was canceled (reason: {reason})"
    return RPCError(text, hint, code=_SERVER_ERROR, message="Server error")
