"""Connections as the statements of SQL stores use them, and what database engines differ in.

Statements are written so that SQLite and PostgreSQL take them, with ``?`` or ``:name`` for
parameters. The few parts that can't be are methods of :class:`Engine`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol


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

    # Around the statements.

    @abstractmethod
    def now(self, at: Connection) -> int:
        """Return the time by which leases expire, in nanoseconds since 1970."""

    @abstractmethod
    def data_version(self, at: Connection) -> object:
        """Return a value that is another one after commits of other connections, except those
        that add blocks or leave the state of the latest one."""

    def lock_mempool(self, at: Connection) -> None:
        """Let no other transaction change the mempool until this one ends."""

    def announce(self, at: Connection) -> None:
        """Tell other processes of a change of the chain, when it is committed."""

    def free_space(self, at: Connection) -> None:
        """Give back space after many rows were deleted."""
