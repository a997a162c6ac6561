from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

from flask_noderpc.testing.chains import ChainMaker
from tests.helpers.postgres import Cluster
from tests.helpers.until import PATIENCE

if TYPE_CHECKING:
    from flask_noderpc.postgres.backend import PostgresBackend

Open = Callable[..., "PostgresBackend"]

# The folder needs the extra postgres, which .ci/run has.
collect_ignore_glob = [] if find_spec("psycopg") else ["test_*.py"]


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise the timeouts of transactions and reads, as a busy machine may not run a process for
    long."""
    from flask_noderpc.postgres import green, handles

    monkeypatch.setattr(green, "_FIRST_S", PATIENCE)
    for name in ("CHAIN", "MEMPOOL"):
        begin = getattr(handles, name)
        assert "'10s'" in begin
        monkeypatch.setattr(handles, name, begin.replace("'10s'", f"'{PATIENCE:.0f}s'"))


@pytest.fixture
def url(cluster: Cluster) -> Iterator[str]:
    """Yield the URL of a database with the tables of a store."""
    made = cluster.new_database()
    yield made
    cluster.drop(made)


@pytest.fixture
def open_host(url: str) -> Iterator[Open]:
    """Return a function that opens stores like the processes of other hosts, each with its own
    connections."""
    from flask_noderpc.postgres.backend import PostgresBackend

    made: list[PostgresBackend] = []

    def make(**options: Any) -> PostgresBackend:
        made.append(PostgresBackend(url, **options))
        return made[-1]

    yield make
    for backend in made:
        backend.close()


@pytest.fixture
def maker() -> ChainMaker:
    return ChainMaker((10, 7, 3))


@pytest.fixture
def host(open_host: Open, maker: ChainMaker) -> PostgresBackend:
    """A host with the maker's chain, without a block yet."""
    backend = open_host()
    backend.init_chain(maker.genesis, maker.state)
    return backend
