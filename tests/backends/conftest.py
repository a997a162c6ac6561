from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from flask_noderpc import SQLiteBackend
from flask_noderpc.testing import SampleChain, make_chain
from flask_noderpc.testing.chains import ChainMaker
from tests.helpers.stores import make_store

SAMPLE = make_chain()


class OpenStore(Protocol):
    def __call__(self, file: object = ..., **options: Any) -> SQLiteBackend: ...


@pytest.fixture
def sample() -> SampleChain:
    return SAMPLE


@pytest.fixture
def maker() -> ChainMaker:
    return ChainMaker((10, 7, 3))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chain.db"


@pytest.fixture
def open_store(path: Path) -> Iterator[OpenStore]:
    """Return a function that opens backends, by default on the test's file; all are closed at
    the end."""
    made: list[SQLiteBackend] = []

    def make(file: object = path, **options: Any) -> SQLiteBackend:
        made.append(make_store(file, **options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for backend in made:
        backend.close()


@pytest.fixture
def store(open_store: OpenStore, maker: ChainMaker) -> SQLiteBackend:
    """A store of the maker's chain, with no block yet."""
    backend = open_store()
    backend.init_chain(maker.genesis, maker.state)
    return backend


@pytest.fixture
def full(open_store: OpenStore, sample: SampleChain) -> SQLiteBackend:
    """A store with the sample chain."""
    backend = open_store()
    backend.init_chain(sample.genesis, sample.state)
    backend.append_block(*sample.blocks)
    return backend
