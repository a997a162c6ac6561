"""Stores: :func:`open_store` opens the store at a file name or URL."""

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

    With ``read_only`` nothing is created or written. ``limits`` bound the mempool,
    ``max_pages`` the size of a SQLite file; ``poll_s`` is the interval in seconds at which a
    waiting thread looks for writes of other processes. ``read_database`` is the URL of a
    PostgreSQL replica. Raise :exc:`~flask_noderpc.errors.ConfigurationError` for a URL with
    another scheme, or if the extra that a store needs is not installed.
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
    """Return the location of a store's replica, or ``None`` without one; raise
    :exc:`~flask_noderpc.errors.ConfigurationError` if the store can't have a replica."""
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
        f"{keys}: expected the URL of a replica of NODERPC_DATABASE, both as postgresql://"
        " URLs; remove it for a SQLite store"
    )


def stored_identity(location: str | os.PathLike[str]) -> Identity | None:
    """Return the identity of a store's chain, without creating or locking the store; ``None``
    if the store does not exist or can't be read now."""
    # Import no backend until it is needed: ``noderpc start`` calls this only to check which
    # chain a store has.
    from .base.location import location_of, url_store

    found = location_of(location)
    store = url_store(found.path)
    if store is not None:
        from ..feature import load

        identity: Identity | None = load(store.identity)(found)
        return identity
    from .sqlite import stored_identity

    return stored_identity(location)
