"""The chain as the calls of one body see it: one version, until one of them may change it."""

from __future__ import annotations

from ..backend.base import ChainBackend
from ..backend.version import ChainVersion


class Sight:
    """The chain as the calls of one body see it."""

    def __init__(self, backend: ChainBackend) -> None:
        self._backend = backend
        self._has_looked = False
        self._version: ChainVersion | None = None

    def version(self) -> ChainVersion | None:
        """What the chain was when it was first asked for."""
        if not self._has_looked:
            self.look()
        return self._version

    def look(self) -> ChainVersion | None:
        """What the chain is now."""
        self._version, self._has_looked = self._backend.version(), True
        return self._version

    def forget(self) -> None:
        """A call may change the chain, or wait for a change."""
        self._has_looked = False
