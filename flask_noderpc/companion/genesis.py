"""Fetch the genesis document after the first blocks, and store it as a node sent it.

Nothing proves the document. Until it is stored, or if it is too large to be stored, requests
for it are forwarded to a node.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass

from ..backends.sql.store import ChainStore
from ..domain.genesis import Genesis, GenesisSource
from ..errors import BackendError
from .pool import Upstreams
from .reader import Reader
from .threads import in_background

log = logging.getLogger("flask_noderpc.companion")

MAX_CHUNKS = 16
"""Maximum number of 16 MB chunks that are stored."""
_FIRST_PAUSE_S, _MAX_PAUSE_S = 1.0, 60.0


@dataclass(frozen=True, slots=True)
class _FetchedGenesis:
    source: GenesisSource
    chunks: tuple[bytes, ...]
    document: Genesis | None
    """Decoded document; ``None`` if it has several chunks."""


def fetch_genesis(store: ChainStore, upstreams: Upstreams) -> None:
    """Fetch and store the genesis document, unless the store has it.

    Raise the errors of :meth:`Upstreams.attempt`.
    """
    if store.reads.genesis_source() is not None:
        return
    (found,) = upstreams.attempt(lambda reader: (_fetch_genesis_chunks(reader),))
    if found is None:
        log.warning(
            "the genesis document has more than %d chunks: it is not stored, requests for it"
            " are forwarded",
            MAX_CHUNKS,
        )
        return
    known, document = (store.reads.chain_id(), store.reads.initial_height()), found.document
    # Store the decoded document, too, which Ethereum's block 0 and other dialects are made of.
    if document is not None and (document.chain_id, document.initial_height) == known:
        store.set_genesis(document)
    store.set_genesis_chunks(found.source, found.chunks)


def _fetch_genesis_chunks(reader: Reader) -> _FetchedGenesis | None:
    first = reader.genesis_chunk(0)
    if first.total > MAX_CHUNKS:
        return None
    document = reader.genesis_of(first.content) if first.total == 1 else None
    rest = (reader.genesis_chunk(number).content for number in range(1, first.total))
    source = GenesisSource(first.total, reader.node.dialect.name, reader.name)
    return _FetchedGenesis(source, (first.content, *rest), document)


class GenesisThread:
    """Fetches the genesis document in a separate thread until it is stored or ``ended`` is
    set."""

    def __init__(self, store: ChainStore, upstreams: Upstreams, ended: threading.Event) -> None:
        self._store, self._upstreams, self._ended = store, upstreams, ended
        self._thread = threading.Thread(target=self._run, name="noderpc-genesis", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """Wait for the thread, after ``ended`` is set."""
        self._thread.join()

    def _run(self) -> None:
        with in_background(self._ended):
            self._fetch()

    def _fetch(self) -> None:
        pause = _FIRST_PAUSE_S
        while not self._ended.is_set():
            try:
                fetch_genesis(self._store, self._upstreams)
            except BackendError as error:
                log.info("the genesis document is not available yet, retrying: %s", error)
            except Exception:
                log.exception("the genesis document could not be fetched, retrying")
            else:
                return
            self._ended.wait(pause)
            pause = min(2 * pause, _MAX_PAUSE_S)
