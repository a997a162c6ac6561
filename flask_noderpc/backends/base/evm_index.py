"""Index of the heights of Ethereum transactions and logs."""

from __future__ import annotations

from collections.abc import Sequence

from ...domain.ethereum import LogSearch
from ...domain.search import Page, Search, SearchLimits, Term
from .search import SearchedChain

# One that did not fit its block may be in a later one again.
_MAX_PLACES = 10


class EvmIndex:
    """Heights of blocks that may have an Ethereum transaction, or certain logs.

    The caller reads these blocks: a height too many costs time, and one too few hides a
    result. The defaults know as little as any backend does; one with an index of its
    own does better.
    """

    def __init__(self, chain: SearchedChain) -> None:
        self._chain = chain

    def tx_heights(self, tx_hash: bytes, limits: SearchLimits) -> Sequence[int]:
        """Return heights that may have the transaction, newest first; raise
        :exc:`~flask_noderpc.errors.SearchTooCostly`."""
        # Ethermint: the hash stands in the event in small letters.
        term = Term("ethereum_tx.ethereumTxHash", equals=f"0x{tx_hash.hex()}")
        found = self._chain.search_txs(Search((term,)), Page(0, _MAX_PLACES, True), limits)
        return tuple(dict.fromkeys(record.height for record in found.txs))

    def log_heights(self, wanted: LogSearch, limits: SearchLimits) -> Sequence[int]:
        """Return heights that may have such logs, lowest first; raise ``SearchTooCostly``."""
        return range(wanted.low, wanted.high + 1)
