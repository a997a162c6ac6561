"""``SQLiteBackend``: a backend whose chain is in one SQLite file that several processes
share."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from ...concurrency import NativeThread
from ...errors import InvalidBlock, StoreError
from ..base.application import Application, AppState
from ..base.capabilities import MempoolLimits
from ..sql.store import ChainStore
from . import copies
from .connection import SQLiteFile
from .engine import SQLite
from .handles import SQLiteHandles

# Minimum free disk space, enough for the pages that a block's transaction writes.
_MIN_FREE_BYTES = 1 << 16


class SQLiteBackend(ChainStore):
    """A chain in one SQLite file: blocks, results, state, index and mempool.

    ``path`` is a file name or a ``file:`` URI. Each process opens the file at its first use,
    and creates it if it is missing. ``application`` is a function that creates the application
    of an embedded chain from its committed state; without it, blocks come from
    :meth:`append_block`, and transactions are refused. ``max_pages`` limits the size of the
    file, and ``poll_s`` is the interval in seconds at which waiting threads look for writes of
    other processes. If the WAL is larger than ``max_log_bytes``, it is truncated as soon as no
    reader uses it. Every error of the file is raised as a
    :exc:`~flask_noderpc.errors.StoreError`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        application: Callable[[AppState], Application] | None = None,
        limits: MempoolLimits | None = None,
        max_pages: int | None = None,
        max_log_bytes: int = 64 << 20,
        poll_s: float = 0.05,
    ) -> None:
        self._store = SQLiteFile(path, max_pages, max_log_bytes)
        super().__init__(
            self._store,
            SQLite(),
            lambda: SQLiteHandles(self._store, poll_s),
            application,
            limits,
        )

    def has_free_space(self) -> bool:
        return shutil.disk_usage(self._store.real_file.parent).free >= _MIN_FREE_BYTES

    def size_bytes(self) -> int:
        self._open()
        return self._store.real_file.stat().st_size + self._store.log_bytes()

    def backup(
        self,
        target: str | os.PathLike[str],
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """Copy the store to a new file while it is in use.

        ``progress`` is called with the number of remaining pages and the total number.
        """
        if os.path.exists(target):
            raise StoreError(
                "the file exists already; name a new file for the backup", os.fspath(target)
            )

        self._open()
        thread = NativeThread("noderpc-backup")
        try:
            # Copy on a separate thread, because the writer's thread must stay free to commit
            # blocks.
            thread.run(lambda: copies.copy(self._store, Path(target), progress))
        finally:
            thread.stop()

    def compact(self, progress: Callable[[int, int], None] | None = None) -> tuple[int, int]:
        self.close()
        return copies.compact(self._store, progress)

    def migrate(self, progress: Callable[[int], None] | None = None) -> int:
        self.close()
        with copies.exclusive_connection(self._store):
            # Only check that no other process has the store open: a node of the old version
            # would continue to write to the old tables.
            pass
        first, remaining = None, 0
        for remaining in self._store.migrate():
            first = remaining if first is None else first
            if progress is not None:
                progress(remaining)
        return (first or 0) - remaining

    def check_file(self) -> None:
        found = self._open().readers.one("PRAGMA integrity_check")
        if found != ("ok",):
            raise InvalidBlock(f"{self._store.display_name}: {found[0]}")
