"""Connections to the database of a URL."""

from __future__ import annotations

import os
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from ..backends.base.location import Identity
from ..backends.sql import chain
from ..errors import StoreError
from . import schema
from .connection import ADAPTERS, Connection, RawConnection
from .errors import postgres_errors
from .settings import DatabaseURL

# Notice a host that has vanished within ten seconds; TCP's own timeout is a quarter of an
# hour.
_DEFAULTS = {
    "connect_timeout": os.environ.get("PGCONNECT_TIMEOUT", "5"),
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "2",
    "tcp_user_timeout": "10000",
}


class Database:
    """Opens connections to the database of a URL.

    ``session`` is libpq's ``target_session_attrs``, used if the URL names several hosts and
    does not set it.
    """

    def __init__(self, url: DatabaseURL, session: str = "any") -> None:
        self.url = url
        self._session = session
        self.display_name = url.display_name
        self._last: tuple[str, str] | None = None

    def connect(self, kind: type[RawConnection] = psycopg.Connection) -> RawConnection:
        """Open a connection in autocommit mode."""
        with postgres_errors(self.display_name):
            # psycopg resolves host names in Python; libpq would block gevent's hub.
            made = kind.connect(self._conninfo(), **self._options())
            self._last = made.info.host, str(made.info.port)
            return made

    def _conninfo(self) -> str:
        """Return the connection parameters, with the host of the last connection first, so
        that a host that has vanished delays only one connection."""
        if self._last is None or not self.url.has_several_hosts:
            return self.url.conninfo
        given: dict[str, Any] = conninfo_to_dict(self.url.conninfo)
        hosts = str(given.get("host", "")).split(",")
        ports = str(given.get("port") or "5432").split(",")
        pairs = list(zip(hosts, ports if len(ports) > 1 else ports * len(hosts), strict=True))
        if "hostaddr" in given or self._last not in pairs:
            return self.url.conninfo
        pairs.remove(self._last)
        hosts, ports = map(list, zip(self._last, *pairs, strict=True))
        given |= {"host": ",".join(hosts), "port": ",".join(ports)}
        return make_conninfo(**given)

    def _options(self) -> dict[str, Any]:
        given: dict[str, Any] = {
            "autocommit": True,
            "context": ADAPTERS,
            "application_name": "noderpc",
        }
        given |= {
            name: each for name, each in _DEFAULTS.items() if name not in self.url.options
        }
        if self.url.has_several_hosts and "target_session_attrs" not in self.url.options:
            given["target_session_attrs"] = self._session
        if self.url.is_pooled:
            # Prepare no statements: behind PgBouncer, the next transaction may use another
            # server connection.
            given["prepare_threshold"] = None
        return given


def stored_identity(url: DatabaseURL) -> Identity | None:
    """Return the identity of a store's chain; ``None`` if the store has no chain or can't be
    read now."""
    try:
        with Database(url).connect() as raw:
            at = Connection(raw)
            schema.check(at)
            return chain.identity(at)
    except (psycopg.Error, StoreError):
        # Ignore the error here: the process that opens the store reports it.
        return None
