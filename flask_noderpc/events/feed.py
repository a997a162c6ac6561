"""The feed: reads each new height once, for as long as anybody wants to know."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable

from ..backend.base import ChainBackend
from ..errors import BackendError
from .messages import Message, messages_at

log = logging.getLogger("flask_noderpc.events")

# How often the feed looks whether it is still wanted, and how long it waits after a fault.
_LOOK_S = 0.25


class Feed:
    """Hands every committed block's messages to ``publish``, in order, without a gap.

    It runs in a thread of its own from :meth:`follow` until ``wanted`` says no.
    """

    def __init__(
        self,
        backend: ChainBackend,
        publish: Callable[[Iterable[Message]], None],
        wanted: Callable[[], bool],
    ) -> None:
        self._backend = backend
        self._publish = publish
        self._wanted = wanted
        self._lock = threading.Lock()
        self._running_in = 0
        self._thread: threading.Thread | None = None

    def follow(self) -> None:
        """See to it that the heights above today's latest are handed on."""
        with self._lock:
            if self._running_in == os.getpid():
                return
            after = self._backend.latest_height()
            self._running_in = os.getpid()
            self._thread = threading.Thread(
                target=self._run, args=(after,), name="noderpc-feed", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """Read no more, whoever wants it; what is being handed on is finished."""
        with self._lock:
            self._running_in = 0
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()

    def _run(self, after: int) -> None:
        while self._goes_on():
            try:
                latest = self._backend.wait_for_height(after, _LOOK_S)
                while after < latest:
                    self._publish(messages_at(self._backend, after + 1))
                    after += 1
            except Exception as error:
                # Whatever it is: were this thread to end, all would wait in silence.
                unforeseen = not isinstance(error, BackendError)
                log.error("events wait at height %s: %s", after, error, exc_info=unforeseen)
                threading.Event().wait(_LOOK_S)

    def _goes_on(self) -> bool:
        # Decided under the lock: whoever subscribes after this starts a new thread.
        with self._lock:
            if not self._wanted():
                self._running_in = 0
            return self._running_in == os.getpid()
