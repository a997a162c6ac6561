"""Waits for new blocks: a websocket of the nodes says when to look, and a poll does without.

Notifications are never read as data: nodes drop them, and end subscriptions that are slow.
"""

from __future__ import annotations

import base64
import logging
import ssl
import threading
from collections.abc import Sequence
from contextlib import suppress

from simple_websocket import Client, ConnectionClosed, ConnectionError

from .. import jsoncodec
from .address import Address

log = logging.getLogger("flask_noderpc.companion")

_SUBSCRIBE = jsoncodec.encode(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "subscribe",
        "params": {"query": "tm.event='NewBlockHeader'"},
    }
).decode()
_FIRST_PAUSE_S, _MAX_PAUSE_S = 1.0, 30.0
# A node pings each 27 s; a notification may be as large as a header.
_PING_S, _MAX_BYTES = 20, 1 << 20


class Ticker:
    """Subscribes to new blocks of the first node that accepts it, in a thread of its own."""

    def __init__(self, addresses: Sequence[Address], stopped: threading.Event) -> None:
        self._addresses, self._stopped = addresses, stopped
        self._changed = threading.Event()
        self._client: Client | None = None
        self._thread = threading.Thread(target=self._run, name="noderpc-ticker", daemon=True)

    def start(self) -> None:
        """Start the thread, which ends when ``stopped`` is set."""
        self._thread.start()

    def wait(self, seconds: float) -> None:
        """Wait until a node has told a new block, at most so long."""
        self._changed.wait(seconds)
        self._changed.clear()

    def close(self) -> None:
        """Close the websocket and wait for the thread."""
        self._changed.set()
        client = self._client
        if client is not None:
            with suppress(ConnectionClosed, OSError):
                client.close()
        self._thread.join()

    def _run(self) -> None:
        pause = _FIRST_PAUSE_S
        while not self._stopped.is_set():
            for address in self._addresses:
                if self._listen(address):
                    pause = _FIRST_PAUSE_S
            self._stopped.wait(pause)
            pause = min(2 * pause, _MAX_PAUSE_S)

    def _listen(self, address: Address) -> bool:
        """Follow one node until its websocket ends; return true if it told a block."""
        has_told = False
        try:
            client = self._client = _connected(address)
            try:
                client.send(_SUBSCRIBE)
                while not self._stopped.is_set() and client.receive() is not None:
                    # The first is the answer to the subscription.
                    self._changed.set()
                    has_told = True
            finally:
                self._client = None
                client.close()
        except (ConnectionClosed, ConnectionError, OSError, ValueError) as error:
            log.info("the websocket of %s ended: %s", address.name, type(error).__name__)
        return has_told


def _connected(address: Address) -> Client:
    scheme = "wss" if address.scheme == "https" else "ws"
    host = f"[{address.host}]" if ":" in address.host else address.host
    headers = {}
    if address.user is not None:
        token = base64.b64encode(address.user.encode()).decode()
        headers["Authorization"] = f"Basic {token}"
    return Client(
        f"{scheme}://{host}:{address.port}{address.websocket_path}",
        headers=headers,
        ping_interval=_PING_S,
        max_message_size=_MAX_BYTES,
        ssl_context=ssl.create_default_context() if scheme == "wss" else None,
    )
