"""A process that runs code: ``python -m flask_noderpc.chain.evm.executor``.

Its arguments are the store, how much it gives way to other processes, and its socket.
"""

from __future__ import annotations

import os
import sys
from functools import lru_cache

from ...backend.sqlite import SQLiteBackend
from ...engine.child import serve
from ...engine.pyevm import PyEvm
from ...errors import BlockNotFound, HeightNotAvailable

_KEPT_RECORDS = 50_000


class StoredRecords:
    """What a store keeps of the state; records never change under their hashes."""

    def __init__(self, store: SQLiteBackend) -> None:
        self._store = store
        self._record = lru_cache(_KEPT_RECORDS)(self._read)

    def _read(self, digest: bytes) -> bytes:
        found = self._store.get(digest)
        if found is None:
            raise KeyError(digest)
        return found

    def record(self, digest: bytes) -> bytes | None:
        """A node or a code by its hash."""
        try:
            return self._record(digest)
        except KeyError:
            return None

    def block_hash(self, height: int) -> bytes | None:
        """The hash of a block."""
        try:
            return self._store.hash_at(height)
        except (HeightNotAvailable, BlockNotFound):
            return None


if __name__ == "__main__":
    os.nice(int(sys.argv[2]))
    serve(PyEvm(StoredRecords(SQLiteBackend(sys.argv[1]))), int(sys.argv[3]))
