"""Several upstreams of one chain: after a failure the next node is asked, and a node that
served invalid data is not asked again."""

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
# Seconds for which a node is refused that sent a response to another request, such as when a
# proxy has just switched to another machine.
_MISPLACED_S = 60.0

Check = Callable[[Reader], None]
"""A function that raises ``UpstreamMismatch`` if the node is of another chain."""


class NoUpstream(UpstreamError):
    """No upstream can be used: all are unreachable, or all were refused."""

    def __init__(self, reason: str) -> None:
        super().__init__("", reason)


class Upstreams:
    """Upstream nodes of one chain, used in turn; may be shared among threads.

    ``patience`` is the number of seconds for which a read is retried while a node can't be
    reached.
    """

    def __init__(self, readers: Sequence[Reader], patience: float = 60.0) -> None:
        self._readers = list(readers)
        self._patience = patience
        self.check: Check | None = None
        """Check that runs before the first request to a node, after a failed request, and
        about once a minute."""
        self.ahead = ""
        """Name of the node that has the latest block: reads of the head ask this node
        first."""
        self.stopped = threading.Event()
        self._turn = 0
        self._lock = threading.Lock()
        self._health = {reader.name: Health() for reader in readers}
        self.refused: dict[str, str] = {}
        """Reasons for which upstreams are not asked again, by the upstream's name."""
        self._asked_again_at: dict[str, float] = {}
        self.reserve: Callable[[], AbstractContextManager[None]] = nullcontext
        """Function that returns a context in which a client's request waits for an
        upstream."""
        self.decoders = IN_THIS_PROCESS
        """Pool of processes that decode large responses."""
        self.on_refused: Callable[[], None] = lambda: None
        """Function that is called after an upstream was refused."""

    @classmethod
    def from_urls(
        cls,
        urls: Sequence[str | Address],
        dialect: str,
        limits: UpstreamLimits,
        patience: float,
        decoders: Decoders | None = None,
    ) -> Self:
        """Return the upstreams of these URLs, without connecting to them; raise
        :exc:`~flask_noderpc.errors.ConfigurationError` for an invalid URL."""
        addresses = [url if isinstance(url, Address) else Address.parse(url) for url in urls]
        decoders = decoders or Decoders()
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
            raise NoUpstream(f"no upstream node can be used ({reasons}); name others")
        return readers

    def _by_turns(self, *, for_head: bool) -> list[Reader]:
        """Return the usable readers in the order in which to ask them.

        The first one changes with each call; for the head, it is the node that is ahead.
        Silent and failing nodes come last.
        """
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
        """Refuse an upstream that sent wrong data, for some seconds or (``None``) for good."""
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

        A mismatch refuses the upstream. If an upstream is silent, the next one is asked as
        well, unless ``alone`` is set, which is for calls that take long. If all upstreams
        refuse the call itself, raise the first error. If some can't be reached, ask all again
        until the patience ends, unless one raised an error of the ``final`` types, which is
        raised at once.
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
        """Return the first result in a 1-tuple, asking the upstreams in this order; ``None``
        if all fail."""
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
        """Return the action's results from all upstreams that respond; there is at least one.

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
        """Return an action's result from one upstream in a 1-tuple. After a failure, return
        ``None`` and add the error to ``failures``; after a mismatch, refuse the upstream."""
        if not seconds_left(inf):
            # The call's time is over before the node was asked, so the node is not marked as
            # failing.
            reason = "not asked, as other nodes have used up the timeout of this call"
            failures.append(UpstreamUnavailable(reader.name, reason))
            return None
        health, is_checked = self._health[reader.name], False
        with self._lock:
            health.begin()
        try:
            if self.stopped.is_set():
                raise UpstreamUnavailable(reader.name, "not asked: this process is stopping")
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
            # An unexpected error in decoding: treat it as a failure of this node, and ask
            # another one.
            log.exception("upstream %s: unexpected error in decoding a response", reader.name)
            reason = f"its response can't be decoded ({type(error).__name__})"
            failures.append(UpstreamUnavailable(reader.name, reason))
            self._note_change(reader)
            return None
        finally:
            with self._lock:
                health.end()
        self._note_success(reader)
        return (found,)

    def _note(self, reader: Reader, error: UpstreamError | Busy, *, is_checked: bool) -> None:
        """Update a node's health after an error; ``is_checked`` if its chain was checked
        before."""
        match error:
            case NotDecoded():
                self._note_change(reader)
            case Unusable() if is_checked:
                # The failure may concern this call only; if it does not, the next check fails
                # as well.
                self._note_change(reader)
            case UpstreamUnavailable():
                self._note_failure(reader, str(error))
            case UpstreamRefused():
                self._note_success(reader)

    def _check_chain(self, reader: Reader) -> None:
        """Check the node's chain before the first request, and when another node may have
        replaced it."""
        health = self._health[reader.name]
        if self.check is not None and health.is_due(reader.node.connected):
            if health.checked_at is not None:
                # Set the time first, so that other threads do not repeat the check while this
                # one runs.
                health.checked_at = time.monotonic()
            reader.node.reconnect()
            self.check(reader)
            health.checked_at, health.connected = time.monotonic(), reader.node.connected

    def deadline(self) -> float:
        """Return the time, as of ``time.monotonic``, at which retries end."""
        return time.monotonic() + self._patience

    def wait(self, failure: Exception, deadline: float, pause: float = 1.0) -> None:
        """Wait before the next attempt; raise the failure after the deadline."""
        left = deadline - time.monotonic()
        if left <= 0 or has_ended() or self.stopped.wait(min(pause, left)):
            raise failure

    def _note_change(self, reader: Reader) -> None:
        """Schedule a check of the node, whose responses do not match the version that it
        reported."""
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
            log.warning("upstream %s: it responds again", reader.name)

    def _probe_others(self, readers: Sequence[Reader]) -> None:
        """Try failing nodes again in the background, so that no request has to wait for
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
        """Interrupt the requests in flight, and refuse new ones."""
        self.stopped.set()
        for reader in self._readers:
            reader.node.interrupt()

    def close(self) -> None:
        """Close the connections, and refuse new requests."""
        # A request that is still running fails now, which is not the node's failure.
        self.stopped.set()
        for reader in self._readers:
            reader.node.close()
        self.decoders.close()
