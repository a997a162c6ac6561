"""Index of Ethereum transactions and logs, and searches for heights that may contain them.

SQL stores maintain the index, as they do for any index that a feature declares. An entry is a
key and a number: a log's number in its block, and 0 for a transaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b

from ..backends.base.backend import ChainBackend
from ..backends.sql.capabilities import HITS
from ..domain.abci import ExecTxResult
from ..domain.search import Page, Search, SearchLimits, Term
from .domain.records import LogSearch
from .protocol import execution

NAME = "evm"

TX, ADDRESS, ANY_LOG = b"tx", b"address", b"any log"
TOPICS = (b"topic 0", b"topic 1", b"topic 2", b"topic 3")

# Maximum number of blocks to search for a transaction: one that exceeds a block's gas limit is
# not executed and may be included again.
_MAX_PLACES = 10


# Keys are cached, as some addresses and topics occur in every block.
@lru_cache(maxsize=2048)
def key(kind: bytes, value: bytes = b"") -> int:
    """Return the 48-bit index key of a value: a hash, an address or a topic."""
    return int.from_bytes(blake2b(value, digest_size=6, person=kind).digest(), signed=True)


def hits(found: Sequence[tuple[bytes, ExecTxResult]]) -> Iterator[tuple[int, int]]:
    """Yield the index entries of a block's transactions and logs: key and number."""
    for tx, _ in found:
        for eth_hash in execution.transaction_hashes(tx):
            yield key(TX, eth_hash), 0
    logs = [
        log for _, result in found for logs in execution.emitted_logs(result) for log in logs
    ]
    if logs:
        yield key(ANY_LOG), 0
    for number, each in enumerate(logs):
        yield key(ADDRESS, each.address), number
        for kind, topic in zip(TOPICS, each.topics, strict=False):
            yield key(kind, topic), number


def tx_heights(backend: ChainBackend, tx_hash: bytes, limits: SearchLimits) -> Sequence[int]:
    """Return heights of blocks that may contain an Ethereum transaction, newest first; raise
    :exc:`~flask_noderpc.errors.SearchTooCostly`."""
    index, found = HITS.find(backend), tuple[int, ...]()
    if index is not None:
        found, is_complete = index.newest_heights(NAME, key(TX, tx_hash))
        is_elsewhere = (
            not found and backend.reads.lowest_readable() < backend.reads.lowest_indexed()
        )
        if is_complete and not is_elsewhere:
            return found
    # Ethermint: the event contains the hash in lower case.
    name, value = "ethereum_tx.ethereumTxHash", f"0x{tx_hash.hex()}"
    search = Search((Term(name, equals=value),), text=f"{name}='{value}'")
    searched = backend.reads.search_txs(search, Page(0, _MAX_PLACES, True), limits)
    return tuple(dict.fromkeys((*found, *(record.height for record in searched.txs))))


def log_heights(
    backend: ChainBackend, search: LogSearch, limits: SearchLimits
) -> Sequence[int]:
    """Return heights of blocks that may contain matching logs, lowest first; raise
    :exc:`~flask_noderpc.errors.SearchTooCostly`.

    The caller must check the logs of these blocks; some may have no match.
    """
    index, lowest = HITS.find(backend), backend.reads.lowest_indexed()
    if index is None or search.high < lowest or search.low == search.high:
        return range(search.low, search.high + 1)
    # Blocks below the index may be on upstream nodes, which can't search logs by address, so
    # return all of their heights.
    low = max(search.low, lowest)
    newer = index.heights(NAME, _terms(search), low, search.high, limits)
    return (*range(search.low, low), *newer)


def _terms(search: LogSearch) -> list[Sequence[int]]:
    kinds = ((ADDRESS, search.addresses), *zip(TOPICS, search.topics, strict=False))
    terms = [tuple(key(kind, value) for value in set(values)) for kind, values in kinds]
    return [term for term in terms if term] or [(key(ANY_LOG),)]
