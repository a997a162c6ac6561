"""The chain as the calls of one body see it."""

from __future__ import annotations

from contextlib import ExitStack

from ..backends.base.backend import ChainBackend
from ..backends.base.version import ChainVersion


class ChainView:
    """The chain as one call sees it: what it was when the call first looked."""

    is_held = False
    """Whether what is read is of a moment of a store that is open."""

    def __init__(self, backend: ChainBackend) -> None:
        self._backend = backend
        self._has_looked = False
        self._version: ChainVersion | None = None

    def version(self) -> ChainVersion | None:
        """What the chain was when it was first asked for."""
        if not self._has_looked:
            self._version, self._has_looked = self._look(), True
        return self._version

    def _look(self) -> ChainVersion | None:
        return self._backend.version()

    def now(self) -> ChainVersion | None:
        """What the chain is by now."""
        return self._backend.version()

    def invalidate(self) -> None:
        """A call may change the chain, or wait for a change."""
        self._has_looked = False


class BatchView(ChainView):
    """The chain as all calls of a batch see it: one moment, until one is to see more."""

    def __init__(self, backend: ChainBackend) -> None:
        super().__init__(backend)
        self._moment = ExitStack()

    def _look(self) -> ChainVersion | None:
        version = self._moment.enter_context(self._backend.read_view())
        self.is_held = True
        return version

    def invalidate(self) -> None:
        """Let the moment go, too."""
        super().invalidate()
        self.is_held = False
        self._moment.close()
