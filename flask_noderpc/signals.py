"""blinker signals of the node, for the app that serves it.

The sender is always the mount's backend. Receivers run in the thread of the event, so they must
be quick; an exception of a receiver is logged and has no other effect.
"""

from __future__ import annotations

import logging
from typing import Any

from blinker import NamedSignal, Namespace

log = logging.getLogger("flask_noderpc.signals")

_signals = Namespace()

rpc_called = _signals.signal("rpc-called")
"""A call was executed: ``method`` (``unknown`` for a method that does not exist); ``seconds``;
``outcome``, 0 or the code of the error; ``transport``: ``get``, ``post``, ``websocket`` or
``rest``."""

block_committed = _signals.signal("block-committed")
"""This process committed a block: ``height``."""

results_refuted = _signals.signal("results-refuted")
"""The header above a block refuted its results, which are replaced: ``height``. It is sent by
the process that follows the chain."""

subscription_opened = _signals.signal("subscription-opened")
"""A websocket client subscribed."""

subscription_closed = _signals.signal("subscription-closed")
"""A subscription ended: ``reason`` is ``unsubscribed``, ``too slow`` or
``disconnected``."""

websocket_opened = _signals.signal("websocket-opened")
"""A websocket was opened."""

websocket_closed = _signals.signal("websocket-closed")
"""A websocket was closed."""

async_tx_refused = _signals.signal("async-tx-refused")
"""The store rejected a transaction after ``broadcast_tx_async`` had returned: ``error``."""

wait_began = _signals.signal("wait-began")
"""A call started waiting for a block; NODERPC_MAX_WAITING_CALLS limits these calls."""

wait_ended = _signals.signal("wait-ended")
"""A call stopped waiting."""


def emit(signal: NamedSignal, sender: object, **values: Any) -> None:
    """Send a signal to its receivers, if any."""
    if signal.receivers:
        try:
            signal.send(sender, **values)
        except Exception:
            log.exception("a receiver of %s failed", signal.name)
