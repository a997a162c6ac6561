"""Stores of tests: SQLite files, or with ``--store postgres`` a database for each file name.

Tests that only need a store are the same for both.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flask_noderpc import SQLiteBackend
from flask_noderpc.backends.base import location
from flask_noderpc.backends.base.location import FileLocation, Location
from flask_noderpc.backends.sql.store import ChainStore
from flask_noderpc.chain import from_settings

from .postgres import Cluster


def make_store(path: str | os.PathLike[str], **options: Any) -> ChainStore:
    """Return a store, with options that all stores have."""
    found = location.location_of(path)
    if isinstance(found, FileLocation):
        return SQLiteBackend(path, **options)
    from flask_noderpc.postgres import PostgresBackend
    from flask_noderpc.postgres.settings import DatabaseURL

    assert isinstance(found, DatabaseURL)
    return PostgresBackend(found, **options)


class Databases:
    """A database for each file name of a test."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._urls: dict[Path, str] = {}
        self._location_of = location.location_of

    def location_of(self, path: str | os.PathLike[str]) -> Location:
        """Return the database that replaces a file."""
        from flask_noderpc.postgres.settings import DatabaseURL

        found = self._location_of(path)
        if isinstance(found, DatabaseURL):
            files = {url: file for file, url in self._urls.items()}
            file = files.get(found.path)
            found.folder = None if file is None else file.parent
            return found
        assert isinstance(found, FileLocation)
        if found.file not in self._urls:
            self._urls[found.file] = self._cluster.new_database()
        url = DatabaseURL(self._urls[found.file])
        url.folder = found.folder
        url.read_only = found.read_only
        return url

    def close(self) -> None:
        """Drop all databases."""
        for url in self._urls.values():
            self._cluster.drop(url)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A cluster of PostgreSQL for all tests of a process."""
    made = Cluster()
    yield made
    made.close()


@pytest.fixture(scope="module", autouse=True)
def stores(request: pytest.FixtureRequest) -> Iterator[None]:
    """Replace files by databases if the tests run on PostgreSQL."""
    if request.config.getoption("--store") != "postgres":
        yield
        return
    databases = Databases(request.getfixturevalue("cluster"))
    with pytest.MonkeyPatch.context() as patch:
        for module in (location, from_settings):
            patch.setattr(module, "location_of", databases.location_of)
        yield
    databases.close()
