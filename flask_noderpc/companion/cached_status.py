"""Status of an upstream node, read in a background thread."""

from __future__ import annotations

import threading
import time

from ..domain.responses import ResultStatus
from ..errors import Busy, UpstreamError
from .pool import Upstreams


class CachedStatus:
    """Cache of an upstream's status, at most a second old while the node responds quickly."""

    _FRESH_S = 1.0
    # Seconds for which a caller waits for the first status, and for later ones after a quick
    # response; after a slow one, callers get the cached status.
    _PATIENCE_S, _QUICK_S = 2.0, 0.2
    # A node that takes longer to respond counts as unavailable.
    _SILENT_S = 5.0

    def __init__(self, upstreams: Upstreams) -> None:
        self._upstreams = upstreams
        self._lock = threading.Lock()
        self._last: ResultStatus | None = None
        self._read_at = -self._FRESH_S
        self._reading: threading.Event | None = None
        self._asked_at = 0.0
        self._patience = self._PATIENCE_S
        self._last_error = ""

    def error(self) -> str:
        """Return why no node responds now; an empty string if one does."""
        self.get()
        silent_s = time.monotonic() - self._asked_at
        if self._reading is not None and silent_s > self._SILENT_S and not self._last_error:
            return f"no upstream node has responded for {silent_s:.0f} s"
        return self._last_error

    def get(self) -> ResultStatus | None:
        """Return the status, or the cached one if the node is slow; ``None`` if nothing is
        cached."""
        if time.monotonic() - self._read_at < self._FRESH_S:
            return self._last
        with self._lock:
            done = self._reading
            if done is None:
                done = self._reading = threading.Event()
                self._asked_at = time.monotonic()
                threading.Thread(target=self._read, args=(done,), daemon=True).start()
        if self._patience and not done.wait(self._patience):
            # The node hangs: do not make later callers wait for it.
            self._patience = 0.0
        return self._last

    def _read(self, done: threading.Event) -> None:
        began = time.monotonic()
        try:
            self._last = self._upstreams.attempt(lambda reader: reader.status())
            self._last_error = ""
            is_quick = time.monotonic() - began < self._QUICK_S
            self._patience = self._QUICK_S if is_quick else 0.0
        except (UpstreamError, Busy) as error:
            self._last_error = str(error)
            self._patience = 0.0
        finally:
            self._read_at = time.monotonic()
            self._reading = None
            done.set()
