"""The recorded chains after their last blocks."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from tests.chain.conftest import clock, open_chain, unstarted

from .playing import Chain, recorded

__all__ = ["clock", "open_chain", "played", "unstarted"]


@pytest.fixture(scope="session")
def played() -> Callable[[str], Chain]:
    """Return a function that returns the recorded chain with a name."""

    @cache
    def chain(name: str) -> Chain:
        made = Chain(recorded(name))
        for block in recorded(name)["blocks"]:
            made.execute(block)
        return made

    return chain
