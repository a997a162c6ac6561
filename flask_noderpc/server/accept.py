"""Server that shares its listening socket with other processes of the node.

The kernel gives a connection to whichever process asks first, so one process could get all
connections that a client opens together. A process that has more connections than another one
therefore gives the other a moment to accept the next one.
"""

from __future__ import annotations

from typing import Any

from gevent.server import StreamServer

from ..shared import Counters

# Seconds that the other processes get.
_OTHERS_S = 0.001


class SharingServer(StreamServer):  # type: ignore[misc]  # gevent has no types
    """Server that leaves connections to other processes which have fewer."""

    _counters: Counters | None = None
    _is_left = False
    """True while it accepts a connection that the others have left."""

    def share(self, counters: Counters) -> None:
        """Share the listening socket with the processes of the counters."""
        self._counters = counters

    def start(self) -> None:
        """Start accepting connections."""
        if self._counters is not None:
            self._counters.open()
        super().start()

    def close(self) -> None:
        """Stop accepting connections."""
        if self._counters is not None:
            self._counters.close()
        super().close()

    def leaves_to_others(self) -> bool:
        """Return true if another process has fewer connections; after a moment, the server
        accepts one connection that is left, as the others may be busy."""
        is_left, self._is_left = self._is_left, False
        if self._counters is None or is_left or not self._counters.has_most():
            return False
        self.stop_accepting()
        self._timer = self.loop.timer(_OTHERS_S)
        self._timer.start(self._accept_what_is_left)
        return True

    def _accept_what_is_left(self) -> None:
        self.start_accepting()
        self._is_left = True
        self._do_read()
        self._is_left = False

    def count_connection(self, more: int) -> None:
        """Add to the number of open connections."""
        if self._counters is not None:
            self._counters.count_connection(more)

    def do_close(self, sock: Any, _served: Any) -> None:
        """Close a connection."""
        self.count_connection(-1)
        sock.close()
