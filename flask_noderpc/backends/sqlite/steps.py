"""Steps that make the tables of a store: an ordered list for each owner of tables.

A store has taken the first steps of each list. A later version of an owner appends steps to
its list, which are taken when the store is opened. The names of those that were taken are in
the table of sqlite-utils' migrations, in their order, where the owner is the migration set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from sqlite_utils import Database, Migrations

from ...errors import StoreError
from .engine import Connection


def _nothing(connection: Connection) -> bool:
    return False


class Step(NamedTuple):
    """A change of an owner's tables."""

    name: str
    run: Callable[[Database], None]
    fill: Callable[[Connection], bool] = _nothing
    """Write some of the rows that the step needs, before it is run, and return false when none
    is left: a transaction has some of them only."""


class Owner:
    """An owner of tables, and the steps that make them, in their order."""

    def __init__(self, name: str, steps: Sequence[Step]) -> None:
        self._steps = tuple(steps)
        # The table of the steps that were taken is the library's.
        self._taken = Migrations(name)

    @property
    def names(self) -> list[str]:
        """The names of all steps."""
        return [step.name for step in self._steps]

    def taken(self, connection: Connection) -> list[str]:
        """Return the names of the steps that a store has taken, in their order."""
        return [step.name for step in self._taken.applied(Database(connection))]

    def missing(self, connection: Connection) -> tuple[Step, ...]:
        """Return the steps that a store lacks; raise :exc:`StoreError` for a store that has
        taken others than the first ones of the list."""
        taken, names = self.taken(connection), self.names
        if taken == names[: len(taken)]:
            return self._steps[len(taken) :]
        if unknown := [name for name in taken if name not in names]:
            raise StoreError(
                f"the store was made by a newer flask-noderpc ({', '.join(unknown)}):"
                " upgrade the package, or use another NODERPC_DATABASE"
            )
        raise StoreError(
            f"the store has taken the migration steps {', '.join(taken)} of"
            f" {self._taken.name}, expected {', '.join(names)} in this order without a gap: it"
            " was made by a development version, so restore a backup or use another"
            " NODERPC_DATABASE"
        )

    def go_on(self, connection: Connection) -> bool:
        """Take the missing steps in this transaction; return true if another transaction is
        needed for the rest."""
        for step in self.missing(connection):
            if step.fill(connection):
                return True
            step.run(Database(connection))
            self.record(connection, step.name)
        return False

    def record(self, connection: Connection, name: str) -> None:
        """Record a step as taken."""
        self._taken.ensure_migrations_table(Database(connection))
        connection.execute(
            "INSERT INTO _sqlite_migrations (migration_set, name, applied_at)"
            " VALUES (?, ?, datetime('now'))",
            (self._taken.name, name),
        )

    def forget(self, connection: Connection) -> None:
        """Forget all steps of this owner."""
        connection.execute(
            "DELETE FROM _sqlite_migrations WHERE migration_set = ?", (self._taken.name,)
        )
