"""Connections as the statements of SQL stores use them, and what database engines differ in.

Statements are written so that SQLite and PostgreSQL take them, with ``?`` or ``:name`` for
parameters. The few parts that can't be are methods of :class:`Engine`.
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
        """Number of rows that were changed."""

    def fetchone(self) -> Any:
        """Return the next row, or ``None``."""

    def fetchall(self) -> list[Any]:
        """Return all other rows."""

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the rows."""


class Connection(Protocol):
    """A connection, inside a transaction where one is needed."""

    @property
    def engine(self) -> Engine:
        """The engine behind it."""

    @property
    def in_transaction(self) -> bool:
        """True between the beginning of a transaction and its end."""

    def execute(self, sql: str, parameters: Any = ..., /) -> Rows:
        """Execute one statement."""

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> object:
        """Execute a statement that returns nothing with each of these parameters."""

    def each(self, sql: str, parameters: Iterable[Any], /) -> Iterator[list[Any]]:
        """Execute a statement with each of these parameters; yield the rows of each."""


class Engine(ABC):
    """Parts of statements that engines write in different ways."""

    integrity_error: type[Exception]
    """Raised for a row that is there already."""
    for_update = ""
    """Behind a SELECT: locks its rows until the end of the transaction."""
    counts_rows = False
    """True where statements count the rows that a search looks at, as the engine can't."""
    latest_pending: str
    """SELECT of the last number that the mempool has given to a transaction; no row if none."""

    heights = "blocks"
    """Table whose columns ``height`` and ``hash`` say which blocks there are."""
    lowest_kept = "0"
    """Expression of a height below which rows of transactions may be left of blocks that were
    removed; 0 without any."""
    tx_hashes = "txs"
    """Table whose columns ``hash``, ``code`` and ``place`` say where transactions are."""
    header_by_hash = "SELECT height, header FROM blocks WHERE hash = ?"
    """SELECT of the block of a hash."""
    # CometBFT: a later failure does not hide an earlier success.
    tx_by_hash = (
        "SELECT t.place, s.txs, s.place FROM"
        " (SELECT coalesce((SELECT max(place) FROM txs WHERE hash = :hash AND code = 0),"
        "  (SELECT max(place) FROM txs WHERE hash = :hash)) AS place) AS t"
        " LEFT JOIN tx_slices AS s ON s.place = (SELECT max(place) FROM tx_slices WHERE place"
        f"  BETWEEN t.place >> {POSITION_BITS} << {POSITION_BITS} AND t.place)"
    )
    """SELECT of the place of the transaction ``:hash``, the slice that has it, and the place of
    the slice; NULL where there is none."""

    # Values.

    def text(self, value: str) -> object:
        """Return a key or value of an event as the parameter of a statement."""
        return value

    def to_text(self, stored: Any) -> str:
        """Return a key or value of an event from its column."""
        text: str = stored
        return text

    def long(self, value: str) -> str:
        """Expression by which a unique value of any length is indexed."""
        return value

    def head(self, value: str) -> str:
        """Expression by which bytes of any length are indexed in their order."""
        return value

    @abstractmethod
    def numbers(self, values: Sequence[int]) -> object:
        """Return integers as one parameter, of :meth:`is_one_of`."""

    # SQL.

    @abstractmethod
    def is_one_of(self, column: str) -> str:
        """Condition that a column is one of the integers of a parameter."""

    @abstractmethod
    def contains(self, column: str) -> str:
        """Condition that a text contains that of a parameter."""

    @abstractmethod
    def each_event(self, events: str) -> str:
        """FROM item ``e`` with the numbers ``key`` of the events in a column ``events``."""

    @abstractmethod
    def each_value(self, events: str) -> str:
        """FROM item ``i`` with the ids ``value`` in a column ``events``."""

    @abstractmethod
    def values_of(self, events: str, event: str) -> str:
        """The same of the event of one number."""

    # Tables of the indexes that features declare.

    @abstractmethod
    def hit_indexes(self, at: Connection) -> list[str]:
        """Return the names of the indexes that have tables in the store."""

    @abstractmethod
    def make_hit_tables(self, at: Connection, name: str) -> None:
        """Make the tables ``NAME_hits`` of keys and places, and ``NAME_unindexed`` of
        heights."""

    # Around the statements.

    @abstractmethod
    def now(self, at: Connection) -> int:
        """Return the time by which leases expire, in nanoseconds since 1970."""

    @abstractmethod
    def data_version(self, at: Connection) -> object:
        """Return a value that is another one after commits of other connections, except those
        that add blocks or leave the state of the latest one."""

    def make_room(self, at: Connection, low: int, high: int) -> None:
        """Let blocks of a range of heights be written in this transaction."""

    def dropped_below(self, at: Connection, base: int) -> int:
        """Return a height below which the engine removes the rows of transactions and hits by
        itself, once no block is there; 0 where all are to be deleted. All blocks below ``base``
        are about to be removed."""
        return 0

    def lock_mempool(self, at: Connection) -> None:
        """Let no other transaction change the mempool until this one ends."""

    def announce(self, at: Connection) -> None:
        """Tell other processes of a change of the chain, when it is committed."""

    def free_space(self, at: Connection) -> None:
        """Give back space after many rows were deleted."""
