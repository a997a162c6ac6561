"""Event index: the values of event attributes, and the events that have them.

Two indexes have the same layout: of transactions (tables ``tx_…``) and of blocks
(``block_…``). The place of a transaction combines its height and index in one integer; the
place of a block is its height. A value is stored once under its key, with the number of places
that have it; a row in ``…_hits`` says that the event number ``event`` at ``place`` has the
value. The column ``events`` of the row of a transaction or block lists the value IDs of each
event; searches check further conditions with it, and removal finds the index entries by it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from hashlib import blake2b
from itertools import islice

from ... import jsoncodec
from ...domain.abci import BlockResults, Event, ExecTxResult, PackedEvents
from ...domain.search import indexed_attributes, parse_number
from ...event_aliases import searchable
from .blocks import places
from .connection import Connection
from .packed.blocks import POSITION_BITS, DamagedRow, place

TX, BLOCK = "tx", "block"
ROWS = {TX: ("txs", "place"), BLOCK: ("blocks", "height")}
"""Table with the column ``events``, and its key column, for each index."""

COUNT_BUCKET_BITS = 10
"""Number of low bits of a height that rows of ``tx_counts`` ignore: a row counts the indexed
transactions of 1,024 heights."""

# Number of events of a large block that are indexed together.
_EVENTS_TOGETHER = 2_000
_EXPONENTS = 50_000
_NINES = str.maketrans("0123456789", "9876543210")

TxAt = tuple[int, int, ExecTxResult]
"""Height, position and result of a transaction."""
_Pair = tuple[str, str]


def sortable(number: Decimal) -> str:
    """Return a string for a number; such strings sort in the order of the numbers.

    Numbers of any size stay exact, while SQLite's integers have 64 bits.
    """
    sign, digits, _ = number.as_tuple()
    # Trailing zeros are implied by the exponent.
    shown = "".join(map(str, digits)).lstrip("0").rstrip("0")
    if not shown:
        return "o"
    text = f"{number.adjusted() + _EXPONENTS:05d}{shown}"
    return f"n{text.translate(_NINES)}~" if sign else f"p{text}"


def number_text(value: str) -> str | None:
    """Return the sortable string of a value that is a number, otherwise ``None``."""
    number = parse_number(value)
    return None if number is None else sortable(number)


def digest(value: str) -> int:
    """Return 48 bits of a value's hash, which is indexed instead of the value to save
    space."""
    return int.from_bytes(blake2b(value.encode(), digest_size=6).digest())


# Writes.


def write_blocks(at: Connection, found: Sequence[tuple[int, Sequence[Event]]]) -> list[str]:
    """Index block events, given by height; return the column ``events`` of each block."""
    return _write(at, BLOCK, found)


def write_results(at: Connection, found: Sequence[TxAt]) -> list[str]:
    """Index the events of transactions; return the column ``events`` of each transaction."""
    return _write(
        at,
        TX,
        [
            (place(height, position), searchable(each.events))
            for height, position, each in found
        ],
    )


def txs_to_index(
    at: Connection, blocks: Iterable[tuple[Sequence[bytes], BlockResults]]
) -> list[TxAt]:
    """Return the transactions to index, given transaction hashes and results of blocks."""
    txs = [
        (tx_hash, place(results.height, position), (results.height, position, result))
        for tx_hashes, results in blocks
        for position, (tx_hash, result) in enumerate(
            zip(tx_hashes, results.tx_results, strict=True)
        )
    ]
    firsts: dict[bytes, int] = {}
    for tx_hash, here, (*_, result) in txs:
        if result.code == 0:
            firsts[tx_hash] = min(here, firsts.get(tx_hash, here))
    # As in CometBFT, a failure is not indexed if the same transaction has succeeded before.
    failures = [(tx_hash, here) for tx_hash, here, (*_, result) in txs if result.code]
    found = zip(failures, at.each(_succeeded(at), failures), strict=True)
    repeated = {
        here for (tx_hash, here), rows in found if rows or firsts.get(tx_hash, here) < here
    }
    return [tx for _, here, tx in txs if here not in repeated]


def _succeeded(at: Connection) -> str:
    hashes = at.engine.tx_hashes
    return f"SELECT 1 FROM {hashes} WHERE hash = ? AND code = 0 AND place < ? LIMIT 1"


def has_succeeded(at: Connection, tx_hash: bytes, below: int) -> bool:
    """Return true if a transaction with this hash succeeded at a lower place."""
    return at.execute(_succeeded(at), (tx_hash, below)).fetchone() is not None


def _write(
    at: Connection, kind: str, found: Sequence[tuple[int, Sequence[Event]]]
) -> list[str]:
    """Index the events of some places; return the column ``events`` of each place."""
    if any(isinstance(events, PackedEvents) for _, events in found):
        return [
            _write_large(at, kind, here, events)
            if isinstance(events, PackedEvents)
            else _write(at, kind, [(here, events)])[0]
            for here, events in found
        ]
    if not found:
        return []
    events = [[dict.fromkeys(pairs) for pairs in indexed_attributes(each)] for _, each in found]
    if kind == TX:
        _count_txs(at, [here for here, _ in found], 1)
    ids = _ids(at, kind, [{pair for pairs in each for pair in pairs} for each in events])
    id_lists = [[[ids[pair] for pair in pairs] for pairs in each] for each in events]
    at.executemany(
        f"INSERT INTO {kind}_hits (value_id, place, event) VALUES (?, ?, ?)",
        sorted(
            (value_id, here, event)
            for (here, _), each in zip(found, id_lists, strict=True)
            for event, value_ids in enumerate(each)
            for value_id in value_ids
        ),
    )
    return [jsoncodec.encode(each).decode() for each in id_lists]


def _write_large(at: Connection, kind: str, here: int, events: PackedEvents) -> str:
    """Index many events of one place, a few at a time; return the column ``events``."""
    if kind == TX:
        _count_txs(at, [here], 1)
    remaining, seen = iter(enumerate(indexed_attributes(events))), set[str | int]()
    id_lists = bytearray(b"[")
    while some := list(islice(remaining, _EVENTS_TOGETHER)):
        ids = _ids(at, kind, [{pair for _, pairs in some for pair in pairs}], seen)
        event_ids = [(event, [*{ids[pair]: None for pair in pairs}]) for event, pairs in some]
        at.executemany(
            f"INSERT INTO {kind}_hits (value_id, place, event) VALUES (?, ?, ?)",
            sorted((own_id, here, event) for event, found in event_ids for own_id in found),
        )
        for _, found in event_ids:
            id_lists += jsoncodec.encode(found) + b","
    id_lists[-1:] = b"]"
    return id_lists.decode()


def _count_txs(at: Connection, places: Sequence[int], by: int) -> None:
    counts = Counter(here >> POSITION_BITS + COUNT_BUCKET_BITS for here in places)
    at.executemany(
        "INSERT INTO tx_counts (heights, txs) VALUES (?, ?)"
        " ON CONFLICT (heights) DO UPDATE SET txs = tx_counts.txs + excluded.txs",
        [(heights, by * count) for heights, count in counts.items()],
    )


def _ids(
    at: Connection,
    kind: str,
    places_pairs: Sequence[set[_Pair]],
    seen: set[str | int] | None = None,
) -> dict[_Pair, int]:
    """Insert the values of some places, counting each value once per place; return their
    IDs.

    ``seen`` has the keys and the IDs of values that are already counted, if the values belong
    to one large place; the keys and IDs of this call are added to it.
    """
    seen = set() if seen is None else seen
    key_ids, text = _key_ids(at, kind, places_pairs, seen), at.engine.text
    counts = Counter(pair for pairs in places_pairs for pair in pairs)
    digests = {pair: digest(pair[1]) for pair in counts}
    ids = _known_ids(at, kind, key_ids, digests)
    at.executemany(
        f"UPDATE {kind}_values SET places = places + ? WHERE id = ?",
        [(counts[pair], value_id) for pair, value_id in ids.items() if value_id not in seen],
    )
    (last,) = at.execute(f"SELECT coalesce(max(id), 0) FROM {kind}_values").fetchone()
    new = [pair for pair in counts if pair not in ids]
    added = dict(zip(new, range(last + 1, last + 1 + len(new)), strict=True))
    at.executemany(
        f"INSERT INTO {kind}_values (id, key_id, digest, value, number, places)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        [
            (
                own_id,
                key_ids[pair[0]],
                digests[pair],
                text(pair[1]),
                number_text(pair[1]),
                counts[pair],
            )
            for pair, own_id in added.items()
        ],
    )
    seen.update(key_ids, ids.values(), added.values())
    return ids | added


def _known_ids(
    at: Connection, kind: str, key_ids: dict[str, int], digests: dict[_Pair, int]
) -> dict[_Pair, int]:
    """Return the IDs of values that are already stored; reads them with one statement per
    key."""
    of_keys: dict[str, list[int]] = {}
    for (key, _), each in digests.items():
        of_keys.setdefault(key, []).append(each)
    engine = at.engine
    rows_of_keys = at.each(
        f"SELECT value, id FROM {kind}_values"
        f" WHERE key_id = ? AND {engine.is_one_of('digest')}",
        [(key_ids[key], engine.integers_param(each)) for key, each in of_keys.items()],
    )
    found = (
        ((key, engine.to_text(value)), value_id)
        for key, rows in zip(of_keys, rows_of_keys, strict=True)
        for value, value_id in rows
    )
    return {pair: value_id for pair, value_id in found if pair in digests}


def _key_ids(
    at: Connection, kind: str, places_pairs: Sequence[set[_Pair]], seen: set[str | int]
) -> dict[str, int]:
    counts = Counter(key for pairs in places_pairs for key in {key for key, _ in pairs})
    at.executemany(
        f"INSERT INTO {kind}_keys AS k (key, places) VALUES (?, ?)"
        f" ON CONFLICT ({at.engine.unique_key('key')})"
        " DO UPDATE SET places = k.places + excluded.places",
        [(at.engine.text(key), 0 if key in seen else n) for key, n in counts.items()],
    )
    found = at.each(_key_sql(at, kind), [(at.engine.text(key),) for key in counts])
    return {key: int(rows[0][0]) for key, rows in zip(counts, found, strict=True)}


def unindex_txs(at: Connection, first: int, last: int) -> None:
    """Remove the transactions of a range of places from the index; the store keeps them."""
    _unindex(at, TX, first, last)
    at.execute(
        "UPDATE txs SET events = NULL WHERE place BETWEEN ? AND ? AND events IS NOT NULL",
        (first, last),
    )


def unindex_block(at: Connection, height: int) -> None:
    """Remove a block's own events from the index; the store keeps the block."""
    _unindex(at, BLOCK, height, height)
    at.execute("UPDATE blocks SET events = NULL WHERE height = ?", (height,))


# Look-ups.


def key_row(at: Connection, kind: str, key: str) -> tuple[int, int]:
    """Return the ID of an event key and the number of its places; 0 and 0 if no event has the
    key."""
    row: tuple[int, int] | None = at.execute(
        _key_sql(at, kind), (at.engine.text(key),)
    ).fetchone()
    return row or (0, 0)


def _key_sql(at: Connection, kind: str) -> str:
    long = at.engine.unique_key
    return f"SELECT id, places FROM {kind}_keys WHERE {long('key')} = {long('?')}"


def value_row(at: Connection, kind: str, own_key: int, value: str) -> tuple[int, int] | None:
    """Return the ID of a value and the number of its places; ``None`` if no event has the
    value."""
    row: tuple[int, int] | None = at.execute(
        f"SELECT id, places FROM {kind}_values WHERE key_id = ? AND digest = ? AND value = ?",
        (own_key, digest(value), at.engine.text(value)),
    ).fetchone()
    return row


# Removal.


def unindex_blocks(at: Connection, low: int, high: int, *, keeps_tx_hits: bool = False) -> None:
    """Remove a range of heights from the index. With ``keeps_tx_hits``, only update the counts
    of transactions, because the engine drops their hits."""
    _unindex(at, TX, *places(low, high), keeps_hits=keeps_tx_hits)
    _unindex(at, BLOCK, low, high)


def _unindex(
    at: Connection, kind: str, first: int, last: int, *, keeps_hits: bool = False
) -> None:
    table, key = ROWS[kind]
    found = at.execute(
        f"SELECT {key}, events FROM {table} WHERE {key} BETWEEN ? AND ? AND events IS NOT NULL",
        (first, last),
    ).fetchall()
    hits = [
        (value_id, here)
        for here, events in found
        for value_id in {
            value_id for event in parse_value_ids(kind, here, events) for value_id in event
        }
    ]
    if kind == TX:
        _count_txs(at, [here for here, _ in found], -1)
    if hits and not keeps_hits:
        value_ids = at.engine.integers_param(sorted({value_id for value_id, _ in hits}))
        is_one = at.engine.is_one_of("value_id")
        at.execute(
            f"DELETE FROM {kind}_hits WHERE {is_one} AND place BETWEEN ? AND ?",
            (value_ids, first, last),
        )
    if hits:
        _count_down(at, kind, hits)


def parse_value_ids(kind: str, here: int, events: str) -> list[list[int]]:
    """Parse a column ``events``: a list of value IDs for each event; raise
    :exc:`DamagedRow`."""
    try:
        return jsoncodec.decode(events, list[list[int]])
    except jsoncodec.NotJSON as error:
        raise _damaged(kind, here, str(error)) from None


def _damaged(kind: str, here: int, cause: str) -> DamagedRow:
    return DamagedRow("index", here if kind == BLOCK else here >> POSITION_BITS, cause)


def _count_down(at: Connection, kind: str, hits: Sequence[tuple[int, int]]) -> None:
    gone = Counter(value_id for value_id, _ in hits)
    rows = _counts(at, f"{kind}_values", "key_id", gone)
    key_ids = {value_id: key_id for value_id, key_id, _ in rows}
    if len(key_ids) < len(gone):
        value_id, here = next(hit for hit in hits if hit[0] not in key_ids)
        raise _damaged(kind, here, f"value {value_id} is missing")
    _subtract(at, f"{kind}_values", rows, gone)
    keys_gone = Counter(
        key for key, _ in {(key_ids[value_id], here) for value_id, here in hits}
    )
    keys = f"{kind}_keys"
    _subtract(at, keys, _counts(at, keys, "id", keys_gone), keys_gone)


_Counts = Sequence[tuple[int, int, int]]


def _counts(at: Connection, table: str, column: str, own_ids: Iterable[int]) -> _Counts:
    """Return the IDs of rows with a further column and their numbers of places."""
    found = at.execute(
        f"SELECT id, {column}, places FROM {table} WHERE {at.engine.is_one_of('id')}",
        (at.engine.integers_param(sorted(own_ids)),),
    )
    return found.fetchall()


def _subtract(at: Connection, table: str, rows: _Counts, gone: Mapping[int, int]) -> None:
    """Subtract from the numbers of places of rows; delete rows that have no place left."""
    engine, ids_of_counts = at.engine, dict[int, list[int]]()
    for own_id, _, total in rows:
        count = gone[own_id]
        # Most values have one place: their rows (the key 0) are deleted without an update.
        ids_of_counts.setdefault(count if total > count else 0, []).append(own_id)
    unused = engine.integers_param(ids_of_counts.pop(0, []))
    at.execute(f"DELETE FROM {table} WHERE {engine.is_one_of('id')}", (unused,))
    at.executemany(
        f"UPDATE {table} SET places = places - ? WHERE {engine.is_one_of('id')}",
        [(count, engine.integers_param(ids)) for count, ids in ids_of_counts.items()],
    )
