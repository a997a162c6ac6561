from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from flask_noderpc.chain.clock import ManualClock
from flask_noderpc.chain.embedded import EmbeddedChain


class Open(Protocol):
    def __call__(self, **options: Any) -> EmbeddedChain: ...


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def unstarted(tmp_path: Path, clock: ManualClock) -> Iterator[Open]:
    """Return a function that makes chains on the test's store; all are closed at the end."""
    made: list[EmbeddedChain] = []

    def make(**options: Any) -> EmbeddedChain:
        given = {"clock": clock, "produce": False, **options}
        chain = EmbeddedChain(tmp_path / "chain.db", **given)
        made.append(chain)
        return chain

    yield make
    for chain in made:
        chain.close()


@pytest.fixture
def open_chain(unstarted: Open) -> Open:
    """Return a function that makes chains and starts them."""

    def start(**options: Any) -> EmbeddedChain:
        chain = unstarted(**options)
        chain.start()
        return chain

    return start


@pytest.fixture
def chain(open_chain: Open) -> EmbeddedChain:
    """A chain of one validator whose blocks are made by hand."""
    return open_chain()
