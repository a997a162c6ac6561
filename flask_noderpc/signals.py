"""What the node tells the app that hosts it, as Flask does: by blinker's signals.

The sender is always the mount's backend. Receivers run where it happens, so they must be
quick; one that raises is logged, and nothing else comes of it.
"""

from __future__ import annotations

import logging
from typing import Any

from blinker import NamedSignal, Namespace

log = logging.getLogger("flask_noderpc.signals")

_signals = Namespace()

rpc_called = _signals.signal("rpc-called")
"""A call was answered: ``method``, which is ``unknown`` where there is none of that name;
``seconds``; ``outcome``, 0 or the code of the error; ``transport``, of ``get``, ``post`` and
``websocket``."""

block_committed = _signals.signal("block-committed")
"""This process made a block, and keeps it: ``height``."""

subscription_opened = _signals.signal("subscription-opened")
"""A websocket's client subscribed."""

subscription_closed = _signals.signal("subscription-closed")
"""It no longer is subscribed: ``reason``, of ``unsubscribed``, ``too slow`` and
``disconnected``."""

websocket_opened = _signals.signal("websocket-opened")
"""A websocket is open."""

websocket_closed = _signals.signal("websocket-closed")
"""It has ended."""

async_tx_refused = _signals.signal("async-tx-refused")
"""``broadcast_tx_async`` had answered, and then the store did not take the transaction:
``error``."""

wait_began = _signals.signal("wait-began")
"""A call waits for a block, one of those that NODERPC_MAX_WAITING_CALLS bounds."""

wait_ended = _signals.signal("wait-ended")
"""It waits no longer."""


def tell(signal: NamedSignal, sender: object, **said: Any) -> None:
    """Send a signal, if anybody listens."""
    if signal.receivers:
        try:
            signal.send(sender, **said)
        except Exception:
            log.exception("a receiver of %s failed", signal.name)
