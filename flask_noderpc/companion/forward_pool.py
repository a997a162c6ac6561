"""Upstreams for serving processes, where a client's server thread waits for the response."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TypeVar

from ..errors import UpstreamError, UpstreamRefused
from .connection import limit_time
from .pool import NoUpstream, Upstreams
from .reader import Reader

T = TypeVar("T")

Reserve = Callable[[], AbstractContextManager[None]]
"""A function that reserves a thread of the server; raises :exc:`~flask_noderpc.errors.Busy`."""


class ForwardUpstreams(Upstreams):
    """Upstreams that neither this process nor the following process has refused.

    Calls run in the context ``reserve``, which keeps some server threads free for stored
    reads. ``refused_elsewhere`` returns the upstreams that the following process has refused,
    with reasons.
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
        """Do the same as the base class; also raise :exc:`~flask_noderpc.errors.Busy` if too
        many of the server's threads wait for nodes.

        As a client waits, a node's error is raised at once even if other nodes can't be
        reached, and all requests of a call share one timeout.
        """
        with self.reserve(), limit_time(self._seconds):
            return super().attempt(action, alone=alone, final=final)

    def usable_readers(self) -> list[Reader]:
        """Return the readers that no process has refused; raise :exc:`NoUpstream`."""
        refused = self.refused_elsewhere()
        readers = [each for each in super().usable_readers() if each.name not in refused]
        if not readers:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in refused.items())
            raise NoUpstream(f"no upstream node can be used ({reasons}); name others")
        return readers

    def states(self) -> dict[str, str]:
        """Return the states as the base class does; upstreams refused elsewhere are
        ``refused``."""
        refused = dict.fromkeys(self.refused_elsewhere(), "refused")
        own = super().states()
        return own | {name: refused[name] for name in own.keys() & refused.keys()}
