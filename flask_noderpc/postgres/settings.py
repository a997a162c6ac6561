"""Settings of PostgreSQL, its URLs, and functions that open the stores that they name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote, urlencode

from ..backends.base.location import Location
from ..errors import ConfigurationError, InvalidSetting, short_repr
from ..installation import install_hint
from ..settings.kinds import PATH
from ..settings.table import setting

if TYPE_CHECKING:
    from ..backends.base.capabilities import MempoolLimits
    from ..backends.base.location import Identity
    from ..backends.sql.store import ChainStore


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresSettings:
    """Settings of a PostgreSQL store."""

    read_database: str | None = setting(
        "chain",
        None,
        PATH,
        "``postgresql://`` URL of a replica of the database, from which the blocks that it"
        " has are read.",
        is_of_chain=True,
    )


_MAX_POLL_S = 1_000_000

# Refuse a password in a URL, because all users of the machine could see it, and errors would
# show it.
_PASSWORD = (
    "the URL of the database: expected no password, got one; remove it, and name a file of"
    " passwords in PGPASSFILE or a service in PGSERVICE, or set PGPASSWORD"
)


class DatabaseURL(Location):
    """A URL of PostgreSQL, such as ``postgresql://user@host/chain``.

    Besides libpq's options, the URL may have ``pool_mode=transaction``, for PgBouncer, and
    ``poll_interval``, the seconds between checks for changes by other processes. Raise
    :exc:`~flask_noderpc.errors.ConfigurationError` for a URL with a password.
    """

    takes_replicas = True
    _OWN = ("pool_mode", "poll_interval")

    def __init__(self, url: str) -> None:
        rest = url.partition("://")[2]
        authority, slash, tail = rest.partition("/")
        if not slash:
            authority, mark, tail = rest.partition("?")
            tail = mark + tail
        user_info, at, hosts = authority.rpartition("@")
        user, _, password = user_info.partition(":")
        name, _, query = tail.partition("?")
        self.options = dict(parse_qsl(query, keep_blank_values=True))
        if password or "password" in self.options:
            raise InvalidSetting(_PASSWORD)
        self.is_pooled = self.options.get("pool_mode") == "transaction"
        begin = f"postgresql://{user}{at}{hosts}/{name}"
        self.path = begin + self._query(self.options)
        self.poll_s = self._poll_s(self.options.get("poll_interval"))
        libpq = {name: each for name, each in self.options.items() if name not in self._OWN}
        self.conninfo = begin + self._query(libpq)
        shown_hosts = hosts or self.options.get("host", "")
        self.display_name = f"postgresql://{shown_hosts}/{name}"
        self.has_several_hosts = "," in shown_hosts

    @staticmethod
    def _poll_s(text: str | None) -> float | None:
        if text is None:
            return None
        try:
            seconds = float(text)
        except ValueError:
            seconds = 0.0
        if not 0 < seconds < _MAX_POLL_S:
            raise InvalidSetting(
                "poll_interval in the URL of the database: expected seconds above 0, such as"
                f" 0.05, got {short_repr(text)}"
            )
        return seconds

    @staticmethod
    def _query(options: dict[str, str]) -> str:
        return f"?{urlencode(options, quote_via=quote)}" if options else ""


def open_store(
    location: DatabaseURL,
    *,
    replica: DatabaseURL | None,
    read_only: bool,
    limits: MempoolLimits | None,
    poll_s: float,
) -> ChainStore:
    """Return the store of a URL; blocks that ``replica`` has are read there."""
    with _extra():
        from .backend import PostgresBackend

    return PostgresBackend(
        location, read_url=replica, read_only=read_only, limits=limits, poll_s=poll_s
    )


def stored_identity(location: DatabaseURL) -> Identity | None:
    """Return the identity of a store's chain; ``None`` if it has no chain or can't be read
    now."""
    with _extra():
        from . import database

    return database.stored_identity(location)


@contextmanager
def _extra() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"a postgresql:// URL needs the extra postgres, which is not installed ({error}):"
            f" {install_hint('postgres')}"
        ) from None
