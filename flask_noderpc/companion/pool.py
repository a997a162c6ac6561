"""Several upstreams of one chain: the next one is asked after a failure, and a node that served
invalid data is not asked again."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from math import inf
from typing import Self, TypeVar

from ..errors import (
    Busy,
    NodeRPCError,
    UpstreamError,
    UpstreamMismatch,
    UpstreamRefused,
    UpstreamUnavailable,
)
from .address import Address, names_of
from .connection import seconds_left
from .decoding import IN_THIS_PROCESS, Decoders
from .health import Health
from .http import Unusable, UpstreamLimits
from .race import Attempt, failure_of, first_result
from .reader import MismatchedResponse, Reader
from .threads import has_ended, started
from .upstream import NotDecoded, Upstream

log = logging.getLogger("flask_noderpc.companion")

T = TypeVar("T")

_FIRST_PAUSE_S = 0.25
_MAX_PAUSE_S = 15.0
# Interval at which a failing node is tried in the background.
_PROBE_S = 30.0
# Pause for a node that answered for another height, perhaps as a proxy changed the machine.
_MISPLACED_S = 60.0

Check = Callable[[Reader], None]
"""A function that raises ``UpstreamMismatch`` for a node of another chain."""


class NoUpstream(UpstreamError):
    """No upstream can be used: all are unreachable, or all were refused."""

    def __init__(self, reason: str) -> None:
        super().__init__("", reason)


class Upstreams:
    """Readers of upstreams, used in turn; may be shared among threads.

    ``patience`` is the time in seconds for which a read is retried while some can't be reached.
    """

    def __init__(self, readers: Sequence[Reader], patience: float = 60.0) -> None:
        self._readers = list(readers)
        self._patience = patience
        self.check: Check | None = None
        """Check before the first request to a node, after a failed one, and sometimes in
        between."""
        self.ahead = ""
        """The node that has the latest block, which is asked for it first."""
        self.stopped = threading.Event()
        self._turn = 0
        self._lock = threading.Lock()
        self._health = {reader.name: Health() for reader in readers}
        self.refused: dict[str, str] = {}
        """Upstreams that are not asked again, with the reason."""
        self._asked_again_at: dict[str, float] = {}
        self.reserve: Callable[[], AbstractContextManager[None]] = nullcontext
        """Context in which a client waits for an upstream."""
        self.decoders = IN_THIS_PROCESS
        """Processes that decode many blocks."""
        self.on_refused: Callable[[], None] = lambda: None
        """Function that is called after an upstream was refused."""

    @classmethod
    def from_urls(
        cls,
        urls: Sequence[str | Address],
        dialect: str,
        limits: UpstreamLimits,
        patience: float,
    ) -> Self:
        """Return the upstreams of these URLs, without connecting to them; raise
        :exc:`~flask_noderpc.errors.ConfigurationError`."""
        addresses = [url if isinstance(url, Address) else Address.parse(url) for url in urls]
        decoders = Decoders()
        nodes = [
            Upstream(address, dialect=dialect, limits=limits, name=name, decoders=decoders)
            for address, name in zip(addresses, names_of(addresses), strict=True)
        ]
        made = cls([Reader(node) for node in nodes], patience)
        made.decoders = decoders
        return made

    def usable_readers(self) -> list[Reader]:
        """Return the readers that are not refused; raise :exc:`NoUpstream` if all are."""
        with self._lock:
            for name, at in list(self._asked_again_at.items()):
                if time.monotonic() > at:
                    del self._asked_again_at[name], self.refused[name]
            readers = [each for each in self._readers if each.name not in self.refused]
        if not readers:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in self.refused.items())
            raise NoUpstream(f"no upstream is left that can be believed: {reasons}")
        return readers

    def _by_turns(self, *, for_head: bool) -> list[Reader]:
        """Return the usable readers: the one whose turn it is first, failing ones last."""
        readers = self.usable_readers()
        with self._lock:
            self._turn += 1
            start = self._turn % len(readers)
        turns = readers[start:] + readers[:start]
        first = self.ahead if for_head else ""

        def rank(reader: Reader) -> tuple[bool, bool, bool]:
            health = self._health[reader.name]
            return health.is_failing, health.is_silent(), bool(first) and reader.name != first

        return sorted(turns, key=rank)

    def states(self) -> dict[str, str]:
        """Return the state of each upstream: ``up``, ``failing`` or ``refused``."""
        return {reader.name: self._state(reader.name) for reader in self._readers}

    def _state(self, name: str) -> str:
        if name in self.refused:
            return "refused"
        return "failing" if self._health[name].is_failing else "up"

    def refuse(self, name: str, reason: str, seconds: float | None = None) -> None:
        """Refuse an upstream for good, or for some seconds, as its data is refuted."""
        with self._lock:
            known = self.refused.setdefault(name, reason)
            if seconds is None:
                self._asked_again_at.pop(name, None)
            elif known is reason:
                self._asked_again_at[name] = time.monotonic() + seconds
        if known is reason:
            log.error("the upstream %s is not asked again: %s", name, reason)
            self.on_refused()

    def attempt(
        self,
        action: Callable[[Reader], T],
        *,
        alone: bool = False,
        final: tuple[type[UpstreamError], ...] = (),
    ) -> T:
        """Return an action's result from the first upstream that can answer.

        A mismatch refuses the upstream. If an upstream is silent, the next one is asked, too,
        unless ``alone`` is given for calls that take long. If all refuse the call itself, the
        first error is raised. If some can't be reached, all are asked again until the patience
        ends, unless one raised an error of the ``final`` types.
        """
        deadline = self.deadline()
        pause = _FIRST_PAUSE_S
        while True:
            failures: list[UpstreamError | Busy] = []
            readers = self._by_turns(for_head=not alone)
            found = self._ask_in_order(readers, action, failures, alone)
            if found is not None:
                self._probe_others(readers)
                return found[0]
            if failures:
                self.wait(failure_of(failures, final), deadline, pause)
                pause = min(2 * pause, _MAX_PAUSE_S)

    def _ask_in_order(
        self,
        readers: Sequence[Reader],
        action: Callable[[Reader], T],
        failures: list[UpstreamError | Busy],
        alone: bool,
    ) -> tuple[T] | None:
        """Return the result of one of the upstreams, which are asked in this order."""
        attempts = (
            Attempt(
                partial(self._try_one, reader, action, failures),
                self._health[reader.name].is_silent,
            )
            for reader in readers
        )
        if not alone and len(readers) > 1:
            return first_result(attempts)
        found = (each.make() for each in attempts)
        return next((each for each in found if each is not None), None)

    def ask_all(
        self, action: Callable[[Reader], T], final: tuple[type[UpstreamError], ...] = ()
    ) -> list[T]:
        """Return an action's result from each upstream that can answer, at least one.

        Raise the errors of :meth:`attempt`.
        """
        first = self.attempt(lambda reader: (reader, action(reader)), final=final)
        # Ask all at once, so that several hanging nodes take the time of one request.
        others = [
            started(partial(self._try_one, reader, action, []), "noderpc-ask")
            for reader in self.usable_readers()
            if reader is not first[0]
        ]
        found = (each.result() for each in others)
        return [first[1], *(each[0] for each in found if each is not None)]

    def _try_one(
        self,
        reader: Reader,
        action: Callable[[Reader], T],
        failures: list[UpstreamError | Busy],
    ) -> tuple[T] | None:
        """Return an action's result from one upstream; after a failure add the error to
        ``failures``, and refuse the upstream after a mismatch."""
        if not seconds_left(inf):
            # This says nothing about the node.
            reason = "no response within the time of the call: it was not asked"
            failures.append(UpstreamUnavailable(reader.name, reason))
            return None
        health, is_checked = self._health[reader.name], False
        with self._lock:
            health.begin()
        try:
            if self.stopped.is_set():
                raise UpstreamUnavailable(reader.name, "it is not asked, as the process ends")
            self._check_chain(reader)
            is_checked = self.check is not None
            found = action(reader)
        except UpstreamMismatch as error:
            is_short = isinstance(error, MismatchedResponse)
            self.refuse(reader.name, error.reason, _MISPLACED_S if is_short else None)
            return None
        except (UpstreamError, Busy) as error:
            failures.append(error)
            self._note(reader, error, is_checked=is_checked)
            return None
        except NodeRPCError:
            raise
        except Exception as error:
            # Decoding failed in an unexpected way, which counts as a failure of this node only.
            log.exception("a response of the upstream %s can't be used", reader.name)
            reason = f"a response that can't be used ({type(error).__name__})"
            failures.append(UpstreamUnavailable(reader.name, reason))
            self._note_change(reader)
            return None
        finally:
            with self._lock:
                health.end()
        self._note_success(reader)
        return (found,)

    def _note(self, reader: Reader, error: UpstreamError | Busy, *, is_checked: bool) -> None:
        """Record what an error says about a node, which may have passed its check just now."""
        match error:
            case NotDecoded():
                self._note_change(reader)
            case Unusable() if is_checked:
                # Only this call may fail; otherwise the next check fails, too.
                self._note_change(reader)
            case UpstreamUnavailable():
                self._note_failure(reader, str(error))
            case UpstreamRefused():
                self._note_success(reader)

    def _check_chain(self, reader: Reader) -> None:
        """Check the node before the first request, and when it may have been replaced."""
        health = self._health[reader.name]
        if self.check is not None and health.is_due(reader.node.connected):
            if health.checked_at is not None:
                # Other threads need not check it meanwhile.
                health.checked_at = time.monotonic()
            reader.node.reconnect()
            self.check(reader)
            health.checked_at, health.connected = time.monotonic(), reader.node.connected

    def deadline(self) -> float:
        """Return the time at which the patience ends."""
        return time.monotonic() + self._patience

    def wait(self, failure: Exception, deadline: float, pause: float = 1.0) -> None:
        """Wait before the next attempt; raise the failure after the deadline."""
        left = deadline - time.monotonic()
        if left <= 0 or has_ended() or self.stopped.wait(min(pause, left)):
            raise failure

    def _note_change(self, reader: Reader) -> None:
        """Let the node be checked soon, as its responses do not match its version."""
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
        """Try failing nodes again in the background, as a request would have to wait for
        them."""
        for reader in readers:
            health, now = self._health[reader.name], time.monotonic()
            if not health.is_failing or now - health.probed_at < _PROBE_S:
                continue
            health.probed_at = now
            threading.Thread(
                target=self._try_one,
                args=(reader, lambda reader: reader.status(), []),
                name="noderpc-probe",
                daemon=True,
            ).start()

    def stop(self) -> None:
        """End the waiting requests, and refuse new ones."""
        self.stopped.set()
        for reader in self._readers:
            reader.node.interrupt()

    def close(self) -> None:
        """Close the connections."""
        for reader in self._readers:
            reader.node.close()
        self.decoders.close()
