"""One websocket of the EVM layer: every method and batches, and its subscriptions.

geth: rpc/subscription.go. Ids can't be guessed, and count on their own connection alone.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ... import jsoncodec
from ...jsonrpc.client_subscriptions import ClientSubscriptions, Subscription
from ...jsonrpc.context import Permissions
from ...jsonrpc.dispatch import Dispatcher, SessionMethods
from ...jsonrpc.params import Params, param
from ..codec.params import Id
from ..errors import EvmError
from .hub import EvmHub
from .topics import Topic, kind_of

_TOO_SLOW = "too slow: NODERPC_EVENT_BUFFER raises the number of events"


@dataclass(frozen=True, slots=True)
class _ById(Params):
    """Parameters of ``eth_unsubscribe``."""

    id: str = param(Id(), doc="Id of the subscription.")


class EvmSession:
    """Answers one connection's messages, and gathers its notifications.

    ``follow`` makes the feed follow a topic, ``send`` sends a reply, ``wake`` says that
    there is something to :meth:`pull`, and ``drop`` closes the connection of a slow reader:
    geth has no message that would say that something is missing.
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
        self._dispatcher = dispatcher
        self._hub = hub
        self._follow = follow
        self._send = send
        self._wake = wake
        self._drop = drop
        self._permissions = permissions
        self._held = ClientSubscriptions[str](hub, wake, dispatcher.backend)
        self._own: SessionMethods = {}
        if hub.is_open:
            self._own = {
                "eth_subscribe": self._subscribe,
                "eth_unsubscribe": self._unsubscribe,
            }

    def receive(self, body: bytes) -> None:
        """Answer one message, of one call or many."""
        reply = self._dispatcher.post(body, self._permissions, self._own)
        if reply.body:
            self._send(reply.body)
        self._held.begin()

    def _subscribe(self, params: bytes) -> bytes:
        wanted = self._dispatcher.loader(kind_of(params)).from_json(params)
        topic = wanted.topic()
        self._hub.check_limits(len(self._held))
        ring, cursor = self._hub.join(topic, self._wake)
        try:
            self._follow(topic)
        except Exception:
            self._hub.leave(ring, self._wake)
            raise
        # geth: 16 bytes, leading zeros cut.
        name = hex(secrets.randbits(128))
        shown = jsoncodec.encode(name)
        head = b'{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":'
        self._held.add(name, Subscription(shown, ring, cursor, head + shown + b',"result":'))
        return shown

    def _unsubscribe(self, params: bytes) -> bytes:
        name = self._dispatcher.loader(_ById).from_json(params).id
        if not self._held.end(name, "unsubscribed"):
            raise EvmError("subscription not found")
        return b"true"

    def pull(self) -> Iterator[bytes]:
        """Return waiting messages; with a subscription that fell behind the connection ends."""
        return self._held.pull(self._hang_up)

    def _hang_up(self, subscription: Subscription) -> Iterable[bytes]:
        self._drop(_TOO_SLOW)
        return ()

    def settle(self, seconds: float) -> bool:
        """None is left: each message is answered before the next."""
        return False

    def cancel(self) -> Iterable[bytes]:
        """No notices: geth has none."""
        return ()

    def close(self) -> None:
        """End every subscription."""
        self._held.close("disconnected")
