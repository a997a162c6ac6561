"""Locations of stores: file names, ``file:`` URIs, and URLs of databases."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from ...errors import InvalidSetting, short_repr

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_POSTGRES = ("postgresql", "postgres")

_MAX_POLL_S = 1_000_000

# It would be shown to all users of the machine, and in errors.
_PASSWORD = (
    "the URL of the database has a password: leave it out, and name a file of passwords in"
    " PGPASSFILE or a service in PGSERVICE, or set PGPASSWORD"
)


class Location:
    """Location of a store; see :func:`location_of`."""

    path: str
    """As it was given."""
    shown: str
    """The name for errors."""
    read_only = False
    folder: Path | None = None
    """The folder of a file."""

    def may_have_chain(self) -> bool:
        """Return false if there is nothing that could hold a chain."""
        return True


class FileLocation(Location):
    """A file name or a ``file:`` URI, such as ``file:chain.db?mode=ro``.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` for a URL.
    """

    folder: Path

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        url = _URL.match(self.path)
        if url is not None and url[1] != "file":
            # The rest of the URL may hold a password.
            raise InvalidSetting(
                f"no file is named by {url[1]}:// URLs: set NODERPC_DATABASE to a file name, a"
                " file: URI of SQLite, or a postgresql:// URL"
            )
        uri = urlsplit(self.path) if self.path.startswith("file:") else None
        # Made absolute once: the process may change its folder.
        self.file = Path(unquote(uri.path) if uri else self.path).absolute()
        if self.file.is_dir():
            raise InvalidSetting(
                f"NODERPC_DATABASE: expected a file, got the folder {self.file}; name a file in"
                f" it, such as {self.file / 'chain.db'}"
            )
        self.folder = self.file.parent
        self.options = dict(parse_qsl(uri.query)) if uri else {}
        self.read_only = (
            self.options.get("mode") == "ro" or self.options.get("immutable") == "1"
        )
        self.shown = str(self.file) if uri else self.path
        """The file's name for errors: as it was given, or that of the URI."""

    @property
    def read_only_uri(self) -> str:
        """The URI with which nothing is created or written."""
        return f"{self.file.as_uri()}?{urlencode({**self.options, 'mode': 'ro'})}"

    def may_have_chain(self) -> bool:
        """Return true if there is a file."""
        return self.file.exists()


class DatabaseURL(Location):
    """A URL of PostgreSQL, such as ``postgresql://user@host/chain``.

    Beside libpq's options it takes ``pool_mode=transaction`` for one of PgBouncer, and
    ``poll_interval``, the seconds after which a process looks at what others wrote. Raise
    :exc:`~flask_noderpc.errors.ConfigurationError` for one with a password.
    """

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
        self.shown = f"postgresql://{shown_hosts}/{name}"
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
                f"poll_interval in the URL of the database is {short_repr(text)}: seconds above"
                " 0 are needed, such as 0.05"
            )
        return seconds

    @staticmethod
    def _query(options: dict[str, str]) -> str:
        return f"?{urlencode(options, quote_via=quote)}" if options else ""


def is_url(location: str | os.PathLike[str]) -> bool:
    """Return true for the URL of a database."""
    found = _URL.match(os.fspath(location))
    return found is not None and found[1] in _POSTGRES


def location_of(location: str | os.PathLike[str]) -> FileLocation | DatabaseURL:
    """Return the parts of a file name, ``file:`` URI or URL of PostgreSQL.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` for a URL of another scheme, or with
    a password.
    """
    return DatabaseURL(os.fspath(location)) if is_url(location) else FileLocation(location)
