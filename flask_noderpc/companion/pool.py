"""Several upstreams of one chain: the next is asked where one fails, and a liar no more."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from ..errors import (
    Busy,
    UpstreamError,
    UpstreamMismatch,
    UpstreamRefused,
    UpstreamUnavailable,
)
from .reader import Reader

log = logging.getLogger("flask_noderpc.companion")

T = TypeVar("T")

_FIRST_PAUSE_S = 0.25
_MAX_PAUSE_S = 15.0


class NoUpstream(UpstreamError):
    """No upstream can be asked: all are unreachable, or all were refused."""

    def __init__(self, reason: str) -> None:
        super().__init__("", reason)


class Upstreams:
    """Readers of upstreams, asked by turns; safe to share among threads.

    ``patience`` are the seconds for which a read is tried again while none can be reached;
    ``stopped`` ends that earlier.
    """

    def __init__(
        self,
        readers: Sequence[Reader],
        patience: float = 60.0,
        stopped: threading.Event | None = None,
    ) -> None:
        self._readers = list(readers)
        self._patience = patience
        self.stopped = stopped or threading.Event()
        self._turn = 0
        self._lock = threading.Lock()
        self._failing: dict[str, str] = {}
        self.refused: dict[str, str] = {}
        """The upstreams that are asked no more, with the reason."""

    def usable(self) -> list[Reader]:
        """Return the readers that are not refused, the one whose turn it is first."""
        with self._lock:
            readers = [each for each in self._readers if each.name not in self.refused]
            self._turn += 1
            start = self._turn % len(readers) if readers else 0
        if not readers:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in self.refused.items())
            raise NoUpstream(f"no upstream is left that can be believed: {reasons}")
        return readers[start:] + readers[:start]

    def refuse(self, name: str, reason: str) -> None:
        """Ask an upstream no more, as what it said is refuted."""
        with self._lock:
            known = self.refused.setdefault(name, reason)
        if known is reason:
            log.error("the upstream %s is asked no more: %s", name, reason)

    def attempt(self, action: Callable[[Reader], T]) -> T:
        """Return what an action has from the first upstream that can answer.

        A mismatch refuses the upstream. Where all refuse the call itself, the first one's error
        is raised; where none can be reached, it is tried again until the patience ends.
        """
        deadline = time.monotonic() + self._patience
        pause = _FIRST_PAUSE_S
        while True:
            failures: list[Exception] = []
            for reader in self.usable():
                try:
                    return self._from(reader, action)
                except UpstreamMismatch as error:
                    self.refuse(reader.name, error.reason)
                except (UpstreamError, Busy) as error:
                    failures.append(error)
            refusals = [each for each in failures if isinstance(each, UpstreamRefused)]
            if failures and len(refusals) == len(failures):
                raise refusals[0]
            if failures:
                self._wait(failures[0], deadline, pause)
                pause = min(2 * pause, _MAX_PAUSE_S)

    def _from(self, reader: Reader, action: Callable[[Reader], T]) -> T:
        """Return what an action has from one upstream; log when it fails, and when no more."""
        try:
            found = action(reader)
        except (UpstreamUnavailable, Busy) as error:
            self._note_failure(reader.name, str(error))
            raise
        self._note_success(reader.name)
        return found

    def _wait(self, failure: Exception, deadline: float, pause: float) -> None:
        left = deadline - time.monotonic()
        if left <= 0 or self.stopped.wait(min(pause, left)):
            raise failure

    def _note_failure(self, name: str, reason: str) -> None:
        with self._lock:
            is_new = name not in self._failing
            self._failing[name] = reason
        if is_new:
            log.warning("%s", reason)

    def _note_success(self, name: str) -> None:
        with self._lock:
            known = self._failing.pop(name, None)
        if known is not None:
            log.warning("upstream %s: answers again", name)

    def close(self) -> None:
        """Close the connections."""
        for reader in self._readers:
            reader.node.close()
