"""Locations of stores (file names, ``file:`` URIs and URLs of features), and the identity of a
stored chain, which the settings must match."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from ...errors import ConfigurationError, InvalidSetting
from ...feature import UrlStore, features, load

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


class Location:
    """Location of a store; see :func:`location_of`."""

    path: str
    """Location as the user gave it."""
    display_name: str
    """Name of the location in errors, without passwords."""
    read_only = False
    takes_replicas = False
    """True if the store can have a replica."""
    folder: Path | None = None
    """Folder of the file; ``None`` if the store is not a file."""

    def may_have_chain(self) -> bool:
        """Return false if nothing exists at the location that could contain a chain."""
        return True


class FileLocation(Location):
    """A file name or a ``file:`` URI, such as ``file:chain.db?mode=ro``.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` for any other URL.
    """

    folder: Path

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        url = _URL.match(self.path)
        if url is not None and url[1] != "file":
            # Show only the scheme: the rest of the URL may contain a password.
            raise InvalidSetting(
                f"NODERPC_DATABASE: expected a file name, a file: URI of SQLite or a"
                f" postgresql:// URL, got a {url[1]}:// URL; set it to one of these"
            )
        uri = urlsplit(self.path) if self.path.startswith("file:") else None
        # Make the path absolute once, because the process may change its working directory.
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
        self.display_name = str(self.file) if uri else self.path
        """Name of the file in errors: the given name, or the path of the URI."""

    @property
    def read_only_uri(self) -> str:
        """The URI that opens the file read-only."""
        return f"{self.file.as_uri()}?{urlencode({**self.options, 'mode': 'ro'})}"

    def may_have_chain(self) -> bool:
        """Return true if the file exists."""
        return self.file.exists()


def url_store(location: str | os.PathLike[str]) -> UrlStore | None:
    """Return the store of a URL's scheme, which a feature declares; ``None`` for a file."""
    url = _URL.match(os.fspath(location))
    return _url_stores().get(url[1]) if url else None


@cache
def _url_stores() -> dict[str, UrlStore]:
    return {scheme: store for each in features() for scheme, store in each.stores.items()}


def location_of(location: str | os.PathLike[str]) -> Location:
    """Parse a location: a file name, a ``file:`` URI or the URL of a feature's store.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` for a URL with another scheme, or one
    that the feature refuses.
    """
    store = url_store(location)
    if store is None:
        return FileLocation(location)
    found: Location = load(store.location)(os.fspath(location))
    return found


@dataclass(frozen=True, slots=True)
class Identity:
    """Chain ID, application and dialect of a store's chain."""

    chain_id: str
    application: str
    """Name of the application; empty if it has no name, or if the store was created before
    names were stored."""
    dialect: str = ""
    """Dialect of the nodes that the chain was copied from; empty if it was not copied."""


def check_identity(
    stored: Identity, path: str, application: str, chain_id: str | None = None
) -> None:
    """Raise :exc:`~flask_noderpc.errors.ConfigurationError` if a store contains the chain of
    another application, or a chain with another chain ID than requested."""
    elsewhere = "or begin a new chain at another NODERPC_DATABASE (noderpc start: --home)"
    if stored.application and application and stored.application != application:
        raise ConfigurationError(
            f"NODERPC_APPLICATION: expected {stored.application!r}, the application of the"
            f" chain {stored.chain_id!r} in {path}, got {application!r}; set it to"
            f" {stored.application!r} to continue that chain, {elsewhere}"
        )
    if chain_id is not None and chain_id != stored.chain_id:
        raise ConfigurationError(
            f"NODERPC_CHAIN_ID: expected {stored.chain_id!r}, the chain in {path}, got"
            f" {chain_id!r}; remove it to continue that chain, {elsewhere}"
        )
