"""Where Ethereum transactions and logs are, as narrow as a backend knows it."""

from __future__ import annotations

from collections.abc import Sequence

from ...domain.ethereum import LogSearch
from ...domain.search import Page, Search, SearchLimits, Term
from .search import EventIndex

# One that did not fit its block may be in a later one again.
_MAX_PLACES = 10


class EvmIndex(EventIndex):
    """Role: the heights of blocks that may have an Ethereum transaction, or certain logs.

    Whoever asks looks into these blocks, so a height too many costs time, and one too few
    hides something. The defaults know as little as any backend does; one with an index of its
    own does better.
    """

    def ethereum_tx_heights(self, tx_hash: bytes, limits: SearchLimits) -> Sequence[int]:
        """Where a transaction of this Ethereum hash may be, newest first; raise
        :exc:`~flask_noderpc.errors.SearchTooCostly`."""
        # Ethermint: the hash stands in the event in small letters.
        term = Term("ethereum_tx.ethereumTxHash", equals=f"0x{tx_hash.hex()}")
        found = self.search_txs(Search((term,)), Page(0, _MAX_PLACES, True), limits)
        return tuple(dict.fromkeys(record.height for record in found.txs))

    def log_heights(self, wanted: LogSearch, limits: SearchLimits) -> Sequence[int]:
        """Where such logs may be, lowest first; raise ``SearchTooCostly``."""
        return range(wanted.low, wanted.high + 1)
