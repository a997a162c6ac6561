"""Fixtures of chains behind nodes, and of imports from them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flask_noderpc import ChainBackend, MemoryChain
from flask_noderpc.backends.sql.store import ChainStore
from flask_noderpc.companion.backend import CompanionBackend
from flask_noderpc.companion.beginning import FetchOptions
from flask_noderpc.companion.from_settings import companion_from_settings
from flask_noderpc.companion.http import UpstreamLimits
from flask_noderpc.companion.importer import Importer
from flask_noderpc.companion.pool import Upstreams
from flask_noderpc.companion.reader import Reader
from flask_noderpc.companion.trust import TrustOptions
from flask_noderpc.companion.upstream import Upstream
from flask_noderpc.domain.time import SECOND
from flask_noderpc.settings import read_settings
from flask_noderpc.testing import SampleChain, make_chain
from flask_noderpc.testing.chains import ChainMaker, make_blocks
from flask_noderpc.testing.node import app_for, serve
from tests.helpers.stores import make_store
from tests.helpers.until import PATIENCE

HEIGHTS = 70
LIMITS = UpstreamLimits(timeout=60, patience=0.1)
# The chains of these tests are years old.
TRUST = TrustOptions(period=10**20)


@pytest.fixture(scope="session")
def chain() -> SampleChain:
    """A chain of several chunks, whose validators change and which has evidence."""
    return make_chain(HEIGHTS)


OLD, RECENT = 40, 80


def make_recent_chain(txs_per_block: int = 1) -> SampleChain:
    """Return a chain whose first ``OLD`` blocks have times of the year 2023, and whose later
    blocks, up to ``RECENT``, are minutes old."""
    maker = ChainMaker((10, 7, 3))
    blocks = [*make_blocks(maker, OLD - 1, txs_per_block)]
    # The votes for a block have the time of the next block.
    blocks.append(maker.block())
    maker._now = time.time_ns() - 300 * SECOND
    blocks += make_blocks(maker, RECENT - OLD, txs_per_block)
    return SampleChain(maker.genesis, maker.state, tuple(blocks))


@pytest.fixture(scope="session")
def recent_chain() -> SampleChain:
    """A chain that began years ago and has recent blocks."""
    return make_recent_chain()


Serve = Callable[..., str]


@pytest.fixture
def serve_node() -> Iterator[Serve]:
    """Return a function that serves backends as nodes until the test ends."""
    with ExitStack() as stack:

        def start(backend: ChainBackend, dialect: str = "comet-0.38", **settings: Any) -> str:
            return stack.enter_context(serve(app_for(backend, dialect=dialect, **settings)))

        yield start


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ChainStore]:
    """An empty store."""
    backend = make_store(tmp_path / "copy.db")
    yield backend
    backend.close()


Companion = Callable[..., CompanionBackend]


@pytest.fixture
def companion(tmp_path: Path) -> Iterator[Companion]:
    """Return a function that makes companions on one store; all end with the test."""
    with ExitStack() as stack:

        def make(
            *urls: str, clock: Callable[[], int] | None = None, **settings: Any
        ) -> CompanionBackend:
            given = {
                "upstream": urls,
                "upstream_poll": 0.05,
                "trust_period": 10**9,
                "upstream_timeout": PATIENCE,
                **settings,
            }
            backend = companion_from_settings(
                read_settings({}, given), tmp_path / "companion.db"
            )
            stack.callback(backend.close)
            if clock is not None:
                fetch = backend._options.fetch
                fetch = replace(fetch, trust=replace(fetch.trust, clock=clock))
                backend._options = replace(backend._options, fetch=fetch)
            return backend

        yield make


def node_of(chain: SampleChain, height: int = HEIGHTS) -> ChainBackend:
    """Return a node that has the chain up to a height."""
    return ChainBackend(MemoryChain(chain.genesis, chain.blocks[:height], state=chain.state))


def upstreams_at(*urls: str, limits: UpstreamLimits = LIMITS) -> Upstreams:
    """Return the upstreams of these addresses."""
    return Upstreams([Reader(Upstream(url, limits=limits)) for url in urls], limits.patience)


def import_all(
    store: ChainStore,
    upstreams: Upstreams,
    first: int = 1,
    last: int | None = None,
    options: FetchOptions | None = None,
) -> tuple[int, int]:
    """Import a range; return the lowest and the highest height of the store."""
    importer = Importer(store, upstreams, options or FetchOptions(TRUST))
    importer.plan(first, last)
    return importer.run(lambda count: None)
