"""Connections to the database of a URL."""

from __future__ import annotations

import os
from typing import Any

import psycopg

from ..base.location import DatabaseURL
from .connection import ADAPTERS, RawConnection
from .errors import postgres_errors

_CONNECT_S = "5"


class Database:
    """Opens connections to the database of a URL."""

    def __init__(self, url: DatabaseURL) -> None:
        self.url = url
        self.shown = url.shown

    def connect(self) -> RawConnection:
        """Open a connection, outside of a transaction."""
        with postgres_errors(self.shown):
            # psycopg resolves names in Python: libpq would stop gevent's hub.
            return psycopg.connect(self.url.conninfo, **self._options())

    def _options(self) -> dict[str, Any]:
        given: dict[str, Any] = {
            "autocommit": True,
            "context": ADAPTERS,
            "application_name": "noderpc",
        }
        if "connect_timeout" not in self.url.options:
            given["connect_timeout"] = os.environ.get("PGCONNECT_TIMEOUT", _CONNECT_S)
        if self.url.is_pooled:
            # PgBouncer: the next transaction may be on another connection of the server.
            given["prepare_threshold"] = None
        return given
