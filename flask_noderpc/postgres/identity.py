"""Identity of the chain in a database, read without loading the backend."""

from __future__ import annotations

import psycopg

from ..backends.base.identity import Identity
from ..backends.sql import chain
from ..errors import StoreError
from . import schema
from .connection import Connection
from .database import Database
from .location import DatabaseURL


def stored_identity(url: DatabaseURL) -> Identity | None:
    """The chain in a store; ``None`` where there is none, or none that can be read now."""
    try:
        with Database(url).connect() as raw:
            at = Connection(raw)
            schema.check(at)
            return chain.identity(at)
    except (psycopg.Error, StoreError):
        # The server that opens it reports the error.
        return None
