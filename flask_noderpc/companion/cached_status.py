"""The status of the nodes, read in the background."""

from __future__ import annotations

import threading
import time

from ..domain.responses import ResultStatus
from ..errors import Busy, UpstreamError
from .pool import Upstreams


class CachedStatus:
    """The status of an upstream, at most a second old while one answers."""

    _FRESH_S = 1.0
    # The first is waited for, as there is no other.
    _PATIENCE_S = 2.0

    def __init__(self, upstreams: Upstreams) -> None:
        self._upstreams = upstreams
        self._lock = threading.Lock()
        self._last: ResultStatus | None = None
        self._read_at = -self._FRESH_S
        self._reading: threading.Event | None = None
        self._has_waited = False
        self.last_error = ""

    def get(self) -> ResultStatus | None:
        """Return the last known status, ``None`` if none is; it is read anew meanwhile."""
        if time.monotonic() - self._read_at < self._FRESH_S:
            return self._last
        with self._lock:
            done = self._reading
            if done is None:
                done = self._reading = threading.Event()
                threading.Thread(target=self._read, args=(done,), daemon=True).start()
        if not self._has_waited:
            done.wait(self._PATIENCE_S)
            self._has_waited = True
        return self._last

    def _read(self, done: threading.Event) -> None:
        try:
            self._last = self._upstreams.attempt(lambda reader: reader.status())
            self.last_error = ""
        except (UpstreamError, Busy) as error:
            self.last_error = str(error)
        finally:
            self._read_at = time.monotonic()
            self._reading = None
            done.set()
