"""Index of events: the values of attributes and their hits.

There are two of the same form, for transactions (``tx_values``, ``tx_hits``) and for blocks
(``block_values``, ``block_hits``). A value is stored once, with the number of its
hits; a hit says that the event ``event`` at ``place`` has the value. The place of a block is
its height, that of a transaction its number in the chain, ``txs.seq``.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable, Sequence
from decimal import Decimal

from ...domain.abci import BlockResults, Event
from ...domain.search import HIGHEST, indexed, number_of
from ...protocol.ethereum.aliases import searchable
from . import rows, state

log = logging.getLogger("flask_noderpc.store")

Connection = sqlite3.Connection

TX, BLOCK = "tx", "block"

_EXPONENTS = 50_000
_NINES = str.maketrans("0123456789", "9876543210")


def sortable(number: Decimal) -> str:
    """A text that sorts among its like as the number does among numbers.

    Exact, whatever the number's size: SQLite's own numbers end at 64 bits.
    """
    sign, digits, _ = number.as_tuple()
    # Trailing zeros say nothing behind the exponent.
    shown = "".join(map(str, digits)).lstrip("0").rstrip("0")
    if not shown:
        return "o"
    text = f"{number.adjusted() + _EXPONENTS:05d}{shown}"
    return f"n{text.translate(_NINES)}~" if sign else f"p{text}"


def number_text(value: str) -> str | None:
    """Return the sortable text of a value that is a number; else ``None``."""
    number = number_of(value)
    return None if number is None else sortable(number)


def write(
    at: Connection, height: int, hashes: Sequence[bytes], results: BlockResults
) -> list[int | None]:
    """Index a block; the number of each of its transactions, ``None`` for those left out."""
    block_events = results.begin_block_events + results.end_block_events
    _write(at, BLOCK, [(height, block_events)])
    numbers = _numbers(at, hashes, results)
    places = zip(numbers, results.tx_results, strict=True)
    _write(
        at,
        TX,
        [
            (number, searchable(result.events))
            for number, result in places
            if number is not None
        ],
    )
    return numbers


def write_stored(at: Connection) -> None:
    """Index the blocks of a store that was made before there was an index."""
    heights = at.execute("SELECT height FROM blocks ORDER BY height").fetchall()
    if heights:
        log.warning("the store is indexed once: %s blocks", len(heights))
    for (height,) in heights:
        _write_stored(at, height)


def rewrite_ethereum(at: Connection) -> None:
    """Index anew a store that has Ethereum's events without their other names."""
    found = at.execute("SELECT 1 FROM tx_values WHERE key >= 'ethereum' AND key < 'ethereun'")
    if found.fetchone() is None:
        return
    for kind in (TX, BLOCK):
        at.execute(f"DELETE FROM {kind}_hits")
        at.execute(f"DELETE FROM {kind}_values")
    at.execute("UPDATE txs SET seq = NULL")
    write_stored(at)


def forget_above(at: Connection, height: int) -> None:
    """Take what is above a height out of the index."""
    _forget(at, TX, _last_number(at, height) + 1, HIGHEST)
    _forget(at, BLOCK, height + 1, HIGHEST)


def forget_up_to(at: Connection, height: int) -> None:
    """Take what is at a height and below out of the index."""
    _forget(at, TX, 0, _last_number(at, height))
    _forget(at, BLOCK, 0, height)


def _last_number(at: Connection, height: int) -> int:
    found = at.execute(
        "SELECT seq FROM txs WHERE height <= ? AND seq IS NOT NULL"
        " ORDER BY height DESC, position DESC LIMIT 1",
        (height,),
    ).fetchone()
    return found[0] if found else 0


def _forget(at: Connection, kind: str, first: int, last: int) -> None:
    gone = at.execute(
        f"SELECT count(DISTINCT place), value_id FROM {kind}_hits"
        " WHERE place BETWEEN ? AND ? GROUP BY value_id",
        (first, last),
    ).fetchall()
    at.execute(f"DELETE FROM {kind}_hits WHERE place BETWEEN ? AND ?", (first, last))
    at.executemany(f"UPDATE {kind}_values SET places = places - ? WHERE id = ?", gone)
    # Each by its id: to look for those without a place would read all values.
    at.executemany(
        f"DELETE FROM {kind}_values WHERE id = ? AND places = 0",
        [(value_id,) for _, value_id in gone],
    )


def _write_stored(at: Connection, height: int) -> None:
    stored = at.execute(
        "SELECT begin_events, end_events FROM blocks WHERE height = ?", (height,)
    ).fetchone()
    begin, end = map(rows.events_from, stored)
    results = BlockResults(height, state.tx_results(at, height), begin, end)
    txs = at.execute("SELECT hash FROM txs WHERE height = ? ORDER BY position", (height,))
    numbers = write(at, height, [tx_hash for (tx_hash,) in txs], results)
    at.executemany(
        "UPDATE txs SET seq = ? WHERE height = ? AND position = ?",
        [(number, height, position) for position, number in enumerate(numbers)],
    )


def _numbers(
    at: Connection, hashes: Sequence[bytes], results: BlockResults
) -> list[int | None]:
    following = (at.execute("SELECT max(seq) FROM txs").fetchone()[0] or 0) + 1
    numbers: list[int | None] = []
    succeeded: set[bytes] = set()
    for tx_hash, result in zip(hashes, results.tx_results, strict=True):
        if result.code == 0:
            succeeded.add(tx_hash)
        # CometBFT: a failure does not stand beside the same transaction's earlier success.
        elif tx_hash in succeeded or _has_succeeded(at, tx_hash):
            numbers.append(None)
            continue
        numbers.append(following)
        following += 1
    return numbers


def _has_succeeded(at: Connection, tx_hash: bytes) -> bool:
    found = at.execute(
        "SELECT 1 FROM txs WHERE hash = ? AND code = 0 AND seq IS NOT NULL LIMIT 1", (tx_hash,)
    )
    return found.fetchone() is not None


def _write(at: Connection, kind: str, places: Iterable[tuple[int, Sequence[Event]]]) -> None:
    hits: dict[tuple[str, str], dict[tuple[int, int], None]] = {}
    for place, events in places:
        for number, attributes in enumerate(indexed(events)):
            for pair in attributes:
                hits.setdefault(pair, {})[place, number] = None
    for (key, value), found in hits.items():
        value_id = _value_id(at, kind, key, value, len({place for place, _ in found}))
        at.executemany(
            f"INSERT INTO {kind}_hits (value_id, place, event) VALUES (?, ?, ?)",
            [(value_id, place, number) for place, number in found],
        )


def _value_id(at: Connection, kind: str, key: str, value: str, places: int) -> int:
    row = at.execute(
        f"INSERT INTO {kind}_values (key, value, number, places) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (key, value) DO UPDATE SET places = places + excluded.places"
        " RETURNING id",
        (key, value, number_text(value), places),
    ).fetchone()
    return int(row[0])
