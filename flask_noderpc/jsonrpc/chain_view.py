"""Views of the chain that the calls of one request body share."""

from __future__ import annotations

from contextlib import ExitStack

from ..backends.base.backend import ChainBackend
from ..backends.base.version import ChainVersion


class ChainView:
    """View of the chain for one call: the version that the call read first."""

    is_held = False
    """True while a read view of the store is open."""

    def __init__(self, backend: ChainBackend) -> None:
        self._backend = backend
        self._has_read = False
        self._version: ChainVersion | None = None

    def version(self) -> ChainVersion | None:
        """Return the version of the chain at the first read."""
        if not self._has_read:
            self._version, self._has_read = self._read(), True
        return self._version

    def _read(self) -> ChainVersion | None:
        return self._backend.version()

    def now(self) -> ChainVersion | None:
        """Return the current version of the chain."""
        return self._backend.version()

    def invalidate(self) -> None:
        """Read the version again next time: a call may have to see a newer chain."""
        self._has_read = False


class BatchView(ChainView):
    """View of the chain for a batch: one snapshot, until a call needs a newer one."""

    def __init__(self, backend: ChainBackend) -> None:
        super().__init__(backend)
        self._read_view = ExitStack()

    def _read(self) -> ChainVersion | None:
        version = self._read_view.enter_context(self._backend.read_view())
        self.is_held = True
        return version

    def invalidate(self) -> None:
        """Close the snapshot, too."""
        super().invalidate()
        self.is_held = False
        self._read_view.close()
