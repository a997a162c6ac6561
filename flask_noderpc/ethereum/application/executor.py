"""An EVM executor process: ``python -m flask_noderpc.ethereum.application.executor``.

Its arguments are the database, the maximum bytes of its caches, the increment of its niceness,
1 (else 0) if states keep addresses and slots by hash, and the file descriptor of its socket.
"""

from __future__ import annotations

import os
import sys

from ...backends import open_store
from ...backends.sql.store import ChainStore
from ...errors import BlockNotFound, HeightNotAvailable
from ...executors.process import serve
from ...lru import CacheMemory
from ..engine.evm import Evm
from .state import CachedNodeStore


class StoredNodes(CachedNodeStore):
    """Trie nodes, codes and block hashes from the chain's store."""

    def __init__(self, store: ChainStore, cache_bytes: int) -> None:
        super().__init__(store.app_state.get, CacheMemory(cache_bytes))
        self._store = store

    def block_hash(self, height: int) -> bytes | None:
        """Return the hash of a block, or ``None`` if it is not stored."""
        try:
            return self._store.reads.hash_at(height)
        except (HeightNotAvailable, BlockNotFound):
            return None


if __name__ == "__main__":
    store, cache_bytes, niceness, names, descriptor = sys.argv[1:]
    os.nice(int(niceness))
    node_store = StoredNodes(open_store(store), int(cache_bytes))
    serve(Evm(node_store, keeps_names=names == "1"), int(descriptor))
