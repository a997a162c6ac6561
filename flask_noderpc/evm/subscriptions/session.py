"""One websocket of the EVM layer: every method and batches, and its subscriptions.

geth: rpc/subscription.go. Ids can't be guessed, and count on their own connection alone.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ... import jsoncodec
from ...jsonrpc.client_subscriptions import Subscription
from ...jsonrpc.context import Permissions
from ...jsonrpc.dispatch import Dispatcher, SessionMethods
from ...jsonrpc.params import Params, param
from ...jsonrpc.websocket_session import WebSocketSession
from ..codec.params import Id
from ..errors import EvmError
from .hub import EvmHub
from .topics import Topic, kind_of

_TOO_SLOW = "too slow: NODERPC_EVENT_BUFFER raises the number of events"


@dataclass(frozen=True, slots=True)
class _ById(Params):
    """Parameters of ``eth_unsubscribe``."""

    id: str = param(Id(), doc="Id of the subscription.")


class EvmSession(WebSocketSession[str, Topic]):
    """Session of the EVM layer's websocket, whose subscriptions are named by their ids.

    ``drop`` closes the connection of a slow reader: geth has no message that would say that
    something is missing.
    """

    def __init__(  # keywords, and what they belong to
        self,
        dispatcher: Dispatcher,
        hub: EvmHub,
        *,
        follow: Callable[[Topic], None],
        send: Callable[[bytes], None],
        wake: Callable[[], None],
        drop: Callable[[str], None],
        permissions: Permissions,
    ) -> None:
        super().__init__(
            dispatcher, hub, follow=follow, send=send, wake=wake, permissions=permissions
        )
        self._hub = hub
        self._drop = drop
        self._methods: SessionMethods = {}
        if hub.is_open:
            self._methods = {
                "eth_subscribe": self._subscribe,
                "eth_unsubscribe": self._unsubscribe,
            }

    def receive(self, body: bytes) -> None:
        """Answer one message, of one call or many."""
        reply = self._dispatcher.post(body, self._permissions, self._methods)
        if reply.body:
            self._send(reply.body)
        self._subscriptions.begin()

    def _subscribe(self, params: bytes) -> bytes:
        wanted = self._dispatcher.loader(kind_of(params)).from_json(params)
        topic = wanted.topic()
        self._hub.check_limits(len(self._subscriptions))
        # geth: 16 bytes, leading zeros cut.
        name = hex(secrets.randbits(128))
        shown = jsoncodec.encode(name)
        head = b'{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":'
        self._open(name, topic, shown, head + shown + b',"result":')
        return shown

    def _unsubscribe(self, params: bytes) -> bytes:
        name = self._dispatcher.loader(_ById).from_json(params).id
        if not self._subscriptions.end(name, "unsubscribed"):
            raise EvmError("subscription not found")
        return b"true"

    def overflowed(self, subscription: Subscription) -> Iterable[bytes]:
        """Close the connection, without a notice."""
        self._drop(_TOO_SLOW)
        return ()
