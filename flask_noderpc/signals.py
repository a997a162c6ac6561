"""blinker signals that the node sends to the app that serves it.

The sender is always the mount's backend. Receivers run in the thread that sends the signal, so
they must be quick; an exception of a receiver is only logged.
"""

from __future__ import annotations

import logging
from typing import Any

from blinker import NamedSignal, Namespace

log = logging.getLogger("flask_noderpc.signals")

_signals = Namespace()

rpc_called = _signals.signal("rpc-called")
"""A call was executed. Values: ``method`` (``unknown`` if it does not exist), ``seconds``,
``outcome`` (0 or the code of the error), and ``transport`` (``get``, ``post``, ``websocket``
or ``rest``)."""

block_committed = _signals.signal("block-committed")
"""This process committed a block. Value: ``height``."""

results_refuted = _signals.signal("results-refuted")
"""The header above a block refuted its stored results, which are replaced. Value: ``height``.
The process that follows the chain sends this signal."""

subscription_opened = _signals.signal("subscription-opened")
"""A websocket client subscribed."""

subscription_closed = _signals.signal("subscription-closed")
"""A subscription ended. Value: ``reason`` (``unsubscribed``, ``too slow`` or
``disconnected``)."""

websocket_opened = _signals.signal("websocket-opened")
"""A websocket was opened."""

websocket_closed = _signals.signal("websocket-closed")
"""A websocket was closed."""

async_tx_refused = _signals.signal("async-tx-refused")
"""The store rejected a transaction after ``broadcast_tx_async`` had returned. Value:
``error``."""

wait_began = _signals.signal("wait-began")
"""A call started to wait for a block; NODERPC_MAX_WAITING_CALLS limits the number of such
calls."""

wait_ended = _signals.signal("wait-ended")
"""A call stopped waiting."""


def emit(signal: NamedSignal, sender: object, **values: Any) -> None:
    """Send a signal to its receivers; log their exceptions."""
    if signal.receivers:
        try:
            signal.send(sender, **values)
        except Exception:
            log.exception("a receiver of the signal %s raised an error", signal.name)
