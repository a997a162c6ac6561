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
from collections.abc import Container, Iterable, Mapping, Sequence
from decimal import Decimal
from hashlib import blake2b
from itertools import islice
from operator import itemgetter
from typing import NamedTuple

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

_Value = tuple[str, str, int, str | None]
_Hit = tuple[int, int, int]


class Entries(NamedTuple):
    """Index entries of some places, computed from their events alone."""

    values: Sequence[_Value]
    """Distinct values, each with its search key, its digest, and the sortable string of a
    number."""
    counts: Sequence[int]
    """Number of places that have each value."""
    keys: Mapping[str, int]
    """Number of places that have a value of each key."""
    of_places: Sequence[Sequence[Sequence[int]]]
    """For each place, the positions in ``values`` of each event's distinct values."""
    first_event: int = 0
    """Number of each place's first event."""

    def without(
        self, places: Sequence[int], left_out: Container[int]
    ) -> tuple[Entries, Sequence[int]]:
        """Return the entries and their places without those left out."""
        kept = [number for number, here in enumerate(places) if here not in left_out]
        if len(kept) == len(places):
            return self, places
        numbers: dict[int, int] = {}
        of_places = [
            [[numbers.setdefault(each, len(numbers)) for each in event] for event in of_events]
            for of_events in map(self.of_places.__getitem__, kept)
        ]
        entries = _counted([self.values[each] for each in numbers], of_places)
        return entries, [places[number] for number in kept]


def _counted(values: Sequence[_Value], of_places: Sequence[Sequence[Sequence[int]]]) -> Entries:
    counts, keys = [0] * len(values), Counter[str]()
    for of_events in of_places:
        own = set().union(*of_events)
        for number in own:
            counts[number] += 1
        keys.update({values[number][0] for number in own})
    return Entries(values, counts, dict(keys), of_places)


NO_ENTRIES = Entries((), (), {}, ())


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


def tx_entries(results: Iterable[ExecTxResult]) -> Entries:
    """Return the index entries of transactions."""
    return entries(searchable(each.events) for each in results)


def entries(events_of_places: Iterable[Sequence[Event]]) -> Entries:
    """Return the index entries of places with these events."""
    return _entries(map(indexed_attributes, events_of_places))


def _entries(pairs_of_places: Iterable[Iterable[list[tuple[str, str]]]]) -> Entries:
    numbers: dict[tuple[str, str], int] = {}
    of_places = [
        [
            [numbers.setdefault(pair, len(numbers)) for pair in dict.fromkeys(pairs)]
            for pairs in pairs_of_events
        ]
        for pairs_of_events in pairs_of_places
    ]
    values = [(key, value, digest(value), number_text(value)) for key, value in numbers]
    return _counted(values, of_places)


# Writes.


def repeated_failures(
    at: Connection, blocks: Iterable[tuple[Sequence[bytes], BlockResults]]
) -> set[int]:
    """Return the places of failed transactions that have succeeded before, given transaction
    hashes and results of blocks; as in CometBFT, these are not indexed."""
    txs = [
        (tx_hash, place(results.height, position), result.code)
        for tx_hashes, results in blocks
        for position, (tx_hash, result) in enumerate(
            zip(tx_hashes, results.tx_results, strict=True)
        )
    ]
    failures = [(tx_hash, here) for tx_hash, here, code in txs if code]
    if not failures:
        return set()
    firsts: dict[bytes, int] = {}
    for tx_hash, here, code in txs:
        if code == 0:
            firsts[tx_hash] = min(here, firsts.get(tx_hash, here))
    found = zip(failures, at.each(_succeeded(at), failures), strict=True)
    return {here for (tx_hash, here), rows in found if rows or firsts.get(tx_hash, here) < here}


def _succeeded(at: Connection) -> str:
    hashes = at.engine.tx_hashes
    return f"SELECT 1 FROM {hashes} WHERE hash = ? AND code = 0 AND place < ? LIMIT 1"


def has_succeeded(at: Connection, tx_hash: bytes, below: int) -> bool:
    """Return true if a transaction with this hash succeeded at a lower place."""
    return at.execute(_succeeded(at), (tx_hash, below)).fetchone() is not None


def write_events(
    at: Connection, kind: str, found: Iterable[tuple[int, Sequence[Event]]]
) -> dict[int, str]:
    """Index the events of one place after the other, a few at a time if they are packed; return
    the column ``events`` of each place."""
    texts: dict[int, str] = {}
    for here, events in found:
        if isinstance(events, PackedEvents):
            texts[here] = _write_large(at, kind, here, events)
        else:
            texts |= write(at, kind, [(entries([events]), [here])])
    return texts


def _write_large(at: Connection, kind: str, here: int, events: PackedEvents) -> str:
    if kind == TX:
        _count_txs(at, [here], 1)
    remaining, counted = indexed_attributes(events), set[str | int]()
    texts, first = list[str](), 0
    while some := list(islice(remaining, _EVENTS_TOGETHER)):
        part = _entries([some])._replace(first_event=first)
        texts.append(_write(at, kind, [(part, [here])], counted)[here][1:-1])
        first += len(some)
    return f"[{','.join(texts)}]"


def write(
    at: Connection, kind: str, found: Sequence[tuple[Entries, Sequence[int]]]
) -> dict[int, str]:
    """Write the entries of some places; return the column ``events`` of each place."""
    if kind == TX:
        _count_txs(at, [here for _, of_entries in found for here in of_entries], 1)
    return _write(at, kind, found, set()) if found else {}


def _write(
    at: Connection,
    kind: str,
    found: Sequence[tuple[Entries, Sequence[int]]],
    counted: set[str | int],
) -> dict[int, str]:
    """Write entries as :func:`write` does.

    ``counted`` has the keys and the IDs of values that are already counted, if the entries
    belong to one large place; the keys and IDs of these entries are added to it.
    """
    counts = _merged_counts(each for each, _ in found)
    of_keys = sum((Counter(each.keys) for each, _ in found), Counter[str]())
    key_ids = _key_ids(
        at, kind, {key: 0 if key in counted else count for key, count in of_keys.items()}
    )
    ids = _known_ids(at, kind, key_ids, counts)
    ids_of_counts: dict[int, list[int]] = {}
    for value, own_id in ids.items():
        if own_id not in counted:
            ids_of_counts.setdefault(counts[value], []).append(own_id)
    _add_to_counts(at, f"{kind}_values", ids_of_counts)
    (last,) = at.execute(f"SELECT coalesce(max(id), 0) FROM {kind}_values").fetchone()
    # In the order of the index by digest, rows that are neighbours are written together.
    new = sorted((each for each in counts if each not in ids), key=itemgetter(0, 2))
    ids |= zip(new, range(last + 1, last + 1 + len(new)), strict=True)
    hits, texts = _hits(found, ids)
    firsts: Mapping[int, _Hit] = {}
    if at.engine.keeps_first_hits:
        firsts = {hit[0]: hit for hit in reversed(hits) if hit[0] > last}
        hits = [hit for hit in hits if firsts.get(hit[0]) != hit]
    columns, marks = "id, key_id, digest, value, number, places", "?, ?, ?, ?, ?, ?"
    if firsts:
        columns, marks = f"{columns}, place, event", f"{marks}, ?, ?"
    text = at.engine.text
    at.executemany(
        f"INSERT INTO {kind}_values ({columns}) VALUES ({marks})",
        [
            (
                *(ids[each], key_ids[each[0]], each[2], text(each[1]), each[3], counts[each]),
                *firsts.get(ids[each], (0,))[1:],
            )
            for each in new
        ],
    )
    at.executemany(f"INSERT INTO {kind}_hits (value_id, place, event) VALUES (?, ?, ?)", hits)
    counted.update(key_ids, ids.values())
    return texts


def _merged_counts(found: Iterable[Entries]) -> dict[_Value, int]:
    counts: dict[_Value, int] = {}
    for each in found:
        for value, count in zip(each.values, each.counts, strict=True):
            counts[value] = counts.get(value, 0) + count
    return counts


def _hits(
    found: Iterable[tuple[Entries, Sequence[int]]], ids: Mapping[_Value, int]
) -> tuple[list[_Hit], dict[int, str]]:
    """Return the sorted rows of hits, and the column ``events`` of each place."""
    hits, texts = list[_Hit](), dict[int, str]()
    for each, of_entries in found:
        own = [ids[value] for value in each.values]
        for here, of_events in zip(of_entries, each.of_places, strict=True):
            id_lists = [[own[number] for number in numbers] for numbers in of_events]
            texts[here] = jsoncodec.encode(id_lists).decode()
            for event, value_ids in enumerate(id_lists, each.first_event):
                hits += [(value_id, here, event) for value_id in value_ids]
    return sorted(hits), texts


def _count_txs(at: Connection, places: Sequence[int], by: int) -> None:
    counts = Counter(here >> POSITION_BITS + COUNT_BUCKET_BITS for here in places)
    at.executemany(
        "INSERT INTO tx_counts (heights, txs) VALUES (?, ?)"
        " ON CONFLICT (heights) DO UPDATE SET txs = tx_counts.txs + excluded.txs",
        [(heights, by * count) for heights, count in counts.items()],
    )


def _known_ids(
    at: Connection, kind: str, key_ids: Mapping[str, int], values: Iterable[_Value]
) -> dict[_Value, int]:
    """Return the IDs of values that are already stored; reads them with one statement per
    key."""
    of_keys: dict[str, dict[str, _Value]] = {}
    for each in values:
        of_keys.setdefault(each[0], {})[each[1]] = each
    engine = at.engine
    rows_of_keys = at.each(
        f"SELECT value, id FROM {kind}_values"
        f" WHERE key_id = ? AND {engine.is_one_of('digest')}",
        [
            (key_ids[key], engine.integers_param([each[2] for each in wanted.values()]))
            for key, wanted in of_keys.items()
        ],
    )
    return {
        value: value_id
        for wanted, rows in zip(of_keys.values(), rows_of_keys, strict=True)
        for text, value_id in rows
        if (value := wanted.get(engine.to_text(text)))
    }


def _key_ids(at: Connection, kind: str, counts: Mapping[str, int]) -> dict[str, int]:
    """Insert keys, each with the number of places to add; return their IDs."""
    at.executemany(
        f"INSERT INTO {kind}_keys AS k (key, places) VALUES (?, ?)"
        f" ON CONFLICT ({at.engine.unique_key('key')})"
        " DO UPDATE SET places = k.places + excluded.places",
        [(at.engine.text(key), count) for key, count in counts.items()],
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
    if hits and at.engine.keeps_first_hits:
        gone = at.engine.integers_param(sorted({value_id for value_id, _ in hits}))
        at.execute(
            f"UPDATE {kind}_values SET place = NULL, event = NULL"
            f" WHERE {at.engine.is_one_of('id')} AND place BETWEEN ? AND ?",
            (gone, first, last),
        )


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
    _add_to_counts(at, table, {-count: ids for count, ids in ids_of_counts.items()})


def _add_to_counts(
    at: Connection, table: str, ids_of_counts: Mapping[int, Sequence[int]]
) -> None:
    """Add to the numbers of places of rows, given the IDs of the rows for each number."""
    engine = at.engine
    at.executemany(
        f"UPDATE {table} SET places = places + ? WHERE {engine.is_one_of('id')}",
        [(count, engine.integers_param(sorted(ids))) for count, ids in ids_of_counts.items()],
    )
