"""Stores: ``open_store`` opens the one that a file name or URL names."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .base.capabilities import MempoolLimits
    from .base.location import Identity, Location
    from .sql.store import ChainStore


def open_store(
    location: str | os.PathLike[str],
    *,
    read_only: bool = False,
    limits: MempoolLimits | None = None,
    max_pages: int | None = None,
    poll_s: float = 0.05,
    read_database: str | None = None,
) -> ChainStore:
    """Return the store at a file name, ``file:`` URI or ``postgresql://`` URL; its first use
    opens it.

    With ``read_only`` nothing is created or written. ``read_database`` is the URL of a replica
    of PostgreSQL. Raise :exc:`~flask_noderpc.errors.ConfigurationError` for a URL of another
    scheme, and without the extra that a store needs.
    """
    from .base.location import FileLocation, location_of, url_store

    found = location_of(location)
    replica = replica_of(found, read_database)
    store = url_store(found.path)
    if store is not None:
        from ..feature import load

        opened: ChainStore = load(store.open)(
            found, replica=replica, read_only=read_only, limits=limits, poll_s=poll_s
        )
        return opened
    assert isinstance(found, FileLocation)
    from .sqlite import SQLiteBackend

    path = found.read_only_uri if read_only else found.path
    return SQLiteBackend(path, limits=limits, max_pages=max_pages, poll_s=poll_s)


def replica_of(store: Location, read_database: str | None) -> Location | None:
    """Return the URL of a store's replica, if one is named; raise
    :exc:`~flask_noderpc.errors.ConfigurationError` for one that can't be."""
    from ..errors import InvalidSetting
    from ..feature import replica_settings
    from .base.location import location_of

    if not read_database:
        return None
    found = location_of(read_database)
    if found.takes_replicas and type(found) is type(store):
        return found
    keys = " or ".join(f"NODERPC_{name.upper()}" for name in replica_settings())
    raise InvalidSetting(
        f"{keys} is the URL of a replica of NODERPC_DATABASE, a URL of the same kind: leave it"
        " out for a store of SQLite"
    )


def stored_identity(location: str | os.PathLike[str]) -> Identity | None:
    """Return the chain of a store without opening it to serve; ``None`` if there is none, or
    none that can be read now."""
    # ``noderpc start`` itself only looks which chain is there: this loads no backend.
    from .base.location import location_of, url_store

    found = location_of(location)
    store = url_store(found.path)
    if store is not None:
        from ..feature import load

        identity: Identity | None = load(store.identity)(found)
        return identity
    from .sqlite import stored_identity

    return stored_identity(location)
