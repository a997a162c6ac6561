"""Settings of PostgreSQL."""

from __future__ import annotations

from dataclasses import dataclass

from ..settings.kinds import PATH
from ..settings.table import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresSettings:
    """Settings of a store in PostgreSQL."""

    read_database: str | None = setting(
        "chain",
        None,
        PATH,
        "``postgresql://`` URL of a replica of the database. Blocks that it has are read"
        " there.",
        is_of_chain=True,
    )
