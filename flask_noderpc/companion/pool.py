"""Several upstreams of one chain: the next is asked where one fails, and a liar no more."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Self, TypeVar

from ..errors import (
    Busy,
    ConfigurationError,
    UpstreamError,
    UpstreamMismatch,
    UpstreamRefused,
    UpstreamUnavailable,
)
from .background import has_ended
from .http import UpstreamLimits
from .reader import NoResults, Reader
from .upstream import NotDecoded, Upstream

log = logging.getLogger("flask_noderpc.companion")

T = TypeVar("T")

_FIRST_PAUSE_S = 0.25
_MAX_PAUSE_S = 15.0
# A node that fails is tried again so often, beside the requests.
_PROBE_S = 30.0
# A node may be reset, upgraded, or replaced by that of another chain: after it was connected to
# anew, and now and then, as another machine may be behind the same proxy.
_CHECK_S, _CHECK_CONNECTED_S = 60.0, 1.0

Check = Callable[[Reader], None]
"""Raises ``UpstreamMismatch`` for a node of another chain."""


class NoUpstream(UpstreamError):
    """No upstream can be asked: all are unreachable, or all were refused."""

    def __init__(self, reason: str) -> None:
        super().__init__("", reason)


@dataclass(slots=True)
class _Health:
    """What is known of one upstream."""

    is_failing: bool = False
    probed_at: float = 0.0
    checked_at: float | None = None
    connected: int = 0
    """Connections that had been opened at the check."""

    def is_due(self, connected: int) -> bool:
        """Return true if the node is to be checked before the next request."""
        if self.checked_at is None:
            return True
        pause = _CHECK_S if connected == self.connected else _CHECK_CONNECTED_S
        return time.monotonic() - self.checked_at > pause


class Upstreams:
    """Readers of upstreams, asked by turns; safe to share among threads.

    ``patience`` are the seconds for which a read is tried again while none can be reached.
    """

    def __init__(self, readers: Sequence[Reader], patience: float = 60.0) -> None:
        self._readers = list(readers)
        self._patience = patience
        self.check: Check | None = None
        """Done before the first request to a node, after one that failed, and now and then."""
        self.stopped = threading.Event()
        self._turn = 0
        self._lock = threading.Lock()
        self._health = {reader.name: _Health() for reader in readers}
        self.refused: dict[str, str] = {}
        """The upstreams that are asked no more, with the reason."""
        self.reserve: Callable[[], AbstractContextManager[None]] = nullcontext
        """Held while a client waits for an upstream."""
        self.on_refused: Callable[[], None] = lambda: None
        """Called after one more was refused."""

    @classmethod
    def at(
        cls, urls: Sequence[str], dialect: str, limits: UpstreamLimits, patience: float
    ) -> Self:
        """Return the upstreams of these URLs, which are not asked yet; raise
        :exc:`~flask_noderpc.errors.ConfigurationError`."""
        nodes = [Upstream(url, dialect=dialect, limits=limits) for url in urls]
        if len({node.name for node in nodes}) < len(nodes):
            raise ConfigurationError("an upstream is named twice")
        return cls([Reader(node) for node in nodes], patience)

    def usable(self) -> list[Reader]:
        """Return the readers that are not refused; raise :exc:`NoUpstream` if all are."""
        with self._lock:
            readers = [each for each in self._readers if each.name not in self.refused]
        if not readers:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in self.refused.items())
            raise NoUpstream(f"no upstream is left that can be believed: {reasons}")
        return readers

    def _by_turns(self) -> list[Reader]:
        """Return the usable readers: the one whose turn it is first, those that fail last."""
        readers = self.usable()
        with self._lock:
            self._turn += 1
            start = self._turn % len(readers)
        turns = readers[start:] + readers[:start]
        return sorted(turns, key=lambda reader: self._health[reader.name].is_failing)

    def states(self) -> dict[str, str]:
        """Return the state of each upstream: ``up``, ``failing`` or ``refused``."""
        return {reader.name: self._state(reader.name) for reader in self._readers}

    def _state(self, name: str) -> str:
        if name in self.refused:
            return "refused"
        return "failing" if self._health[name].is_failing else "up"

    def refuse(self, name: str, reason: str) -> None:
        """Ask an upstream no more, as what it said is refuted."""
        with self._lock:
            known = self.refused.setdefault(name, reason)
        if known is reason:
            log.error("the upstream %s is asked no more: %s", name, reason)
            self.on_refused()

    def attempt(self, action: Callable[[Reader], T]) -> T:
        """Return what an action has from the first upstream that can answer.

        A mismatch refuses the upstream. Where all refuse the call itself, the first one's error
        is raised; where none can be reached, it is tried again until the patience ends.
        """
        deadline = self.deadline()
        pause = _FIRST_PAUSE_S
        while True:
            failures: list[UpstreamError | Busy] = []
            readers = self._by_turns()
            for reader in readers:
                found = self._tried(reader, action, failures)
                if found is not None:
                    self._probe_others(readers)
                    return found[0]
            refusals = [each for each in failures if isinstance(each, UpstreamRefused)]
            if failures and len(refusals) == len(failures):
                # A node that lacks results alone has more than one that lacks the block, too.
                raise min(refusals, key=lambda error: not isinstance(error, NoResults))
            if failures:
                self.wait(failures[0], deadline, pause)
                pause = min(2 * pause, _MAX_PAUSE_S)

    def ask_all(self, action: Callable[[Reader], T]) -> list[T]:
        """Return what an action has from each upstream that can answer, at least one.

        Raise as :meth:`attempt` does.
        """
        first = self.attempt(lambda reader: (reader, action(reader)))
        others = [each for each in self.usable() if each is not first[0]]
        found = (self._tried(reader, action, []) for reader in others)
        return [first[1], *(each[0] for each in found if each is not None)]

    def _tried(
        self,
        reader: Reader,
        action: Callable[[Reader], T],
        failures: list[UpstreamError | Busy],
    ) -> tuple[T] | None:
        """Return what an action has from one upstream; add to ``failures`` if it fails, and
        refuse the upstream after a mismatch."""
        try:
            if self.stopped.is_set():
                raise UpstreamUnavailable(reader.name, "it is asked no more, as all ends")
            self._check_chain(reader)
            found = action(reader)
        except UpstreamMismatch as error:
            self.refuse(reader.name, error.reason)
            return None
        except NotDecoded as error:
            failures.append(error)
            self._note_change(reader)
            return None
        except UpstreamUnavailable as error:
            failures.append(error)
            self._note_failure(reader, str(error))
            return None
        except UpstreamRefused as error:
            failures.append(error)
            self._note_success(reader)
            return None
        except (UpstreamError, Busy) as error:
            failures.append(error)
            return None
        self._note_success(reader)
        return (found,)

    def _check_chain(self, reader: Reader) -> None:
        """Check the node before the first request, and when it may be another one."""
        health = self._health[reader.name]
        if self.check is not None and health.is_due(reader.node.connected):
            if health.checked_at is not None:
                # Others need not do it again meanwhile.
                health.checked_at = time.monotonic()
            reader.node.reconnect()
            self.check(reader)
            health.checked_at, health.connected = time.monotonic(), reader.node.connected

    def deadline(self) -> float:
        """Return the time at which the patience ends."""
        return time.monotonic() + self._patience

    def wait(self, failure: Exception, deadline: float, pause: float = 1.0) -> None:
        """Wait before it is tried again; raise the failure after the deadline."""
        left = deadline - time.monotonic()
        if left <= 0 or has_ended() or self.stopped.wait(min(pause, left)):
            raise failure

    def _note_change(self, reader: Reader) -> None:
        """Let the node be checked soon: it answers, but not as its version did."""
        self._health[reader.name].connected = -1

    def _note_failure(self, reader: Reader, reason: str) -> None:
        health = self._health[reader.name]
        with self._lock:
            is_new = not health.is_failing
            health.is_failing, health.checked_at = True, None
            if is_new:
                health.probed_at = time.monotonic()
        if is_new and not self.stopped.is_set():
            log.warning("%s", reason)

    def _note_success(self, reader: Reader) -> None:
        health = self._health[reader.name]
        if health.is_failing:
            health.is_failing = False
            log.warning("upstream %s: answers again", reader.name)

    def _probe_others(self, readers: Sequence[Reader]) -> None:
        """Try failing nodes again in the background: a request would wait for them."""
        for reader in readers:
            health, now = self._health[reader.name], time.monotonic()
            if not health.is_failing or now - health.probed_at < _PROBE_S:
                continue
            health.probed_at = now
            threading.Thread(
                target=self._tried,
                args=(reader, lambda reader: reader.status(), []),
                name="noderpc-probe",
                daemon=True,
            ).start()

    def stop(self) -> None:
        """End the requests that are waiting, and begin no others."""
        self.stopped.set()
        for reader in self._readers:
            reader.node.interrupt()

    def close(self) -> None:
        """Close the connections."""
        for reader in self._readers:
            reader.node.close()
