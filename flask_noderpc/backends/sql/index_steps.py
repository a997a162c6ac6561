"""Index large blocks in short steps, each in its own database transaction; also remove their
index entries in steps.

The step that stores a large block indexes its first transaction; later steps index the rest.
Until the last step, the block counts as not indexed (``blocks.events`` is NULL), although some
of its transactions are. The next backfill continues an interrupted indexing, and the next
pruning an interrupted removal.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence

from ...domain.abci import BlockResults, ExecTxResult
from ...domain.search import TxResult
from . import blocks, index
from .connection import Connection
from .packed.blocks import LAST_POSITION, place

# Number of attributes that are indexed between two checks of the deadline. Removing an
# attribute takes a quarter of the time, so more are removed at once.
ATTRIBUTES_PER_STEP, _REMOVED_PER_STEP = 500, 2_000
# Weight of a transaction without attributes: it takes as long as this many attributes.
_TX_WEIGHT = 4


def weight(results: Iterable[ExecTxResult]) -> int:
    """Return the cost of indexing transactions, in units of one attribute."""
    events = (event for result in results for event in (None, *result.events))
    return sum(_TX_WEIGHT if event is None else len(event.attributes) for event in events)


def finish(at: Connection, deadline: float) -> bool:
    """Finish indexing the lowest block if it is partly indexed; return false if the deadline
    passes before that."""
    height = _partly_indexed_height(at)
    return height is None or continue_indexing(at, height, deadline)


def is_finished(at: Connection) -> bool:
    """Return false if the lowest block is only partly indexed."""
    return _partly_indexed_height(at) is None


def _partly_indexed_height(at: Connection) -> int | None:
    (height,) = at.execute(f"SELECT min(height) FROM {at.engine.heights}").fetchone()
    if height is None:
        return None
    found = at.execute("SELECT events FROM blocks WHERE height = ?", (height,))
    if found.fetchone()[0] is not None:
        return None
    found = at.execute(
        "SELECT 1 FROM txs WHERE place BETWEEN ? AND ? AND events IS NOT NULL LIMIT 1",
        blocks.places(height, height),
    )
    return None if found.fetchone() is None else height


def begin_indexing(at: Connection, height: int) -> None:
    """Index the first transaction of a block, which marks the block as partly indexed."""
    first = _unindexed_places(at, height)[:1]
    if first:
        _index(at, list(blocks.txs_at(at, first)))
    else:
        continue_indexing(at, height, deadline=0)


def continue_indexing(
    at: Connection, height: int, deadline: float, left: Sequence[int] | None = None
) -> bool:
    """Index transactions of a block until the deadline, at least one group of them; return
    true when all transactions and the block itself are indexed.

    ``left`` are the places of the transactions to index; by default they are looked up.
    """
    for number, some in enumerate(
        _groups(at, _unindexed_places(at, height) if left is None else left)
    ):
        if number and time.monotonic() > deadline:
            invalidate_caches(at)
            return False
        _index(at, some)
    own = index.write_events(at, index.BLOCK, [(height, blocks.events(at, height))])
    at.execute("UPDATE blocks SET events = ? WHERE height = ?", (own[height], height))
    invalidate_caches(at)
    return True


def _groups(at: Connection, places: Sequence[int]) -> Iterator[list[TxResult]]:
    """Yield transactions in groups of about ``ATTRIBUTES_PER_STEP`` attributes."""
    some: list[TxResult] = []
    total = 0
    for found in blocks.txs_at(at, places):
        some.append(found)
        total += weight([found.result])
        if total >= ATTRIBUTES_PER_STEP:
            yield some
            some, total = [], 0
    if some:
        yield some


def _index(at: Connection, some: Sequence[TxResult]) -> None:
    places = [place(each.height, each.index) for each in some]
    texts = index.write(
        at, index.TX, [(index.tx_entries(each.result for each in some), places)]
    )
    at.executemany(
        "UPDATE txs SET events = ? WHERE place = ?",
        [(text, here) for here, text in texts.items()],
    )


def _unindexed_places(at: Connection, height: int) -> list[int]:
    found = at.execute(
        "SELECT place, hash, code FROM txs WHERE place BETWEEN ? AND ? AND events IS NULL"
        " ORDER BY place",
        blocks.places(height, height),
    )
    return [
        here
        for here, tx_hash, code in found.fetchall()
        if code == 0 or not index.has_succeeded(at, tx_hash, here)
    ]


def _failures(at: Connection) -> str:
    hashes = at.engine.tx_hashes
    return f"SELECT place FROM {hashes} WHERE hash = ? AND code <> 0 AND place > ?"


def unindex_repeats(
    at: Connection,
    height: int,
    tx_hashes: Sequence[bytes],
    results: BlockResults,
    deadline: float,
) -> bool:
    """Remove failed transactions at higher heights from the index if the same transactions
    succeed at this height; return false if the deadline passes before the end."""
    above = place(height, LAST_POSITION)
    succeeded = [
        (tx_hash, above)
        for tx_hash, result in zip(tx_hashes, results.tx_results, strict=True)
        if result.code == 0
    ]
    failures = list(at.each(f"{_failures(at)} LIMIT 1", succeeded))
    for (tx_hash, _), some in zip(succeeded, failures, strict=True):
        while some and _unindex_some(at, tx_hash, above):
            if time.monotonic() > deadline:
                invalidate_caches(at)
                return False
    return True


def _unindex_some(at: Connection, tx_hash: bytes, above: int) -> bool:
    found = at.execute(
        f"SELECT place, events FROM txs WHERE place IN ({_failures(at)})"
        " AND events IS NOT NULL LIMIT ?",
        (tx_hash, above, ATTRIBUTES_PER_STEP),
    )
    some = _first_places(found, ATTRIBUTES_PER_STEP)
    for here in some:
        index.unindex_txs(at, here, here)
    return bool(some)


def _first_places(rows: Iterable[tuple[int, str]], most: int) -> list[int]:
    """Return the places of the first rows, up to a total weight of about ``most``."""
    places: list[int] = []
    weight = 0
    for here, events in rows:
        places.append(here)
        weight += _TX_WEIGHT + events.count(",")
        if weight >= most:
            break
    return places


_INDEXED = "SELECT place, events FROM txs WHERE place BETWEEN ? AND ? AND events IS NOT NULL"
_INDEXED_ROWS = f"{_INDEXED} ORDER BY place LIMIT ?"


def has_many(at: Connection, low: int, high: int, most: int) -> bool:
    """Return true if a range of blocks has more than ``most`` index entries, at least those
    that one step removes."""
    first, last = blocks.places(low, high)
    most = max(most, _REMOVED_PER_STEP)
    some = _first_places(at.execute(_INDEXED_ROWS, (first, last, most)), most)
    if not some:
        return False
    return at.execute(f"{_INDEXED} LIMIT 1", (some[-1] + 1, last)).fetchone() is not None


def unindex_some(at: Connection, height: int) -> None:
    """Remove a block's own events and some of its transactions from the index."""
    found = at.execute(_INDEXED_ROWS, (*blocks.places(height, height), _REMOVED_PER_STEP))
    some = _first_places(found, _REMOVED_PER_STEP)
    index.unindex_block(at, height)
    index.unindex_txs(at, some[0], some[-1])
    invalidate_caches(at)


def invalidate_caches(at: Connection) -> None:
    """Change the chain's version, so that caches notice a change other than a new block or a
    rewind."""
    at.execute("UPDATE chain SET revision = revision + 1")
