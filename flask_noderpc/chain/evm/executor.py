"""A process that runs code: ``python -m flask_noderpc.chain.evm.executor``.

Its arguments are the store, how much it gives way to other processes, and its socket.
"""

from __future__ import annotations

import os
import sys

from ...backend.sqlite import SQLiteBackend
from ...engine.child import serve
from ...engine.pyevm import PyEvm
from ...errors import BlockNotFound, HeightNotAvailable
from .records import KeptRecords


class StoredRecords(KeptRecords):
    """What a store keeps of the state and of its blocks."""

    def __init__(self, store: SQLiteBackend) -> None:
        super().__init__(store.get)
        self._store = store

    def block_hash(self, height: int) -> bytes | None:
        """The hash of a block."""
        try:
            return self._store.hash_at(height)
        except (HeightNotAvailable, BlockNotFound):
            return None


if __name__ == "__main__":
    os.nice(int(sys.argv[2]))
    serve(PyEvm(StoredRecords(SQLiteBackend(sys.argv[1]))), int(sys.argv[3]))
