"""Interface of database connections, and the differences between SQLite and PostgreSQL.

Statements run on both SQLite and PostgreSQL, with ``?`` or ``:name`` for parameters. Parts of
statements that differ are attributes and methods of :class:`Engine`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from .packed.blocks import POSITION_BITS


class Rows(Protocol):
    """Result of a statement."""

    @property
    def rowcount(self) -> int:
        """Number of changed rows."""

    def fetchone(self) -> Any:
        """Return the next row, or ``None``."""

    def fetchall(self) -> list[Any]:
        """Return all remaining rows."""

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the remaining rows."""


class Connection(Protocol):
    """A database connection; a statement that needs a transaction begins one."""

    @property
    def engine(self) -> Engine:
        """Engine of the database."""

    @property
    def in_transaction(self) -> bool:
        """True while a transaction is open."""

    def execute(self, sql: str, parameters: Any = ..., /) -> Rows:
        """Execute one statement."""

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> object:
        """Execute a statement without result rows once for each parameter set."""

    def each(self, sql: str, parameters: Iterable[Any], /) -> Iterator[list[Any]]:
        """Execute a statement once for each parameter set; yield the rows of each execution."""


class Engine(ABC):
    """Parts of statements that database engines write differently."""

    integrity_error: type[Exception]
    """Exception raised by the engine for a duplicate row."""
    for_update = ""
    """Suffix of a SELECT that locks its rows until the end of the transaction."""
    counts_rows = False
    """True if searches must count the rows that they read, because the engine can't limit
    them."""
    latest_pending: str
    """SELECT of the last number that the mempool assigned to a transaction; no row if it has
    not assigned any."""

    heights = "blocks"
    """Table whose columns ``height`` and ``hash`` list the stored blocks."""
    lowest_kept = "0"
    """SQL expression of a height: rows of transactions below it belong to removed blocks and
    must be ignored; 0 if there are no such rows."""
    tx_hashes = "txs"
    """Table whose columns ``hash``, ``code`` and ``place`` (height and index) locate
    transactions."""
    hits = "hits"
    """Suffix of the table or view that lists all hits of an event index."""
    keeps_first_hits = False
    """True if the row of a value has the first stored hit of the value, in its columns
    ``place`` and ``event``, and the table of hits has the other hits."""
    header_by_hash = "SELECT height, header FROM blocks WHERE hash = ?"
    """SELECT of the block with a hash."""
    # As in CometBFT, a later failure does not hide an earlier success.
    tx_by_hash = (
        "SELECT t.place, s.txs, s.place FROM"
        " (SELECT coalesce((SELECT max(place) FROM txs WHERE hash = :hash AND code = 0),"
        "  (SELECT max(place) FROM txs WHERE hash = :hash)) AS place) AS t"
        " LEFT JOIN tx_slices AS s ON s.place = (SELECT max(place) FROM tx_slices WHERE place"
        f"  BETWEEN t.place >> {POSITION_BITS} << {POSITION_BITS} AND t.place)"
    )
    """SELECT of the place of the transaction ``:hash``, the slice (packed row) that contains
    it, and the slice's place; NULL if it is not stored."""

    # Values.

    def text(self, value: str) -> object:
        """Convert a key or value of an event to a statement parameter."""
        return value

    def to_text(self, stored: Any) -> str:
        """Convert a column value to the key or value of an event."""
        text: str = stored
        return text

    def unique_key(self, value: str) -> str:
        """Return the SQL expression of the unique index over a column with values of any
        length."""
        return value

    def prefix_key(self, value: str) -> str:
        """Return the SQL expression of the index, in byte order, over a column with bytes of
        any length."""
        return value

    @abstractmethod
    def integers_param(self, values: Sequence[int]) -> object:
        """Convert integers to the single parameter of :meth:`is_one_of`."""

    # SQL expressions.

    @abstractmethod
    def is_one_of(self, column: str) -> str:
        """Return an SQL condition: the column equals one of the integers in a parameter."""

    @abstractmethod
    def contains(self, column: str) -> str:
        """Return an SQL condition: the text column contains the text in a parameter."""

    @abstractmethod
    def each_event(self, events: str) -> str:
        """Return a FROM item ``e``: one row, with the event's number in ``key``, for each
        event in a column ``events``."""

    @abstractmethod
    def each_value(self, events: str) -> str:
        """Return a FROM item ``i``: one row, with an ID in ``value``, for each value ID of all
        events in a column ``events``."""

    @abstractmethod
    def values_of(self, events: str, event: str) -> str:
        """Return a FROM item ``i``: one row, with an ID in ``value``, for each value ID of the
        event with the number ``event``."""

    # Tables of the indexes that features declare.

    @abstractmethod
    def hit_indexes(self, at: Connection) -> list[str]:
        """Return the names of the indexes that have tables in the store."""

    @abstractmethod
    def make_hit_tables(self, at: Connection, name: str) -> None:
        """Create the tables ``NAME_hits``, of keys and places, and ``NAME_unindexed``, of
        heights."""

    # Time, versions, locks and space.

    @abstractmethod
    def now(self, at: Connection) -> int:
        """Return the time of the clock that leases use, in nanoseconds since 1970."""

    @abstractmethod
    def data_version(self, at: Connection) -> object:
        """Return a value that changes with commits of other connections; it may stay the same
        if a commit only adds blocks, or does not change the state of the latest block."""

    def prepare_range(self, at: Connection, low: int, high: int) -> None:
        """Create what this transaction needs, such as partitions, to write blocks of a range
        of heights."""

    def dropped_below(self, at: Connection, base: int) -> int:
        """Return the height below which the engine removes rows of transactions and index hits
        by itself, once it has no blocks there; 0 if the caller must delete the rows. The
        caller is about to remove all blocks below ``base``."""
        return 0

    def lock_mempool(self, at: Connection) -> None:
        """Prevent other transactions from changing the mempool until this one ends."""

    def announce(self, at: Connection) -> None:
        """Make the commit of this transaction notify other processes of a change of the
        chain."""

    def free_space(self, at: Connection) -> None:
        """Return free space to the file system after many rows were deleted."""
