"""Upstreams as a process that serves asks them: the threads of its clients wait for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TypeVar

from ..errors import UpstreamError, UpstreamRefused
from .connection import within
from .pool import NoUpstream, Upstreams
from .reader import Reader

T = TypeVar("T")

Reserve = Callable[[], AbstractContextManager[None]]
"""Occupies a thread of the server; raises :exc:`~flask_noderpc.errors.Busy`."""


class ForwardUpstreams(Upstreams):
    """Upstreams without those that the process that follows has refused.

    ``reserve`` holds while they are asked, so that stored reads find a thread of the server,
    and ``refused_elsewhere`` returns what that process has refused.
    """

    def __init__(self, readers: Sequence[Reader], patience: float = 0.0) -> None:
        super().__init__(readers, patience)
        self._seconds = max(reader.node.limits.timeout for reader in readers)
        self.refused_elsewhere: Callable[[], Mapping[str, str]] = dict

    def attempt(
        self,
        action: Callable[[Reader], T],
        *,
        alone: bool = False,
        final: tuple[type[UpstreamError], ...] = (UpstreamRefused,),
    ) -> T:
        """Return as the base does; raise also :exc:`~flask_noderpc.errors.Busy` where too many
        of the server's threads wait.

        A client waits: the error of one node is an answer while others can't be reached, and
        all requests together take no longer than one may take.
        """
        with self.reserve(), within(self._seconds):
            return super().attempt(action, alone=alone, final=final)

    def usable(self) -> list[Reader]:
        """Return the readers that nobody has refused; raise :exc:`NoUpstream`."""
        refused = self.refused_elsewhere()
        readers = [each for each in super().usable() if each.name not in refused]
        if not readers:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in refused.items())
            raise NoUpstream(f"no upstream is left that can be believed: {reasons}")
        return readers

    def states(self) -> dict[str, str]:
        """Return the states of the base, with those that were refused elsewhere."""
        refused = dict.fromkeys(self.refused_elsewhere(), "refused")
        own = super().states()
        return own | {name: refused[name] for name in own.keys() & refused.keys()}
