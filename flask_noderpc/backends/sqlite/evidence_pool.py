"""The evidence pool as a capability of the SQLite backend."""

from __future__ import annotations

from collections.abc import Callable

from ...domain.block import Evidence
from ...protocol.comet.hashes import evidence_hash_of
from ..base.application import Application
from ..base.evidence import EvidencePool, check_evidence
from ..base.reads import ChainReads
from . import evidence
from .process_handles import ProcessHandles


class SQLiteEvidencePool(EvidencePool):
    """Pending evidence in a table."""

    def __init__(
        self,
        open_store: Callable[[], ProcessHandles],
        application: Callable[[], Application],
        chain: ChainReads,
    ) -> None:
        self._open, self._app, self._chain = open_store, application, chain

    def submit(self, piece: Evidence) -> bytes:
        self._app()
        files, own = self._open(), evidence_hash_of(piece)
        with files.readers.snapshot() as at:
            known = evidence.is_known(at, own)
        if not known:
            check_evidence(self._chain, piece)
            files.writer.run(lambda at: evidence.add(at, piece))
            files.changes.notify()
        return own
