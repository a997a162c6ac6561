"""An EVM executor process: ``python -m flask_noderpc.ethereum.application.executor``.

Its arguments are the database, the maximum bytes of its caches, 1 (else 0) if the chain is
forked, the increment of its niceness, 1 (else 0) if states keep addresses and slots by hash,
and the file descriptor of its socket.
"""

from __future__ import annotations

import os
import sys

from ...backends import open_store
from ...backends.sql.store import ChainStore
from ...errors import BlockNotFound, HeightNotAvailable
from ...executors.process import ask, serve
from ...lru import CacheMemory
from ..engine.evm import Evm
from ..protocol.accounts import forked_block_key
from .state import CachedNodeStore


class StoredNodes(CachedNodeStore):
    """Trie nodes, codes and block hashes from the chain's store; of a forked chain, the parent
    process reads what the store lacks."""

    def __init__(self, store: ChainStore, cache_bytes: int, *, is_forked: bool) -> None:
        super().__init__(self._read, CacheMemory(cache_bytes))
        self._store, self._is_forked = store, is_forked

    def _read(self, digest: bytes) -> bytes | None:
        found = self._store.app_state.get(digest)
        if found is None and self._is_forked:
            found = ask(digest)
        return found

    def block_hash(self, height: int) -> bytes | None:
        """Return the hash of a block, or ``None`` if it is not stored."""
        try:
            return self._store.reads.hash_at(height)
        except (HeightNotAvailable, BlockNotFound):
            return (self._is_forked and self.record(forked_block_key(height))) or None


if __name__ == "__main__":
    store, cache_bytes, forked, niceness, names, descriptor = sys.argv[1:]
    os.nice(int(niceness))
    node_store = StoredNodes(open_store(store), int(cache_bytes), is_forked=forked == "1")
    serve(Evm(node_store, keeps_names=names == "1"), int(descriptor))
