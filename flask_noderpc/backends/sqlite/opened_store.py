"""Open handles of a SQLite store, one set in each process."""

from __future__ import annotations

import os
import shutil
import threading

from ...domain.genesis import Genesis
from ...errors import (
    StoreError,
)
from ..base.store import ChainStore, Location
from .connection import Store
from .process_handles import ProcessHandles

# The transaction of a block needs some pages at least.
_MIN_FREE_BYTES = 1 << 16


class OpenedStore(ChainStore):
    """Opens the file at the first use in each process; no handle crosses a fork."""

    def __init__(self, store: Store, poll_s: float) -> None:
        self._store = store
        self._poll_s = poll_s
        self._opening = threading.Lock()
        self._files: ProcessHandles | None = None
        self._genesis: Genesis | None = None

    @property
    def path(self) -> str:
        """The file's name or URI, as given."""
        return self._store.path

    @property
    def location(self) -> Location:
        return self._store

    @property
    def read_only(self) -> bool:
        return self._store.read_only

    def has_free_space(self) -> bool:
        return shutil.disk_usage(self._store.folder).free >= _MIN_FREE_BYTES

    def _open(self) -> ProcessHandles:
        files = self._files
        if files is not None and files.process == os.getpid():
            return files
        with self._opening:
            if self._files is None or self._files.process != os.getpid():
                if files is not None and not files.quiet:
                    raise StoreError(
                        "this process was forked while the store was being read; fork before"
                        " the first call, or between calls",
                        self._store.shown,
                    )
                files = ProcessHandles(self._store, self._poll_s)
                # The writer recovers the log of a process that was killed, so that
                # readers, which never wait, find the store ready.
                try:
                    files.writer.open()
                except BaseException:
                    # A store that can't be opened is tried at each call: leave no thread.
                    files.close()
                    raise
                self._files = files
            return self._files

    def close(self) -> None:
        self._genesis = None
        if self.abci is not None:
            self.abci.close()
        files, self._files = self._files, None
        if files is not None and files.process == os.getpid():
            files.close()
